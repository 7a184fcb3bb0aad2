# SPDX-License-Identifier: MIT
"""What the rows of a bench come to, in one table or a few sentences; all of it is computed from rows.

A bench that has no such rows (an older or a quick one) has fewer sentences, or none.
"""
import collections
import math

from . import tables

MODELS = {
    "global-lock": "one spinlock over all CPUs (Linux up to 6.14)",
    "global-lock-nosync": "the same without seqcounts and fences",
    "lock-break": "the lock dropped and retaken for each CPU (Linux 6.15)",
    "lock-break-8": "the lock dropped every 8 CPUs (proposed for 6.15)",
    "subsystem-lock": "a lock for each subsystem, updates without one (Linux 6.17), with a fence",
    "subsystem-lock-nofence": "the same without the fence (Linux 6.17 as it is)",
    "atomic": "totals as atomics, no lock over all CPUs (proposed in 2025)",
    "seqlock": "readers take no lock and do not flush (asked for in 2026)",
    "seqlock-fresh": "the same, and readers flush first",
    "freshet": "this library: cells by CPU, readers add what was not flushed",
    "freshet-fallback": "the same on C11 atomics, without restartable sequences",
}
WAITS_MS = 5  # a read that took longer waited for the flusher, which was stopped for 100 ms
SAME = 1.05   # times: not told apart

# Less is better. share: the value is in per cent of something, and may be 0 or less.
Measure = collections.namedtuple("Measure", "key what unit share", defaults=[False])
MEASURES = [
    Measure("read_p50_ns", "a read (median)", " ns"), Measure("read_p99_ns", "a read (p99)", " ns"),
    Measure("update_ns", "an update", " ns"), Measure("flush_us", "a flush", " µs"),
    Measure("updater_slowdown_pct", "how much one poller slows an updater down", " %", True),
    Measure("loc", "lines of code", ""),
]


def digits(number, unit=""):
    """Three significant digits and the unit."""
    if number is None or not math.isfinite(number):
        return "nan"
    if number:
        number = round(number, 2 - math.floor(math.log10(abs(number))))
    text = f"{number:,.0f}" if number == int(number) else f"{number:,.12g}"
    return text + unit


def get(row, key):
    return float(row.get(key, "nan"))


