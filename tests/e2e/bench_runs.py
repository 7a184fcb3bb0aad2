# SPDX-License-Identifier: MIT
"""freshet-bench: what it prints as JSON, how long it takes, and that it leaves nothing behind.

Whether bars are met is not tested: this machine may be busy. The program is $FRESHET_BENCH, else
build/freshet-bench of this tree.
"""
import glob
import json
import os
import signal
import subprocess
import time

from freshet import TREE, cgroup2_mount, wait_until
from tap import equal, expect, note, run, skip, test

BENCH = os.environ.get("FRESHET_BENCH") or os.path.join(TREE, "build", "freshet-bench")
QUICK_SECONDS = 45


def left_behind(pid):
    """Cgroups and temporary files of the bench that had this pid."""
    return (glob.glob(f"{cgroup2_mount()}/freshet-bench-{pid}") +
            glob.glob(f"/dev/shm/freshet-bench-{pid}"))


def start(*arguments):
    if arguments[0] in ("pass", "scrape") and (os.geteuid() or not cgroup2_mount()):
        skip("needs root and cgroup2")
    return subprocess.Popen([BENCH, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def quick(name):
    """The JSON of a quick run."""
    began = time.monotonic()
    process = start(name, "--quick", "--json")
    out, err = process.communicate(timeout=180)
    seconds = time.monotonic() - began
    equal(process.returncode, 0, err)
    load = os.getloadavg()[0]
    note(f"{name}: {seconds:.0f} s, load {load:.1f}")
    # The limit is for a machine that does nothing else; the bench itself loads it with up to 2.
    expect(seconds < QUICK_SECONDS * max(1, (load - 1) / os.cpu_count()), f"{seconds:.0f} s")
    equal(left_behind(process.pid), [])
    result = json.loads(out)
    equal(result["bench"], name)
    expect(result["machine"]["possible_cpus"] >= result["machine"]["cpus"] >= 1)
    expect(result["machine"]["kernel"].startswith(os.uname().release))
    for bar in result["bars"]:
        limit, value = bar.get("below"), bar["value"]
        equal(bar["met"], value < limit if limit is not None else value >= bar["at_least"], bar)
        note(f"{'met' if bar['met'] else 'NOT met'}: {bar['bar']} {value}")
    return result


@test
def usage():
    for arguments, code in ((["--help"], 0), (["--version"], 0), ([], 2), (["nothing"], 2),
                            (["pass", "scrape"], 2), (["pass", "--no-such"], 2)):
        done = subprocess.run([BENCH, *arguments], capture_output=True, text=True, timeout=10)
        equal(done.returncode, code, arguments)
        expect(done.stdout if code == 0 else done.stderr, arguments)
        expect(not (done.stderr if code == 0 else done.stdout), arguments)


@test
def quick_pass():
    rows = {(r["method"], r["cgroups"]): r for r in quick("pass")["rows"]}
    for method in "open", "pread", "bpf", "bpf-walk", "segment":
        for count in 300, 3000:
            row = rows[method, count]
            expect(row["ns_per_cgroup"] > 0 and row["runs"] >= 10, row)
    for count in 300, 3000:
        expect(rows["open", count]["ns_per_cgroup"] > rows["bpf-walk", count]["ns_per_cgroup"])
    serve = rows["serve-10hz", 10000]
    expect(0 < serve["cpu_pct"] < 100, serve)


@test
def quick_scrape():
    (row,) = quick("scrape")["rows"]
    equal(sorted(row), sorted(["cgroups", "first_ms", "repeat_ms", "gzip_first_ms", "bytes", "rss_kb",
                               "cpu_pct_at_1hz", "cpu_pct_at_10hz"]))
    equal(row["cgroups"], 3000)
    expect(all(value > 0 for value in row.values()), row)
    expect(row["bytes"] > 3000 * 3 * 40, "three lines for each cgroup")


@test
def quick_update():
    result = quick("update")
    rows = {(r["what"], r["threads"], r["cells"], r["pollers"], r.get("poll")): r
            for r in result["rows"]}
    whats = ["plain", "atomic-single", "atomic-set3", "atomic-histogram", "lock-add-private",
             "lock-add-shared", "mutex"]
    missing = [text.split(":")[1].strip() for text in result["notes"] if text.startswith("Missing")]
    whats += {"ck", "liburcu", "prometheus-cpp"} - set(missing)
    note(f"missing: {missing}")
    rseq = ("rseq-single", 1, 1, 0, None) in rows
    whats += ["rseq-single", "rseq-set3", "rseq-histogram"] if rseq else []
    two = len(os.sched_getaffinity(0)) > 1
    for what in whats:
        for threads in (1, 2) if two else (1,):
            for cells in 1, 1024:
                row = rows[what, threads, cells, 0, None]
                expect(0 < row["min_ns"] <= row["ns"] < 100000, row)
    plain, mutex = rows["plain", 1, 1, 0, None], rows["mutex", 1, 1, 0, None]
    expect(plain["ns"] < mutex["ns"], (plain, mutex))
    for what in ["plain", "atomic-single"] + (["rseq-single", "rseq-set3"] if rseq else []):
        for poll in ("own-5k", "other-flat", "own-flat") if two else ():
            for pollers in 1, 100:
                row = rows[what, 1, 1, pollers, poll]
                expect(row["ns"] > 0 and row["reads_s"] > 0, row)
                if poll == "own-5k":
                    expect(row["reads_s"] < 10000, row)


@test
def quick_read():
    rows = quick("read")["rows"]
    reads = {(r["what"], r["from"], r["groups"], r["dirty"], r["slots"], r["pollers"]): r
             for r in rows if r["what"] != "memory"}
    for source in "inside", "outside":
        for dirty in 1, 10, 100, 1000, 10000:
            for what in "leaf", "root":
                row = reads[what, source, 10000, dirty, 1, 0]
                expect(0 < row["min_ns"] <= row["ns"] <= row["p99_ns"], row)
        # What a read must look at, not how fast: ten thousand groups take longer than one.
        expect(reads["root", source, 10000, 10000, 1, 0]["ns"] >
               reads["root", source, 10000, 1, 1, 0]["ns"])
        expect(reads["leaf", source, 10000, 100, 1, 0]["ns"] <
               reads["root", source, 10000, 100, 1, 0]["ns"])
        expect(reads["snapshot", source, 10000, 100, 1, 0]["ns"] > 0)
    for dirty in 1, 10, 100, 1000, 10000:
        expect(reads["flush", "inside", 10000, dirty, 1, 0]["ns"] > 0)
    memory = [r for r in rows if r["what"] == "memory"]
    expect(memory and all(r["bytes_per_group"] > r["cell_bytes"] > 0 for r in memory), memory)


@test
def quick_barriers():
    result = quick("barriers")
    rows = {(r["where"], r["op"], r["count"]): r for r in result["rows"]}
    for row in rows.values():
        equal(list(row)[:5], ["where", "op", "count", "ns", "pct"])
    missing = [text for text in result["notes"] if text.startswith("Missing")]
    note(f"missing: {missing}")
    for beside in "", "open+":
        for op in "asymmetric", "fence", "lock-add", "signal-mask", "rseq":
            for count in 1, 4, 16:
                row = rows["user", beside + op, count]
                expect(op == "rseq" or row["ns"] is not None, row)
        # What differs by far, however busy the machine: two system calls, and no instruction.
        expect(rows["user", beside + "signal-mask", 16]["ns"] >
               rows["user", beside + "asymmetric", 16]["ns"])
    kernel = not any("kernel" in text for text in missing)
    for op in "fence", "atomic-add", "irq":
        for count in 1, 4, 16:
            row = rows["kernel", op, count]
            expect(not kernel or row["ns"] is not None, row)
            expect(not kernel or count < 16 or row["ns"] > 0, row)


def interrupted(by, when):
    """Ends a bench by a signal once when() is true."""
    process = start("pass", "--quick")
    wait_until(lambda: when(process.pid) or process.poll() is not None, "the bench has begun", 60)
    expect(process.poll() is None, process.stderr)
    process.send_signal(by)
    process.communicate(timeout=30)
    equal(process.returncode, -by)
    equal(left_behind(process.pid), [])


@test
def interrupted_while_it_makes_cgroups():
    interrupted(signal.SIGINT, lambda pid: glob.glob(f"{cgroup2_mount()}/freshet-bench-{pid}/*"))


@test
def terminated_while_it_measures():
    interrupted(signal.SIGTERM, lambda pid: os.path.exists(f"/dev/shm/freshet-bench-{pid}/pass"))


@test
def killed_and_cleaned_by_the_next():
    process = start("pass", "--quick")
    folder = f"{cgroup2_mount()}/freshet-bench-{process.pid}"
    wait_until(lambda: glob.glob(folder + "/*"), "the bench has begun", 60)
    process.kill()
    process.communicate(timeout=30)
    expect(os.path.isdir(folder), "nobody was there to remove it")
    interrupted(signal.SIGINT, lambda pid: glob.glob(f"{cgroup2_mount()}/freshet-bench-{pid}/*"))
    equal(left_behind(process.pid), [])


run()
