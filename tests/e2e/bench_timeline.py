# SPDX-License-Identifier: MIT
"""freshet-bench timeline: the published numbers as the program prints them, its options, its picture.

It measures nothing, so that all numbers are exact. The program is $FRESHET_BENCH, else
build/freshet-bench of this tree.
"""
import json
import os
import shutil
import stat
import subprocess
import tempfile
import xml.etree.ElementTree as xml

from freshet import TREE
from tap import equal, expect, run, test

BENCH = os.environ.get("FRESHET_BENCH") or os.path.join(TREE, "build", "freshet-bench")
DESIGNS = ["global-lock", "lock-break", "atomic", "seqlock", "seqlock-fresh", "freshet"]
SVG = "{http://www.w3.org/2000/svg}"
TEMPORARY = tempfile.mkdtemp(prefix="freshet-timeline-")


def bench(*arguments):
    return subprocess.run([BENCH, "timeline", *arguments], capture_output=True, text=True,
                          timeout=20)


def rows(*arguments):
    done = bench("--json", *arguments)
    equal(done.returncode, 0, done.stderr)
    result = json.loads(done.stdout)
    equal(result["bench"], "timeline")
    return {(r["design"], r["reader_at"]): r for r in result["rows"]}


def draw(*arguments):
    """The picture's root element."""
    path = os.path.join(TEMPORARY, "picture.svg")
    done = bench("--svg", path, *arguments)
    equal(done.returncode, 0, done.stderr)
    equal(os.listdir(TEMPORARY), ["picture.svg"])
    return xml.parse(path).getroot()


def bars(root):
    """What each bar says to who points at it."""
    return [r.find(SVG + "title").text for r in root.iter(SVG + "rect")
            if r.find(SVG + "title") is not None]


@test
def published():
    got = rows()
    equal(list(got), [(d, at) for d in DESIGNS for at in (16, 48)])
    for key, values, end in ((("global-lock", 16), [1, 1, 1], 54),
                             (("atomic", 16), [1, 0, 0], 22),
                             (("atomic", 48), [1, 1, 1], 54)):
        equal((got[key]["values"], got[key]["finished_at"]), (values, end), key)
    for row in got.values():
        equal(list(row)[:4], ["design", "reader_at", "values", "finished_at"])
        equal(row["fresh"], "yes" if row["values"] == [1, 1, 1] else "no", row)
        equal(row["whole"], "yes" if len(set(row["values"])) == 1 else "no", row)
        if row["design"] in ("atomic", "freshet"):
            equal(row["waited"], 0, row)


@test
def options():
    got = rows("--stats", "2", "--cpus", "4", "--write", "10", "--read", "1",
               "--arrive", "100,5,79")
    equal([at for d, at in got if d == "freshet"], [5, 79, 100])
    for at, end in (5, 82), (79, 84), (100, 102):  # the flush ends at 80
        row = got["global-lock", at]
        equal((row["values"], row["finished_at"]), ([4, 4], end), row)
    equal(got["global-lock", 5]["hold_max"], 80)
    equal(got["lock-break", 5]["hold_max"], 20)


@test
def bad_options():
    for option, value, says in (("--stats", "0", "1 to 16"), ("--stats", "17", "1 to 16"),
                                ("--cpus", "65", "1 to 64"), ("--cpus", "x", "1 to 64"),
                                ("--write", "-1", "1 to 1000000"), ("--read", "", "1 to 1000000"),
                                ("--read", "99999999999999999999", "1 to 1000000"),
                                ("--read", "2 ", "1 to 1000000"),
                                ("--arrive", "", "0 to 1000000"),
                                ("--arrive", "1,,2", "0 to 1000000"),
                                ("--arrive", "1,", "0 to 1000000"),
                                ("--arrive", "1000001", "0 to 1000000"),
                                ("--arrive", ",".join(["1"] * 17), "1 to 16")):
        done = bench(option, value)
        equal(done.returncode, 2, (option, value))
        expect(f"{option}:" in done.stderr and says in done.stderr, done.stderr)
        equal(done.stdout, "")
    equal(bench("--svg", "").returncode, 2)
    equal(bench("--stats").returncode, 2)


