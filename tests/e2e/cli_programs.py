# SPDX-License-Identifier: MIT
"""ls, show, top and doctor on the segment of a program with a tree of its own."""
import json
import os
import re
import subprocess

import cli
from cli import fails, shown, works
from freshet import FRESHET
from programs import Program, directory
from tap import equal, expect, run, skip, test

cli.private_run()


def shop(name="shop"):
    """/, /acme [web, db]"""
    program = Program(name)
    program.do("create /acme", "create /acme/web", "create /acme/db",
               "set /acme/web 5 1 4096", "set /acme/db 2 0 100", "add / 0 1",
               "add /acme/web 3 1500000", "add /acme/web 4 7", "add /acme/web 4 -10",
               "observe /acme/web 2500", "observe /acme/web 1000000", "observe /acme/db 999")
    return program


@test
def show_is_fresh():
    with shop() as program:
        got = shown(works("show", "/acme/web", "--segment", "shop"))
        equal({k: got[k] for k in ("path", "requests", "errors", "sent", "busy_usec", "open")},
              {"path": "/acme/web", "requests": "5", "errors": "1", "sent": "4096",
               "busy_usec": "1500", "open": "-3"})
        # each by the bound of its bucket: 1024 wide below 8192, then an eighth of a power of two
        equal((got["latency_ns_count"], got["latency_ns_sum"]), ("2", "1002500"))
        equal(float(got["latency_ns_mean"]), 501250)
        for q, least, most in (("p50", 2500, 3100), ("p90", 1e6, 1.13e6), ("max", 1e6, 1.13e6)):
            expect(least <= int(got["latency_ns_" + q]) <= most, f"{q}: {got}")
        for n in range(6, 26):  # what was counted before is in what is read after
            program.do("add /acme/web 0 1")
            equal(shown(works("show", "acme/web", "--segment", program.file))["requests"], str(n))
        program.do("flush")
        equal(shown(works("show", "acme/web", "--segment", "shop"))["requests"], "25")
        works("show", "/acme", "--segment", "shop", "--max-age", "0")
        got = shown(works("show", "/", "--segment", "shop"))
        equal((got["requests"], got["latency_ns_count"]), ("28", "3"))
        fails(1, r"^freshet: /nix: no such group", "show", "/nix", "--segment", "shop")


@test
def show_json_has_all_buckets():
    with shop():
        got = json.loads(works("show", "/acme", "--segment", "shop", "--json"))
        equal(got["http"]["requests"], 7)
        equal(got["pool"], {"open": -3})
        latency = got["http"]["latency_ns"]
        equal((latency["count"], latency["sum"]), (3, 1003499))
        equal([n for _, n in latency["buckets"]], [1, 1, 1])
        bounds = [upper for upper, _ in latency["buckets"]]
        for value, upper in zip((999, 2500, 1000000), bounds):
            expect(value <= upper < max(value * 1.13, value + 1024), f"{value} in {upper}")
        equal(latency["max"], bounds[-1])
        # what lies beyond has no bound
        with Program("beyond") as beyond:
            beyond.do(f"observe / {2**40}")
            got = json.loads(works("show", "/", "--segment", "beyond", "--json"))
            equal(got["http"]["latency_ns"]["buckets"], [[None, 1]])
            equal(shown(works("show", "/", "--segment", "beyond"))["latency_ns_p99"], "inf")


@test
def ls_lists_the_first_number():
    with shop() as program:
        equal(works("ls", "--segment", "shop"), "8 /\n7 /acme\n2 /acme/db\n5 /acme/web\n")
        equal(works("ls", "acme", "--depth", "0", "--segment", "shop"), "7 /acme\n")
        groups = json.loads(works("ls", "--segment", "shop", "--json"))["groups"]
        equal([(g["path"], g["http"]["requests"]) for g in groups],
              [("/", 8), ("/acme", 7), ("/acme/web", 5), ("/acme/db", 2)])
        program.do("remove /acme/db")
        equal(works("ls", "--segment", "shop"), "8 /\n7 /acme\n5 /acme/web\n")


