# SPDX-License-Identifier: MIT
"""tools/bench-report on a made-up freshet-bench: what it writes, and what is left if things fail.

$FRESHET_BENCH is a script here, which prints the JSON that stands in a file beside it, NAME.json,
and fails for a bench that has no such file.
"""
import csv
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import xml.dom.minidom

from freshet import TREE
from tap import equal, expect, run, skip, test

REPORT = os.path.join(TREE, "tools", "bench-report")
SCRATCH = tempfile.mkdtemp(prefix="freshet-report-")
NAMES = ["pass", "scrape", "update", "read", "designs", "hammer", "barriers", "timeline"]
FAKE = """#!/bin/sh
here=${0%/*}
echo "$@" >>"$here/calls"
if [ "$1" = timeline ]; then
	shift $(($# - 1))
	echo '<svg xmlns="http://www.w3.org/2000/svg"/>' >"$1" || exit 1
	cat "$here/timeline.json"
else
	cat "$here/$1.json" || exit 7
fi
"""
SEED = [1]


def number():
    """Another one each time, neither round nor repeated."""
    SEED[0] = SEED[0] * 48271 % 2147483647
    return SEED[0] % 9973 / 16


def line(plot, name, xs):
    return {"plot": plot, "line": name, "points": [[x, 1 + number()] for x in xs]}


def design_rows():
    return [{"design": d, "backend": "rseq" if d == "freshet" else "c11", "threads": t, "owners": o,
             "slots": s, "set_size": k, "update_ns": number(), "read_p50_ns": number(),
             "torn": 12345, "blocked_ms": number(), "tsan_races": None, "loc": 100}
            for d in ("global-lock", "atomic", "seqlock", "freshet") for t in (1, 2, 8)
            for o in (4, 300) for s in (2, 64, 256) for k in (1, 3, 16)]


def made_up(name):
    rows = [{"what": "a|b <c> d_e", "n": 1, "ns": number(), "none": None},
            {"what": "plain", "n": 22350508, "ns": number(), "none": number()},
            {"method": "of another shape", "values": [1, 0, 0]}]
    lines = [line(f"odd {name}", "it's <one> & another", (1, 4, 9))]
    if name == "designs":
        rows = design_rows()
        lines = [line(plot, f"design-{i}", (1, 10, 100, 1000))
                 for plot in ("read-latency", "pollers", "stopped-flusher") for i in range(10)]
        lines += [line("read-latency", "atomic", (1, 10)),
                  {"plot": "read-latency", "line": "nothing", "points": []}]
    elif name == "pass":
        lines = [line("pass-cost", how, (10, 300, 10000)) for how in ("open", "pread", "bpf")]
    elif name == "hammer":
        rows = [{"method": m, "cgroups": 300, "readers": r, "pace_us": 0,
                 "mean_s_per_100k": number()} for m in ("open", "segment") for r in (1, 8)]
        lines = [line("hammer-workload", how, (1, 2, 8, 32)) for how in ("open", "segment")]
    return {"bench": name, "machine": {"cpu": f"The CPU of {name}", "cpus": 2, "possible_cpus": 4,
                                       "kernel": "6.18 x86_64", "load": 0.05, "cpus_in_use": 0.01},
            "rows": rows, "lines": lines,
            "bars": [{"bar": "good", "value": number(), "below": 1e6, "unit": " us", "met": True},
                     {"bar": "better", "value": number(), "at_least": 1e6, "unit": "x",
                      "met": False}],
            "checks": [{"check": "is bad", "value": number(), "at_least": 1, "unit": "",
                        "met": True}] if name == "designs" else [],
            "notes": [f"How {name} was measured.", "cgroups |  ns", f"      3 | {number():4}",
                      "The end."]}


