# SPDX-License-Identifier: MIT
"""The words of the pages: what each bench is for, and what the columns of its rows are."""

BENCHES = {
    "pass": "reading every cgroup's CPU numbers, each way",
    "scrape": "what `freshet serve` costs, and how fast it answers",
    "update": "what an update costs, beside other counters",
    "read": "what a read of a program's tree costs",
    "designs": "every design of the debate, side by side",
    "hammer": "polling hard beside work in the cgroups, on the real kernel",
    "barriers": "what fences, atomics and masked interrupts cost",
    "timeline": "who runs and who waits, simulated exactly",
}
PURPOSE = {
    "pass": "How much cheaper is it to read all cgroups at once by BPF, as `freshet serve` does, than "
            "to open and parse each one's `cpu.stat`?",
    "scrape": "Can a monitoring system ask `freshet serve` often, and does the daemon stay small?",
    "update": "What does a program pay for each update of a counter, by itself and while others read "
              "it, compared with other ways to count?",
    "read": "What does it cost to read one group of a program, or the sum of thousands, when few or "
            "many of them were updated since the last flush?",
    "designs": "Must counters choose between reads that are fresh, reads that are whole, and reads "
               "that wait for nobody? Each design that kernel developers argued for is rebuilt here "
               "as a program, and all get the same work and the same checks.",
    "hammer": "What do many pollers of cgroup statistics get, and what do they take from the work in "
              "those cgroups, when they read files of the kernel or Freshet's segment?",
    "barriers": "Is it true that a memory fence, an atomic addition or masked interrupts are too dear "
                "for an update of a statistic? Each is measured beside something real.",
    "timeline": "Three statistics, one flusher and one reader that comes at an unlucky moment: what "
                "does each design make of it? Simulated, so that it comes out the same everywhere.",
}
COLUMNS = {
    "designs": {
        "backend": "how it is made", "threads": "threads that update, and that read",
        "owners": "groups that are counted for", "slots": "CPUs there could be, each with its cells",
        "set_size": "stats that are updated and read together",
        "update_ns": "ns an update takes", "flush_us": "µs of CPU time a flush of everything takes",
        "hold_max_us": "µs a lock was held at the longest in a flush",
        "read_p50_ns": "ns half of the reads took less than",
        "read_p99_ns": "ns 99 % of the reads took less than", "read_max_us": "µs the longest read took",
        "reads_per_s": "reads a second, each reader", "checked_reads": "reads that were checked",
        "stale": "reads that missed an update that had ended before they began",
        "torn": "reads whose stats do not belong together",
        "torn_max_skew": "by how many updates, at most", "excess": "reads that saw too much",
        "lost": "updates that never arrived", "backwards": "reads of less than an earlier read",
        "blocked_ms": "ms of the longest read while a flusher stood still for 100 ms",
        "updater_slowdown_pct": "% an updater is slower while one owner is polled",
        "others_slowdown_pct": "the same for one that updates other owners",
        "other_read_p99_ns": "ns of reads of another owner while one is polled",
        "other_alone_p99_ns": "the same while nobody polls", "loc": "lines of code",
        "tsan_off_s": "CPU seconds for 1M reads", "tsan_on_s": "the same under ThreadSanitizer",
        "tsan_races": "data races it reported", "update_spread_pct": "spread of update_ns in %",
    },
    "hammer": {
        "method": "how they read (open: open, read, close `cpu.stat`; kept: file kept open; segment: "
                  "Freshet; segment-max-age-0: Freshet, a new pass for each read; bpf+flush: BPF that "
                  "flushes; spin: pollers that read nothing; none: no pollers)",
        "readers": "pollers, each of its own cgroup", "pace_us": "µs between reads; 0: no pause",
        "mean_s_per_100k": "seconds for 100,000 reads, waiting for a CPU included",
        "spread_pct": "spread in %", "cpu_s_per_100k": "CPU seconds for them",
        "reads_s": "reads a second, all pollers", "worst_us": "µs the longest read took",
        "age_p99_us": "µs old what was read is, at most, in 99 % of the reads",
        "daemon_cpu_pct": "% of a CPU that `freshet serve` takes",
        "workload_ratio": "work done in the cgroups, of that beside spin",
        "ratio_spread_pct": "its spread in %", "units_s": "units of work a second",
        "switches_s": "context switches a second", "sys_s": "CPU seconds a second in the kernel",
        "rstat_pct": "% of samples in the kernel's flushing", "windows": "turns",
    },
    "barriers": {
        "where": "in a program or in the kernel (BPF)", "op": "what is added",
        "beside": "to what", "count": "how many in succession", "ns": "ns each one adds",
        "pct": "% all of them add", "min_ns": "least ns", "spread_ns": "spread in ns",
        "published_pct": "% published on the kernel list",
    },
    "pass": {
        "method": "how (open, pread: `cpu.stat`; bpf: one pass of `freshet serve`)",
        "ns_per_cgroup": "ns for each cgroup", "spread_pct": "spread in %", "runs": "passes timed",
        "cold_ns": "ns with cold caches", "cpu_pct": "% of a CPU",
    },
    "read": {
        "what": "what is read", "from": "by the program itself or by another", "dirty": "groups "
        "updated since the last flush", "slots": "CPU slots in use", "pollers": "others that read "
        "meanwhile", "batch": "reads timed at once", "ns": "median ns of a read",
        "min_ns": "least ns", "p99_ns": "ns of the slowest hundredth",
        "bytes_per_group": "memory of a group", "cell_bytes": "of it for each CPU slot",
    },
    "update": {
        "what": "the counter", "threads": "threads that update", "cells": "counters among which one "
        "is picked", "pollers": "threads that read meanwhile", "poll": "what they read",
        "ns": "median ns of an update", "min_ns": "least ns", "spread_pct": "spread in %",
        "of_plain": "times a plain addition", "lock_add_x": "times faster than an atomic addition",
        "prometheus_x": "times faster than prometheus-cpp", "slower_pct": "% slower than unread",
        "reads_s": "reads a second",
    },
    "scrape": {
        "first_ms": "ms of the first answer after a pass", "repeat_ms": "ms of the same again",
        "gzip_first_ms": "ms of a first one compressed", "bytes": "size of an answer",
        "rss_kb": "memory of the daemon", "cpu_pct_at_1hz": "% of a CPU at a pass a second",
        "cpu_pct_at_10hz": "at ten",
    },
    "timeline": {
        "reader_at": "when the reader comes", "values": "what it gets; 1 1 1 is right",
        "finished_at": "when it has them", "waited": "how long of that it waited",
        "fresh": "no update missed", "whole": "the three belong together",
        "hold_max": "longest hold of a lock",
    },
}
TIMELINE = ("Time goes to the right. The three numbers behind a reader are the values it got; 1,1,1 is "
            "right. See who waits: readers that need the lock wait for the flusher. Freshet's reader "
            "waits for nobody, but reads more words, so it is the slowest when nobody flushes.")


def explain(bench, columns):
    """One line about the columns that a table has; "" if nothing is known of them."""
    words = COLUMNS.get(bench, {})
    known = [f"{column}: {words[column]}" for column in columns if column in words]
    return "Columns: " + "; ".join(known) + ".\n" if known else ""
