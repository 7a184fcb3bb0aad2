# SPDX-License-Identifier: MIT
"""freshet-bench hammer: its rows, and that it leaves no cgroup, file or process behind however it ends.

Whether bars are met is not tested: this machine may be busy. The program is $FRESHET_BENCH, else
build/freshet-bench of this tree.
"""
import glob
import json
import os
import signal
import subprocess
import tempfile
import time

from freshet import TREE, cgroup2_mount, wait_until
from tap import equal, expect, note, run, skip, test

BENCH = os.environ.get("FRESHET_BENCH") or os.path.join(TREE, "build", "freshet-bench")
KEYS = ["method", "cgroups", "readers", "pace_us", "mean_s_per_100k", "worst_us", "workload_ratio",
        "sys_s", "rstat_pct", "age_p99_us", "daemon_cpu_pct"]
READING = ["open", "kept", "bpf+flush", "segment", "segment-max-age-0"]


def processes(marker):
    """pids whose environment has the marker: the bench and all that it started, the daemon too."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as f:
                if marker.encode() in f.read().split(b"\0"):
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return found


class Bench:
    def __init__(self, *arguments):
        if os.geteuid() or not cgroup2_mount():
            skip("needs root and cgroup2")
        self.marker = f"FRESHET_TEST_BENCH={os.getpid()}-{time.monotonic_ns()}"
        name, _, value = self.marker.partition("=")
        self.process = subprocess.Popen([BENCH, "hammer", *arguments], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, name: value})
        self.pid = self.process.pid
        self.folder = f"{cgroup2_mount()}/freshet-bench-{self.pid}"

    def end(self, timeout):
        """Its output, after a look at what it left."""
        out, err = self.process.communicate(timeout=timeout)
        equal(glob.glob(self.folder) + glob.glob(f"/dev/shm/freshet-bench-{self.pid}"), [])
        wait_until(lambda: not processes(self.marker), "no process of the bench's is left")
        return out, err

    def wait_for_work(self):
        """Until the daemon, the pollers and the processes in the cgroups run."""
        wait_until(lambda: self.process.poll() is not None or len(processes(self.marker)) > 312,
                   "the bench is at work", 60)
        expect(self.process.poll() is None, "it ended early")

    def in_cgroups(self):
        """pids of the processes that work in its cgroups."""
        found = []
        for directory, _, _ in os.walk(self.folder):
            with open(os.path.join(directory, "cgroup.procs")) as f:
                found += [int(line) for line in f]
        return found


@test
def quick():
    began = time.monotonic()
    bench = Bench("--quick", "--json")
    out, err = bench.end(240)
    seconds = time.monotonic() - began
    equal(bench.process.returncode, 0, err)
    load = os.getloadavg()[0]
    note(f"{seconds:.0f} s, load {load:.1f}")
    # That it ends in time: end(). How soon depends on what else takes this machine's CPUs.
    result = json.loads(out)
    equal(result["bench"], "hammer")
    for bar in result["bars"]:
        note(f"{'met' if bar['met'] else 'NOT met'}: {bar['bar']} {bar['value']}")
    equal(len(result["bars"]), 3)

    rows = {(r["method"], r["cgroups"], r["readers"], r["pace_us"]): r for r in result["rows"]}
    equal(len(rows), len(result["rows"]), "no row twice")
    missing = [text.split(": ")[1] for text in result["notes"] if text.startswith("Missing: ")]
    flush = "bpf+flush" not in missing
    for r in result["rows"]:
        equal(list(r)[:len(KEYS)], KEYS)
        expect(r["units_s"] > 0 and r["switches_s"] > 0 and r["windows"] >= 1, r)
    for cgroups, readers, pace, methods in ((300, 8, 0, READING), (300, 8, 1000, ["open", "segment"]),
                                            (4, 2, 0, READING)):
        base = rows["spin", cgroups, readers, pace]
        equal((base["workload_ratio"], base["age_p99_us"], base["daemon_cpu_pct"]), (1, None, None))
        for method in methods if flush else [m for m in methods if m != "bpf+flush"]:
            row = rows[method, cgroups, readers, pace]
            for key in "mean_s_per_100k", "worst_us", "workload_ratio", "age_p99_us", "reads_s":
                expect(row[key] > 0, (key, row))
            expect(row["mean_s_per_100k"] * 10 <= row["worst_us"], "the mean is not above the worst")
            expect(pace == 0 or row["reads_s"] <= readers * 1e6 / pace * 1.2, row)
            if method.startswith("segment"):
                expect(0 < row["daemon_cpu_pct"] < 100, row)
            else:
                equal(row["daemon_cpu_pct"], None)
        reads = {method: rows[method, cgroups, readers, pace]["cpu_s_per_100k"] for method in methods
                 if (method, cgroups, readers, pace) in rows}
        if pace == 0:
            expect(reads["open"] > reads["kept"] > reads["segment"], reads)
        expect(rows["open", cgroups, readers, pace]["mean_s_per_100k"] >
               rows["segment", cgroups, readers, pace]["mean_s_per_100k"])
    expect(("none", 300, 0, 0) in rows and ("none", 4, 0, 0) in rows)
    if rows["open", 300, 8, 0]["rstat_pct"] is None:
        expect("rstat_pct" in missing, missing)
    else:
        expect(rows["kept", 300, 8, 0]["rstat_pct"] > rows["segment", 300, 8, 0]["rstat_pct"])
    equal({(line["plot"], line["line"]) for line in result["lines"]},
          {(plot, m) for m in READING if flush or m != "bpf+flush"
           for plot in ("hammer-read", "hammer-workload")} | {("hammer-workload", "spin")})
    expect(any("before" in text and "after" in text and "ratio" in text for text in result["notes"]))


@test
def interrupted():
    bench = Bench("--quick")
    bench.wait_for_work()
    bench.process.send_signal(signal.SIGINT)
    bench.end(30)
    equal(bench.process.returncode, -signal.SIGINT)


@test
def a_worker_is_killed():
    bench = Bench("--quick")
    bench.wait_for_work()
    os.kill(bench.in_cgroups()[0], signal.SIGKILL)
    _, err = bench.end(60)
    equal(bench.process.returncode, 1)
    expect("ended (signal 9)" in err, err)


@test
def the_daemon_is_killed():
    bench = Bench("--quick")
    bench.wait_for_work()
    daemons = []
    for pid in processes(bench.marker):
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            if b"\0serve\0" in f.read():
                daemons.append(pid)
    equal(len(daemons), 1)
    os.kill(daemons[0], signal.SIGKILL)
    _, err = bench.end(60)
    equal(bench.process.returncode, 1)
    expect("ended (signal 9)" in err, err)


@test
def the_bench_is_killed():
    """Its processes end with it; the next one removes the cgroups."""
    bench = Bench("--quick")
    bench.wait_for_work()
    bench.process.kill()
    bench.process.communicate(timeout=30)
    wait_until(lambda: not processes(bench.marker), "no process of the bench's is left")
    following = Bench("--quick")
    following.wait_for_work()
    equal(glob.glob(bench.folder), [])
    following.process.send_signal(signal.SIGTERM)
    following.end(30)
    equal(following.process.returncode, -signal.SIGTERM)


@test
def without_privilege():
    if os.geteuid():
        skip("is without it anyway")
    if not cgroup2_mount():
        skip("no cgroup2")
    nobody = 65534
    with tempfile.TemporaryDirectory() as directory:  # where nobody may come
        os.chmod(directory, 0o755)
        program = os.path.join(directory, "freshet-bench")
        with open(BENCH, "rb") as source, open(program, "wb") as copy:
            copy.write(source.read())
        os.chmod(program, 0o755)
        done = subprocess.run([program, "hammer", "--quick"], capture_output=True, text=True,
                              timeout=30, user=nobody, group=nobody, extra_groups=[])
    equal(done.returncode, 1)
    expect("run it as root" in done.stderr and not done.stdout, done)


run()