@test
def limits_are_taken():
    got = rows("--stats", "16", "--cpus", "64", "--write", "1000000", "--read", "1000000",
               "--arrive", ",".join(["1000000"] * 16))
    equal(got["global-lock", 1000000]["values"], [64] * 16)


@test
def text():
    done = bench()
    equal(done.returncode, 0, done.stderr)
    lines = done.stdout.splitlines()
    for design in DESIGNS:
        at = lines.index(design)
        expect(lines[at + 1].startswith("  flusher "), lines[at + 1])
        expect("#" in lines[at + 1], lines[at + 1])
        for k, reader in enumerate((16, 48)):
            expect(lines[at + 2 + k].startswith(f"  reader at {reader} "), lines[at + 2 + k])
    expect(any(line.endswith("1,0,0 at 22 torn, stale") for line in lines))
    expect(any("done at:" in line and "published at:" in line for line in lines))
    equal(done.stderr, "")  # also where much else runs: nothing is measured


@test
def equal_designs():
    """The note that they are, and in what they differ, is right."""
    for cpus in "1", "2", "3":
        got = rows("--cpus", cpus, "--arrive", "0,10,48,50,100,200")
        for one, other, differ in (("global-lock", "lock-break", cpus != "1"),
                                   ("seqlock", "seqlock-fresh", False)):
            for at in 0, 10, 48, 50, 100, 200:
                a, b = dict(got[one, at]), dict(got[other, at])
                equal(a.pop("hold_max") > b.pop("hold_max"), differ, (cpus, one, other))
                a.pop("design"), b.pop("design")
                equal(a, b, (cpus, one, other))


@test
def picture():
    root = draw()
    equal(root.tag, SVG + "svg")
    equal(root.get("role"), "img")
    expect(root.find(SVG + "title").text and root.find(SVG + "desc").text)
    drawn = bars(root)
    equal(drawn.count("flusher writes, 0 to 48"), len(DESIGNS))
    equal(drawn.count("reader at 16 waits, 16 to 48"), 4)
    equal(drawn.count("reader at 16 reads, 48 to 54"), 2)
    equal(drawn.count("reader at 16 reads, 16 to 22"), 1)
    words = "\n".join("".join(t.itertext()) for t in root.iter(SVG + "text"))
    for design in DESIGNS:
        expect(design in words, design)
    expect("1,0,0 at 22 torn, stale" in words, words)
    expect("Who runs and who waits" in words and "published at:" in words, words)
    # Nothing is fetched from elsewhere, and all is inside the picture.
    expect(not any(a.endswith("href") for e in root.iter() for a in e.attrib))
    width, height = int(root.get("width")), int(root.get("height"))
    for e in root.iter():
        if e.tag in (SVG + "rect", SVG + "text") and e.get("x"):
            expect(0 <= float(e.get("x")) < width and 0 <= float(e.get("y")) < height, e.attrib)
    equal(len(bars(draw("--arrive", "0,1,2"))) >= 4 * len(DESIGNS), True)


@test
def picture_replaces():
    path = os.path.join(TEMPORARY, "picture.svg")
    with open(path, "w") as f:
        f.write("before")
    umask = os.umask(0o027)
    try:
        draw()
    finally:
        os.umask(umask)
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o640)


@test
def picture_through_a_link():
    path = os.path.join(TEMPORARY, "picture.svg")
    draw()
    os.mkdir(os.path.join(TEMPORARY, "d"))
    link = os.path.join(TEMPORARY, "d", "link.svg")
    os.symlink(path, link)
    with open(path, "w") as f:
        f.write("before")
    equal(bench("--svg", link).returncode, 0)
    expect(os.path.islink(link))
    equal(xml.parse(path).getroot().tag, SVG + "svg")
    shutil.rmtree(os.path.join(TEMPORARY, "d"))


@test
def picture_fails():
    missing = os.path.join(TEMPORARY, "no", "picture.svg")
    for path, says in ((missing, "No such file"), (TEMPORARY, "directory"),
                       ("/dev/full", "No space")):
        done = bench("--svg", path)
        equal(done.returncode, 1, path)
        expect(path in done.stderr and says in done.stderr, done.stderr)
    expect(stat.S_ISCHR(os.stat("/dev/full").st_mode))
    expect(not os.path.exists(os.path.dirname(missing)))


run(lambda: shutil.rmtree(TEMPORARY))