class Place:
    """A directory with the made-up program and its results."""

    def __init__(self, name):
        self.path = os.path.join(SCRATCH, name)
        self.results = os.path.join(self.path, "docs", "results")
        self.made = {}
        os.makedirs(self.path)
        self.program = os.path.join(self.path, "bench")
        with open(self.program, "w", encoding="utf-8") as f:
            f.write(FAKE)
        os.chmod(self.program, 0o755)
        for name in NAMES:
            self.offer(name, made_up(name))

    def offer(self, name, what):
        self.made[name] = what
        with open(os.path.join(self.path, name + ".json"), "w", encoding="utf-8") as f:
            f.write(what if isinstance(what, str) else json.dumps(what))

    def refuse(self, name):
        os.unlink(os.path.join(self.path, name + ".json"))

    def run(self, *arguments, tool=REPORT, python=sys.executable, **more):
        """Of another tool, which is not this tree's, without --results."""
        environment = dict(os.environ, FRESHET_BENCH=self.program, **more.pop("env", {}))
        where = ["--results", self.results] if tool == REPORT else []
        command = [python, tool, *where, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True,
                              timeout=120, **more)

    def read(self, name):
        with open(os.path.join(self.results, name), encoding="utf-8") as f:
            return f.read()

    def all(self):
        return {name: self.read(name) for name in os.listdir(self.results)}

    def calls(self):
        with open(os.path.join(self.path, "calls"), encoding="utf-8") as f:
            return f.read().splitlines()

    def left_whole(self, before):
        """The results are as they were, and nothing lies beside them."""
        expect(self.all() == before, "the old results changed")
        equal(os.listdir(os.path.dirname(self.results)), ["results"])


def report_or_skip(place, *arguments):
    if not shutil.which("gnuplot"):
        skip("needs gnuplot")
    if os.geteuid() != 0:
        skip("needs root, as some benches do")
    done = place.run(*arguments)
    equal(done.returncode, 0, done.stderr)
    return done


