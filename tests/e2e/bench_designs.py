# SPDX-License-Identifier: MIT
"""freshet-bench designs: its rows are complete, and show what the designs do wrong.

How fast they are is not tested: this machine may be busy. But logic does not depend on that: who keeps
a promise keeps it in each of a million reads, and who waits for a stopped flusher waits.
"""
import functools
import json
import os
import subprocess
import time

from freshet import TREE
from tap import equal, expect, note, run, skip, test

BENCH = os.environ.get("FRESHET_BENCH") or os.path.join(TREE, "build", "freshet-bench")
KEYS = ["design", "backend", "threads", "owners", "slots", "set_size", "update_ns", "flush_us",
        "hold_max_us", "read_p50_ns", "read_p99_ns", "read_max_us", "reads_per_s", "stale", "torn",
        "torn_max_skew", "lost", "backwards", "blocked_ms", "updater_slowdown_pct", "tsan_races",
        "loc"]
LOCKS = ["global-lock", "global-lock-nosync", "lock-break", "lock-break-8", "subsystem-lock",
         "subsystem-lock-nofence"]
DESIGNS = LOCKS + ["atomic", "seqlock", "seqlock-fresh", "freshet-fallback"]
OURS = ["freshet", "freshet-fallback"]
CONFIGURATIONS = [(8, 300, 64, 3), (2, 4, 2, 16), (8, 300, 256, 16)]


@functools.cache
def result():
    began = time.monotonic()
    done = subprocess.run([BENCH, "designs", "--quick", "--json"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=280)
    equal(done.returncode, 0, done.stderr)
    note(f"{time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}")
    return json.loads(done.stdout)


def rows(design):
    return [r for r in result()["rows"] if r["design"] == design]


def total(design, key):
    return sum(r[key] for r in rows(design))


def ours():
    return [d for d in OURS if rows(d)]


def two_cpus():
    return len(os.sched_getaffinity(0)) > 1


@test
def complete():
    """Each design in each configuration, keys in order, numbers where there must be some."""
    for design in DESIGNS + (["freshet"] if rows("freshet") else []):
        equal([(r["threads"], r["owners"], r["slots"], r["set_size"]) for r in rows(design)],
              CONFIGURATIONS, design)
        for row in rows(design):
            equal(list(row)[:len(KEYS)], KEYS)
            for key in "update_ns", "flush_us", "loc":
                expect(row[key] > 0, (key, row))
            # Nothing read at all: of a seqlock's writer that had to wait for a CPU.
            if row["read_p50_ns"] is not None:
                expect(row["read_p50_ns"] <= row["read_p99_ns"] <=
                       row["read_max_us"] * 1000 * 1.04 + 1, row)
            expect(row["checked_reads"] > 0, row)
            expect((row["hold_max_us"] is None) == (design in OURS), row)
            equal(row["blocked_ms"] is not None, two_cpus(), row)
    equal({r["design"] for r in result()["rows"]} - {"freshet"}, set(DESIGNS))


@test
def promises_are_kept():
    for design in ours():
        for key in "stale", "torn", "torn_max_skew", "lost", "backwards", "excess":
            equal(total(design, key), 0, (design, key))
    for design in set(LOCKS) - {"global-lock-nosync", "subsystem-lock-nofence"}:
        for key in "stale", "torn", "lost", "backwards", "excess":
            equal(total(design, key), 0, (design, key))


@test
def what_others_lack_shows():
    """The bench looks for it until it was seen some times; what it expects of rivals is no goal."""
    expect(total("seqlock", "stale") > 0, "seqlock: nobody reads what was not flushed")
    expect(total("atomic", "stale") > 0 and total("atomic", "torn") > 0)
    if two_cpus():
        expect(total("global-lock-nosync", "torn") > 0)


@test
def bars_and_checks():
    """Bars are of Freshet's goals alone; each says what the rows do."""
    bars = {b["bar"]: b for b in result()["bars"]}
    checks = {c["check"]: c for c in result()["checks"]}
    for what in bars:
        expect(what.split(":")[0] in OURS, what)
    for what in checks:
        expect(what.split(":")[0] in set(DESIGNS) - set(OURS), what)
    equal(checks["atomic: torn reads"]["value"], total("atomic", "torn"))
    for design in ours():
        expect(bars[f"{design}: reads and sums against its promises"]["met"], bars)


@test
def stopped_flusher():
    if not two_cpus():
        skip("needs two CPUs")
    for design in LOCKS + ["seqlock", "seqlock-fresh"]:  # where it is stopped is luck
        expect(max(row["blocked_ms"] for row in rows(design)) >= 90, rows(design))
    for design in ours():
        for row in rows(design):
            expect(row["blocked_ms"] < 90, row)  # how soon: a bar


@test
def races():
    if all(r["tsan_races"] is None for r in result()["rows"]):
        skip("no ThreadSanitizer")
    expect(rows("global-lock-nosync")[0]["tsan_races"] > 0)
    for design in DESIGNS:
        if design != "global-lock-nosync":
            equal(rows(design)[0]["tsan_races"], 0, design)


@test
def plots():
    lines = {(line["plot"], line["line"]): line["points"] for line in result()["lines"]}
    for design in DESIGNS + (["freshet"] if rows("freshet") else []):
        latency = [y for _, y in lines["read-latency", design]]
        expect(latency and latency == sorted(latency), latency)
        if two_cpus():
            equal([x for x, _ in lines["pollers", design]], [0, 1, 2, 4, 8])
            expect(all(x in (1, 3, 10, 30, 100) for x, _ in lines["stopped-flusher", design]))


@test
def notes_fit():
    """Each says all it has to say: none was cut off."""
    for text in result()["notes"]:
        expect(len(text.encode()) < 319, text)


run()