@test
def top_shows_rates_of_anything():
    with shop() as program:
        top = subprocess.Popen([FRESHET, "top", "--segment", "shop", "-n", "3", "--delay", "500ms",
                                "--sort", "requests"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        # the base is taken at once; what comes after it counts in the first or second table
        program.do(*["set /acme/db 30 0 0"] * 10, "observe /acme/db 5000", "add /acme/db 4 2")
        out, err = top.communicate(timeout=30)
        equal((top.returncode, err), (0, ""))
        tables = [[line.split() for line in table.splitlines()] for table in out.split("\n\n")]
        equal(len(tables), 3)
        for table in tables:
            equal({row[-1] for row in table}, {"/", "/acme", "/acme/db", "/acme/web"})
            rates = [float(row[0]) for row in table]
            equal(rates, sorted(rates, reverse=True), "sorted by requests")
        equal({row[-1]: row[4] for row in tables[2]},
              {"/": "-1", "/acme": "-1", "/acme/db": "2", "/acme/web": "-3"})
        for row in tables[2]:
            equal(row[0], "0", "nothing was counted any more")
            equal(row[5], "-", "nothing was observed")
        for key in ("requests", "errors", "sent", "busy", "open", "latency", "name"):
            works("top", "--segment", "shop", "-n", "1", "--delay", "10ms", "--sort", key)
        fails(2, r"'--sort': 'cpu' is not requests, errors, sent, busy, open, latency, or name\n",
              "top", "--segment", "shop", "-n", "1", "--sort", "cpu")


@test
def a_rate_is_by_the_second():
    with shop() as program:
        top = subprocess.Popen([FRESHET, "top", "--segment", "shop", "-n", "4", "--delay", "1s"],
                               stdout=subprocess.PIPE, text=True)
        line = top.stdout.readline()  # the first table has begun: what follows is in the second
        program.do("set /acme/db 500 0 2000000", "add /acme/db 3 250000000",
                   *["observe /acme/db 7000"] * 3)
        out = top.stdout.read()
        equal(top.wait(30), 0)
        rows = [row.split() for row in (line + out).splitlines() if row.endswith(" /acme/db")]
        expect(len(rows) == 4, out)
        busy = max(rows, key=lambda row: float(row[0]))
        expect(450 <= float(busy[0]) <= 520, f"requests a second: {busy}")
        expect(re.match(r"(1\.[89]\d|2\.0\d)M$", busy[2]), f"bytes a second: {busy}")
        expect(22 <= float(busy[3]) <= 26, f"per cent: {busy}")
        expect(re.match(r"7\.\d\dus$", busy[5]), f"99th percentile: {busy}")


@test
def top_follows_a_program_that_restarts():
    program = shop()
    top = subprocess.Popen([FRESHET, "top", "--segment", "shop", "-n", "1000", "--delay", "50ms"],
                           stdout=subprocess.PIPE, text=True)
    try:
        top.stdout.readline()
        program.kill()
        with shop() as again:
            again.do("create /only-now")
            for line in top.stdout:
                if line.endswith("/only-now\n"):
                    break
            expect(line.endswith("/only-now\n"), "the new one is shown")
    finally:
        top.kill()
        top.communicate()


@test
def segments_are_listed():
    with shop() as program, Program("other.one"):
        dead = Program("dead")
        dead.kill()
        with open(os.path.join(directory(), "garbage"), "w") as f:
            f.write("not a segment")
        os.symlink(program.file, os.path.join(directory(), "link"))
        try:
            rows = [line.split(None, 3) for line in works("ls", "--segments").splitlines()]
            equal(rows[0], ["NAME", "STATE", "GROUPS", "PRODUCER"])
            rows = {row[0]: row[1:] for row in rows[1:]}
            equal(sorted(rows), ["dead", "garbage", "link", "other.one", "shop"])
            equal(rows["shop"], ["live", "4", f"test <producer>, pid {program.process.pid}"])
            equal(rows["dead"][0], "ended")
            equal(rows["link"][:2], ["unreadable", "-"])
            expect("symbolic link" in rows["link"][2], rows["link"])
            expect("not a segment" in rows["garbage"][2], rows["garbage"])
            got = {s["name"]: s for s in
                   json.loads(works("ls", "--segments", "--json"))["segments"]}
            equal((got["shop"]["state"], got["shop"]["groups"], got["shop"]["file"]),
                  ("live", 4, program.file))
            equal(got["garbage"]["state"], "unreadable")
            fails(1, r"^freshet: \S+dead: its producer has ended\n$", "ls", "--segment", "dead")
            doctor = cli.freshet("doctor").stdout
            line = [row for row in doctor.splitlines() if " programs " in row]
            expect(len(line) == 1 and "2 with a segment" in line[0] and "shop: test" in line[0]
                   and "garbage: not a segment" in line[0], str(line))
        finally:
            os.unlink(os.path.join(directory(), "link"))
            os.unlink(os.path.join(directory(), "garbage"))
            os.unlink(dead.file)
    fails(2, "--segments goes with --json only", "ls", "/x", "--segments")
    equal(works("ls", "--segments"), "")
    equal(json.loads(works("ls", "--segments", "--json")), {"segments": []})


@test
def another_user_finds_the_superusers():
    if os.geteuid() != 0:
        skip("needs root to become somebody else")
    public = cli.public_copy()
    with shop() as program:
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", public, "show",
                   "/", "--segment", "shop"]
        environment = {**os.environ, "XDG_RUNTIME_DIR": "/run/none"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        equal(done.returncode, 1)
        expect("/run/freshet/shop: no permission to read it" in done.stderr, done.stderr)
        os.chmod(program.file, 0o644)
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        equal((done.returncode, done.stderr), (0, ""))
        equal(shown(done.stdout)["requests"], "8")


@test
def a_segment_that_is_cut_short_is_named():
    program = shop()
    command = [FRESHET, "top", "--batch", "-n", "100", "--delay", "50ms", "--segment", "shop"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as top:
        expect(top.stdout.readline())
        program.process.stdin.write("truncate 4096\n")
        program.process.stdin.flush()
        _, errors = top.communicate(timeout=20)
    equal((top.returncode, errors),
          (1, f"freshet: {program.file}: the segment was cut short while it was read\n"))
    program.kill()
    os.unlink(program.file)


@test
def more_files_than_are_looked_at():
    names = [os.path.join(directory(), f"x{n}") for n in range(1030)]
    for name in names:
        open(name, "w").close()
    try:
        text = works("ls", "--segments", stderr=r"^freshet: \S+/freshet: it holds too many files: "
                                                r"not all are looked at\n$")
        equal(len(text.splitlines()), 1 + 1024)
        json.loads(works("ls", "--segments", "--json", stderr="too many files"))
    finally:
        for name in names:
            os.unlink(name)


run()