class Designs:
    """The rows of designs: sums over all of them, and each design's row at the corner."""

    def __init__(self, rows):
        self.rows = [row for row in rows if "design" in row]
        corner, self.where = tables.choose(self.rows, tables.CORNER)
        self.corner = {row["design"]: row for row in corner}

    def of(self, design, key):
        values = [get(row, key) for row in self.rows if row["design"] == design]
        return [v for v in values if math.isfinite(v)]

    def faults(self, design):
        """Of "stale" and "torn", those that its reads were."""
        return [fault for fault in ("stale", "torn") if sum(self.of(design, fault))]

    def waits(self, design):
        """Whether for a stopped flusher; None: it was not tried."""
        blocked = self.of(design, "blocked_ms")
        return max(blocked) >= WAITS_MS if blocked else None

    def all_three(self, design):
        return not self.faults(design) and self.waits(design) is False

    def at_corner(self):
        return ", ".join(f"{value} {key.replace('set_size', 'stats in a set')}"
                         for key, value in self.where.items())

    def table(self):
        def no_if(design, fault):
            count, reads = sum(self.of(design, fault)), sum(self.of(design, "checked_reads"))
            return f"no: {digits(count)} of {digits(reads)} {fault}" if count else "yes"

        def blocked(design):
            waits = self.waits(design)
            if waits is None:
                return "–"
            return f"{'yes' if waits else 'no'}: {digits(max(self.of(design, 'blocked_ms')), ' ms')}"

        return tables.markdown(
            ["design", "in one line", "fresh?", "whole?", "waits for a stopped flusher?",
             "median read, ns", "update, ns", "flush, µs", "longest lock hold, µs", "lines"],
            [[design, MODELS.get(design, ""), no_if(design, "stale"), no_if(design, "torn"),
              blocked(design)] + [row.get(key, "nan") for key in
                                  ("read_p50_ns", "update_ns", "flush_us", "hold_max_us", "loc")]
             for design, row in self.corner.items()])

    def name(self, design):
        faults = self.faults(design)
        return design + (f" (its reads are {' and '.join(faults)})" if faults else "")

    def compare(self, measure):
        """("ours", "rival" or "same", sentence); None: nothing to compare."""
        values = {design: get(row, measure.key) for design, row in self.corner.items()}
        ours = values.get("freshet", math.nan)
        rivals = {design: value for design, value in values.items()
                  if not design.startswith("freshet") and math.isfinite(value)}
        if not math.isfinite(ours) or not rivals:
            return None

        def against(rival):
            value = rivals[rival]
            text = f"{self.name(rival)} {digits(value, measure.unit)}"
            low, high = sorted((ours, value))
            if measure.share or low <= 0 or high < SAME * low:
                return text
            return f"{text}, {digits(high / low)} times {'as much' if value > ours else 'less'}"

        best = min(rivals, key=rivals.get)
        distance = rivals[best] - ours
        text = f"{measure.what}: Freshet {digits(ours, measure.unit)}, the best rival {against(best)}"
        if abs(distance) < (SAME - 1) * (100 if measure.share else ours):
            return "same", text
        if distance > 0:
            return "ours", text
        sound = [rival for rival in rivals if not self.faults(rival)]
        if best not in sound and sound:
            next_best = min(sound, key=rivals.get)
            text += f"; of those whose reads are fresh and whole, {against(next_best)}"
        return "rival", text

    def verdict(self):
        """Sentences and lists, as Markdown."""
        if "freshet" not in self.corner:
            return
        whole = [d for d in self.corner if self.all_three(d) and not d.startswith("freshet")]
        found = collections.defaultdict(list)
        if self.all_three("freshet"):
            others = f"so are those of {', '.join(whole)}" if whole else "no rival's are"
            found["ours"].append("reads that are fresh, whole and wait for no stopped flusher, all "
                                 f"three at once: {others}")
        elif whole:
            found["rival"].append("reads that are fresh, whole and wait for no stopped flusher, all "
                                  f"three at once: {', '.join(whole)}; not so Freshet in this run")
        for measure in MEASURES:
            one = self.compare(measure)
            if one:
                found[one[0]].append(one[1])
        for key, head in (("ours", "Freshet is best at"), ("rival", "A rival is better at"),
                          ("same", "No difference worth the name (within 5 %)")):
            if found[key]:
                yield f"**{head}**\n\n" + "".join(f"- {text}\n" for text in found[key])
        yield ("An update of Freshet goes through an array of handles here, which costs it memory "
               "accesses; with the handle at hand it is cheaper: see [update](update.md).\n")


def designs(rows):
    found = Designs(rows)
    if not found.corner:
        return
    yield (f"With {found.at_corner()}; stale, torn and waiting: over all rows. Waiting: the longest "
           "read while a flusher was stopped for 100 ms. –: no lock that holds readers up.\n")
    yield found.table()
    yield from found.verdict()


def pick(rows, key, **where):
    """The numbers of that key in the rows that have these values, or the nearest; by the first key
    of a row."""
    rows, _ = tables.choose(rows, where)
    return {next(iter(row.values())): get(row, key) for row in rows
            if math.isfinite(get(row, key))}


def times(more, less):
    return f"{digits(more / less)} times" if less > 0 else "nan"