def tables(markdown):
    """Each table as dicts, without the page's dashes and commas."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", markdown, re.M):
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
                for row in block.splitlines()]
        for alignment, *column in zip(*rows[1:]):
            expect(re.fullmatch("-+:?", alignment), block)
            numbers = [c for c in column if c]
            equal(alignment.endswith(":"), bool(numbers) and
                  all(re.fullmatch(r"-?[\d,.]+|–", c) for c in numbers), column)
        found.append([dict(zip(rows[0], [re.sub(r"(?<=\d),(?=\d)", "", c) for c in row]))
                      for row in rows[2:]])
    return found


def shown(value):
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "–" if value is None else str(value)


@test
def pages_say_what_was_measured():
    place = Place("pages")
    report_or_skip(place)
    equal([call.split()[:2] for call in place.calls()], [[name, "--json"] for name in NAMES])
    for name in NAMES:
        made, page = place.made[name], place.read(name + ".md")
        rows = [row for table in tables(page) for row in table]
        for text in made["machine"]["cpu"], made["machine"]["kernel"], made["notes"][0]:
            expect(text in page, f"{name}: no {text}")
        expect("\n```\n" + "\n".join(made["notes"][1:3]) + "\n```\n" in page, page)
        for bar in made["bars"]:
            (found,) = [r for r in rows if r.get("goal") == bar["bar"]]
            measured = found["measured"].removesuffix(bar["unit"].replace("u", "µ"))
            expect(abs(float(measured) / bar["value"] - 1) < 0.005, found)
            expect(len(measured.strip("0").replace(".", "")) <= 3, found)
            equal(found["result"], "met" if bar["met"] else "**NOT met**")
        equal([r["result"] for r in rows if "what is said of it" in r],
              ["as expected"] * len(made["checks"]))
        if len(made["rows"]) < 60:
            for row in made["rows"]:
                wanted = {key: re.sub(r"([|<>])", r"\\\1", shown(value))
                          for key, value in row.items()}
                expect(wanted in rows, f"{name}: {wanted} is in no table")
        with open(os.path.join(place.results, name + ".csv"), encoding="utf-8", newline="") as f:
            kept = [{k: v for k, v in row.items() if v} for row in csv.DictReader(f)]
        equal(kept, [{k: shown(v).replace("–", "nan") for k, v in row.items()}
                     for row in made["rows"]])
        equal(json.loads(place.read(name + ".json"))["lines"], made["lines"])
    index = place.read("README.md")
    (bars,) = [t for t in tables(index) if "goal" in t[0]]
    equal(len(bars), 2 * len(NAMES), "bars of the index")
    equal(index.count("| 1 of 2 goals met |"), len(NAMES) - 1)
    expect("| 1 of 2 goals met, 1 of 1 expectations seen |" in index, index)


@test
def many_rows_are_answers_to_questions():
    place = Place("questions")
    report_or_skip(place, "designs", "hammer")
    corner = {(r["design"], str(r["update_ns"])): r for r in place.made["designs"]["rows"]
              if (r["threads"], r["owners"], r["slots"], r["set_size"]) == (8, 300, 64, 3)}
    page = tables(place.read("designs.md"))
    cost = next(t for t in page if "update_ns" in t[0])
    equal([(r["design"], r["update_ns"]) for r in cost], list(corner))
    by_set = next(t for t in page if "set_size 16" in t[0])
    for row in by_set:
        for made in place.made["designs"]["rows"]:
            if (made["threads"], made["owners"], made["slots"], made["design"]) == \
                    (8, 300, 64, row["design"]):
                equal(row[f"set_size {made['set_size']}"], str(made["update_ns"]))
    mean = {(r["method"], r["readers"]): r["mean_s_per_100k"] for r in place.made["hammer"]["rows"]}
    for row in next(t for t in tables(place.read("hammer.md")) if "ratio" in t[0]):
        before, after = mean["open", int(row["readers"])], mean["segment", int(row["readers"])]
        equal((row["before: open"], row["after: segment"]), (str(before), str(after)))
        expect(abs(float(row["ratio"]) / (before / after) - 1) < 0.01, row)


@test
def who_is_best_follows_from_the_rows():
    place = Place("verdict")
    base = {"threads": 8, "owners": 300, "slots": 64, "set_size": 3, "torn": 0, "stale": 0,
            "checked_reads": 1000, "read_p50_ns": 300, "update_ns": 10, "flush_us": 500,
            "blocked_ms": 100.5, "loc": 100}
    rows = [dict(base, design="global-lock"),
            dict(base, design="seqlock", stale=7, torn=3, read_p50_ns=20),
            dict(base, design="freshet", read_p50_ns=200, update_ns=40, flush_us=501,
                 blocked_ms=0.25),
            dict(base, design="freshet", slots=256, blocked_ms=0.5)]
    place.offer("designs", dict(made_up("designs"), rows=rows))
    report_or_skip(place, "designs")
    for page in place.read("designs.md"), place.read("README.md"):
        (table,) = [t for t in tables(page) if "fresh?" in t[0]]
        equal([[r[k] for k in ("design", "fresh?", "whole?", "waits for a stopped flusher?")]
               for r in table],
              [["global-lock", "yes", "yes", "yes: 100 ms"],
               ["seqlock", "no: 7 of 1000 stale", "no: 3 of 1000 torn", "yes: 100 ms"],
               ["freshet", "yes", "yes", "no: 0.5 ms"]])
        best, rival, same = re.search(r"best at\*\*(.*)A rival is better at\*\*(.*)"
                                      r"No difference[^\n]*(.*?)\n\n\w", page, re.S).groups()
        expect("all three at once: no rival's are" in best and best.count("\n- ") == 1, best)
        expect("a read (median): Freshet 200 ns, the best rival seqlock (its reads are stale and "
               "torn) 20 ns, 10 times less; of those whose reads are fresh and whole, global-lock "
               "300 ns, 1.5 times as much" in rival, rival)
        expect("an update: Freshet 40 ns, the best rival global-lock 10 ns, 4 times less" in rival,
               rival)
        expect("a flush: Freshet 501 µs" in same, same)
    rows[2]["torn"] = 1
    rows[0]["blocked_ms"] = 1
    place.offer("designs", dict(made_up("designs"), rows=rows))
    report_or_skip(place, "designs")
    expect("all three at once: global-lock; not so Freshet" in place.read("designs.md"))


@test
def runs_that_are_not_worth_much_say_so():
    place = Place("warnings")
    busy = made_up("scrape")
    busy["machine"]["cpus_in_use"] = 0.41
    few = dict(made_up("pass"), lines=[line("pass-cost", how, (300,)) for how in ("open", "bpf")])
    place.offer("scrape", busy)
    place.offer("timeline", dict(made_up("timeline"), machine=busy["machine"]))
    place.offer("pass", few)
    report_or_skip(place, "scrape", "pass", "read", "timeline")
    equal(place.run("read", "--quick").returncode, 0)
    busy_words, quick_words = "The machine was busy when this began", "A quick run"
    for name, words in (("scrape", [busy_words]), ("pass", []), ("timeline", []), ("read", [quick_words]),
                        ("README", [busy_words + " (scrape)", quick_words + " (read)"])):
        page = place.read(name + ".md")
        equal(re.findall(r"> \*\*(.*?):\*\*", page), words, name)
    (points,) = [t for t in tables(place.read("pass.md")) if "cgroups" in t[0] and "" in t[0]]
    equal([row[""] for row in points], ["open", "bpf"])
    expect("pass-cost.svg" not in place.all(), "a plot of one column of points")


@test
def columns_are_explained():
    place = Place("columns")
    report_or_skip(place, "designs", "timeline")
    page = place.read("designs.md")
    for text in "blocked_ms: ms of the longest read", "update_ns: ns an update", "torn: reads whose":
        expect(text in page, text)
    expect("1,1,1 is right" in place.read("timeline.md"))


@test
def links_and_pictures_are_there():
    place = Place("links")
    report_or_skip(place)
    there, used = set(os.listdir(place.results)), set()
    for name in there:
        if name.endswith(".md"):
            targets = re.findall(r"\]\(([^)#]+)[^)]*\)", place.read(name))
            expect(targets, name)
            used.update(targets)
    equal(used - there, set(), "not there")
    equal(there - used, set(), "shown nowhere")
    for name in there:
        if name.endswith(".svg"):
            picture = xml.dom.minidom.parseString(place.read(name))
            equal(picture.documentElement.tagName, "svg")
            equal(picture.getElementsByTagName("script"), [], name)
    picture = place.read("designs-read-latency.svg")
    for i in range(10):
        expect(f">design-{i}<" in picture, f"design-{i} has no label")
    expect(">atomic (torn)<" in picture, "atomic's reads are torn")
    expect("nothing" not in picture, "a line without points has a label")
    for text in "prefers-color-scheme", "99.9 %", "How long a read takes":
        expect(text in picture, text)


@test
def a_bench_that_fails_keeps_its_page():
    place = Place("fails")
    report_or_skip(place)
    old = place.read("read.csv")
    for name in NAMES:
        place.offer(name, made_up(name))
    place.refuse("read")
    place.offer("scrape", '{"bench":"scrape","rows":[')
    done = place.run()
    equal(done.returncode, 1, done.stderr)
    expect("FAILED: scrape read\n" in done.stderr and "exit status 7" in done.stderr, done.stderr)
    expect("cannot access" in done.stderr or "No such file" in done.stderr, "its stderr is shown")
    equal(place.read("read.csv"), old)
    page = place.read("read.md")
    expect(re.search(r"failed: exit status 7: .*No such file or directory\. What is shown is the run "
                     "of", page) and "## Bars" in page, page)
    expect("exit status 7" in place.read("README.md"), "the index says so")
    equal(json.loads(place.read("pass.json"))["lines"], place.made["pass"]["lines"])
    place.offer("read", made_up("read"))
    equal(place.run("read", "--quick").returncode, 0)
    expect("failed:" not in place.read("read.md") and "read --quick`" in place.read("read.md"),
           place.read("read.md"))
    expect("failed:" in place.read("scrape.md"), "that of another bench is forgotten")


@test
def a_bench_that_never_ran():
    place = Place("never")
    report_or_skip(place, "pass")
    for name in "read", "timeline":
        place.refuse(name)
        equal(place.run(name).returncode, 1)
        expect("failed: exit status" in place.read(name + ".md"))
        expect(name + ".json" not in place.all(), "data of a run that there was not")
    expect("timeline.svg" not in place.all() and "pass-cost.svg" in place.all())


@test
def an_ordinary_user_is_told_first():
    place = Place("user")
    if not shutil.which("gnuplot"):
        skip("needs gnuplot")
    who, pythons = {}, [sys.executable, "/usr/bin/python3"]
    if os.geteuid() == 0:
        who = {"user": 65534, "group": 65534, "extra_groups": []}
        os.chmod(SCRATCH, 0o755)
        os.chown(place.path, 65534, 65534)
        pythons = [python for python in pythons if subprocess.run(
            ["test", "-r", REPORT, "-a", "-x", python], check=False, **who).returncode == 0]
        if not pythons:
            skip("needs a tree and a Python that others can use")
    done = place.run("scrape", "hammer", "read", python=pythons[0], **who)
    equal(done.returncode, 1, done.stderr)
    equal(done.stderr.splitlines()[0], "bench-report: scrape, hammer: not run, root is needed for the "
          "cgroups they make")
    equal([call.split()[0] for call in place.calls()], ["read"])
    expect("root is needed" in place.read("hammer.md") and "## Bars" in place.read("read.md"))


@test
def results_belong_to_who_called_sudo():
    place = Place("sudo")
    report_or_skip(place, "read")
    equal(place.run("read", env={"SUDO_UID": "65534", "SUDO_GID": "65533"}).returncode, 0)
    for path in [place.results, *(os.path.join(place.results, name) for name in place.all())]:
        found = os.stat(path)
        equal((found.st_uid, found.st_gid), (65534, 65533), path)


@test
def a_quick_run_leaves_what_is_published():
    place = Place("quick")
    report_or_skip(place, "read")
    before, tree = place.all(), place.path
    shutil.copytree(os.path.dirname(REPORT), os.path.join(tree, "tools"),
                    ignore=shutil.ignore_patterns("__pycache__"))
    there = {path for path, _, _ in os.walk(os.path.join(tree, "tools"))}
    done = place.run("--quick", "read", tool=os.path.join(tree, "tools", "bench-report"))
    equal(done.returncode, 0, done.stderr)
    place.left_whole(before)
    place.results = os.path.join(tree, "build", "results")
    expect("read --quick`" in place.read("read.md"), place.read("read.md"))
    equal({path for path, _, _ in os.walk(os.path.join(tree, "tools"))}, there, "bytecode")


@test
def redrawn_from_what_is_kept():
    place = Place("redraw")
    report_or_skip(place)
    before, calls = place.all(), place.calls()
    with open(os.path.join(place.results, "pass.md"), "w", encoding="utf-8") as f:
        f.write("lost\n")
    equal(place.run("--redraw").returncode, 0)
    place.left_whole(before)
    equal(place.calls(), calls)


@test
def old_results_stay_whole_on_a_full_disk():
    place = Place("full")
    report_or_skip(place)
    before = place.all()
    place.offer("pass", made_up("pass"))
    # Like a full disk, but an ordinary user can have it: designs.csv does not fit.
    done = place.run(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
    equal(done.returncode, 1, done.stderr)
    expect("File too large; the old results stay" in done.stderr, done.stderr)
    expect("Traceback" not in done.stderr, done.stderr)
    place.left_whole(before)


@test
def results_that_cannot_be_written():
    place = Place("unwritable")
    if not shutil.which("gnuplot"):
        skip("needs gnuplot")
    place.results = "/proc/self/no/results"
    done = place.run()
    equal(done.returncode, 1, done.stderr)
    expect(re.search(r"/proc/\w+/no: ", done.stderr) and "Traceback" not in done.stderr,
           done.stderr)
    expect(not os.path.exists(os.path.join(place.path, "calls")), "known before anything runs")


@test
def other_directories_are_not_replaced():
    place = Place("other")
    if not shutil.which("gnuplot"):
        skip("needs gnuplot")
    os.makedirs(place.results)
    with open(os.path.join(place.results, "README.md"), "w", encoding="utf-8") as f:
        f.write("# My diary\n")
    done = place.run()
    equal(done.returncode, 2, done.stderr)
    expect("something else" in done.stderr, done.stderr)
    equal(place.all(), {"README.md": "# My diary\n"})


@test
def the_place_is_what_a_link_says():
    place = Place("link")
    if not shutil.which("gnuplot"):
        skip("needs gnuplot")
    real = os.path.join(place.path, "elsewhere")
    os.makedirs(real)
    os.makedirs(os.path.dirname(place.results))
    os.symlink(real, place.results)
    equal(place.run("timeline").returncode, 0)
    expect(os.path.islink(place.results) and "README.md" in os.listdir(real), os.listdir(real))
    equal(os.listdir(os.path.dirname(place.results)), ["results"])


@test
def places_that_cannot_be_replaced():
    place = Place("mount")
    if not shutil.which("gnuplot"):
        skip("needs gnuplot")
    for results, arguments, why in (("/proc", [], "mount point"),
                                    (place.results, ["--redraw"], "nothing there")):
        place.results = results
        done = place.run(*arguments)
        equal(done.returncode, 2, done.stderr)
        expect(why in done.stderr, done.stderr)
    expect(not os.path.exists(os.path.join(place.path, "calls")), "known before anything runs")


@test
def json_without_an_end():
    place = Place("deep")
    report_or_skip(place)
    place.offer("read", "[" * 200000)
    done = place.run("read", "timeline")
    equal(done.returncode, 1, done.stderr)
    expect("read FAILED: what it printed is no result" in done.stderr, done.stderr)
    expect("Traceback" not in done.stderr, done.stderr)


@test
def gnuplot_is_missed_first():
    place = Place("gnuplot")
    done = place.run(env={"PATH": place.path})
    equal(done.returncode, 2, done.stderr)
    expect("gnuplot-nox" in done.stderr, done.stderr)
    expect(not os.path.exists(os.path.join(place.path, "calls")), "known before anything runs")


@test
def usage():
    place = Place("usage")
    for arguments in ["nothing"], ["--no-such"]:
        done = place.run(*arguments)
        equal(done.returncode, 2, done.stderr)
        expect(done.stderr and not done.stdout, arguments)


run(lambda: shutil.rmtree(SCRATCH))