def hammer(rows):
    polled = [row for row in rows if row.get("readers") not in (None, "0")]
    at = tables.choose(polled, tables.HAMMER)
    seconds, kept = (pick(polled, key, **tables.HAMMER)
                     for key in ("mean_s_per_100k", "workload_ratio"))
    where = f"{at[1].get('cgroups')} cgroups, {at[1].get('readers')} readers without a pause"
    if not {"open", "segment"} <= seconds.keys():
        return
    text = (f"With {where}, 100,000 reads take {digits(seconds['segment'], ' s')} from the segment "
            f"and {digits(seconds['open'], ' s')} by opening `cpu.stat`, "
            f"{times(seconds['open'], seconds['segment'])} as long.")
    newest = seconds.get("segment-max-age-0")
    if newest:
        text += (" What the segment has is up to one pass old; to ask for a pass at each read "
                 f"(segment-max-age-0) takes {digits(newest, ' s')}: there ")
        text += (f"opening the file is better, by {times(newest, seconds['open'])}."
                 if newest > seconds["open"] else "it still beats opening the file.")
    if kept:
        text += (" The work in the cgroups keeps, of what it has beside pollers that read nothing: " +
                 ", ".join(f"{method} {digits(value)}" for method, value in kept.items()
                           if method != "spin") + ".")
    yield text + "\n"


def barriers(rows):
    for where, beside, what in (("user", "lookup", "a look-up of a path and a read"),
                                ("kernel", "bpf-loop", "a call of access(2)")):
        rows_of = [r for r in rows if r.get("where") == where and r.get("beside") == beside and
                   r.get("count") == "1"]
        costs = {r["op"]: (get(r, "ns"), get(r, "pct")) for r in rows_of
                 if r["op"] in ("fence", "mfence", "rseq", "signal-mask", "irq", "atomic-add")}
        if costs:
            yield (f"{where.capitalize()}: beside {what}, one costs " +
                   ", ".join(f"{op} {digits(ns, ' ns')} ({digits(pct, ' %')})"
                             for op, (ns, pct) in costs.items()) + ".\n")


def update(rows):
    ns = pick(rows, "ns", threads="1", cells="1", pollers="0")
    if {"plain", "rseq-single"} <= ns.keys():
        others = ", ".join(f"{what} {digits(ns[what], ' ns')}" for what in
                           ("lock-add-private", "mutex", "liburcu", "atomic-single") if what in ns)
        yield (f"One thread, one counter: Freshet {digits(ns['rseq-single'], ' ns')}, a plain "
               f"addition {digits(ns['plain'], ' ns')}" + (f"; {others}" if others else "") + ".\n")


def read(rows):
    ns = pick([r for r in rows if r.get("from") == "inside"], "ns", groups="10000", dirty="100",
              slots="1", pollers="0")
    if {"leaf", "root"} <= ns.keys():
        yield (f"10,000 groups, 100 of them updated since the last flush: a read of one takes "
               f"{digits(ns['leaf'], ' ns')}, one of the root {digits(ns['root'] / 1000, ' µs')}.\n")


def scrape(rows):
    for row in rows[:1]:
        yield (f"{digits(get(row, 'cgroups'))} cgroups: the first answer after a pass takes "
               f"{digits(get(row, 'first_ms'), ' ms')}, the next "
               f"{digits(get(row, 'repeat_ms'), ' ms')}; a pass a second takes {digits(get(row, 'cpu_pct_at_1hz'), ' %')} of a CPU.\n")


def of_pass(rows):
    ns = pick(rows, "ns_per_cgroup", cgroups="3000")
    if {"open", "pread", "bpf"} <= ns.keys():
        yield (f"About 3,000 cgroups, for each: open {digits(ns['open'], ' ns')}, pread "
               f"{digits(ns['pread'], ' ns')}, BPF {digits(ns['bpf'], ' ns')}.\n")


SUMMARIES = {"pass": of_pass, "scrape": scrape, "update": update, "read": read, "hammer": hammer,
             "barriers": barriers, "designs": designs}


def summary(result):
    """Markdown parts: what this bench found, first of all."""
    return list(SUMMARIES.get(result.name, lambda rows: [])(result.rows))
