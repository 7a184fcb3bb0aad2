# SPDX-License-Identifier: MIT
"""ls, show, top --batch and doctor with a serve and without: the numbers, the forms, the names."""
import json
import os
import re
import subprocess
import sys

import cli
from cli import FALLBACK, cpu_stat, fails, shown, works
from freshet import Cgroups, Serve, cgroup2_mount
from tap import equal, expect, run, test

cli.private_run()

NOT_RUNNING = FALLBACK.format("serve is not running")
ODD = [b"tab\there", b'quo"te', "ünï€".encode(), b"bad\xff\x1b[31m", b"n" * 255, b"a b", b"\xe2\x80\xae"]

groups = None
serve = None


def tree():
    """Test cgroups, burned once."""
    global groups
    if not groups:
        groups = Cgroups("cli-numbers")
        groups.make("a/b/c", "a/d", *[b"odd/" + name for name in ODD])
        groups.burn("a/b/c", 0.1)
        groups.burn("a/d", 0.05)
    return groups, "/" + os.path.basename(groups.path)


def daemon():
    global serve
    tree()
    if not serve:
        serve = Serve("--interval", "5s", segment="host")  # believed for 15 s, on any machine
    return serve


def stop_daemon():
    global serve
    if serve:
        serve.stop()
    serve = None


def check_show(stderr):
    c, path = tree()
    for name in ("", "/a", "/a/b/c"):
        before = cpu_stat(c.join(name))
        got = shown(works("show", path + name, "--max-age", "0", stderr=stderr))
        after = cpu_stat(c.join(name))
        equal(got["path"], path + name)
        equal(int(got["id"]), os.stat(c.join(name)).st_ino)
        expect(before["usage_usec"] <= int(got["usage_usec"]) <= after["usage_usec"],
               f"{before} <= {got} <= {after}")
        expect(abs(int(got["user_usec"]) + int(got["system_usec"]) - int(got["usage_usec"])) <= 1,
               f"user and system are usage: {got}")
        expect(int(got["age_us"]) < 5e6, f"age: {got}")
    expect(int(got["usage_usec"]) >= 100000, f"what was burned is there: {got}")


def check_json(stderr):
    c, path = tree()
    got = json.loads(works("show", path + "/a", "--json", "--max-age", "0", stderr=stderr))
    equal(sorted(got), ["age_us", "cpu", "id", "path"])
    equal(got["path"], path + "/a")
    equal(got["cpu"]["usage_usec"], cpu_stat(c.join("a"))["usage_usec"])

    got = json.loads(works("ls", path, "--json", stderr=stderr))
    equal([len(got["groups"]), got["groups"][0]["path"]], [6 + len(ODD), path])
    expect("parent" not in got["groups"][0], "nothing above is told")
    by_path = {g["path"]: g for g in got["groups"]}
    ids = {g["id"]: g["path"] for g in got["groups"]}
    for name, g in by_path.items():
        if name != path:
            equal(ids[g["parent"]], os.path.dirname(name), "parent of " + name)
    parent, children = by_path[path + "/a"], [by_path[path + n] for n in ("/a/b", "/a/d")]
    expect(0 <= parent["cpu"]["usage_usec"] - sum(g["cpu"]["usage_usec"] for g in children) <= 1,
           f"a parent is its children, but for what is cut below a microsecond: {by_path}")
    expect(path + '/odd/quo"te' in by_path and path + "/odd/tab\there" in by_path and
           path + "/odd/ünï€" in by_path, f"real names: {list(by_path)}")

    got = json.loads(works("ls", path + "/a/b", "--json", "--depth", "0", stderr=stderr))
    equal([g["path"] for g in got["groups"]], [path + "/a/b"])


def check_ls(stderr):
    c, path = tree()
    lines = works("ls", path, stderr=stderr).splitlines()
    names = [line.split(" ", 1)[1][len(path):] for line in lines]
    wanted = ["", "/a", "/a/b", "/a/b/c", "/a/d", "/odd", "/odd/a b", "/odd/bad\\xff\\x1b[31m",
              "/odd/" + "n" * 255, '/odd/quo"te', "/odd/tab\\x09here", "/odd/ünï€",
              "/odd/\\xe2\\x80\\xae"]
    equal(names, wanted)
    usage = {name: int(line.split(" ", 1)[0]) for name, line in zip(names, lines)}
    equal(usage["/a/b/c"], cpu_stat(c.join("a/b/c"))["usage_usec"])
    depths = {n: [line.split(" ", 1)[1][len(path):]
                  for line in works("ls", path, "--depth", str(n), stderr=stderr).splitlines()]
              for n in (0, 1)}
    equal(depths, {0: [""], 1: ["", "/a", "/odd"]})


def check_top(stderr):
    """A burning process: its cgroup's rate is what cpu.stat says, and its ancestors' the same."""
    c, path = tree()
    code = ("import sys\nopen(sys.argv[1], 'w').write('0')\nprint(flush=True)\n"
            "while True: pass\n")
    burner = subprocess.Popen([sys.executable, "-c", code, c.join("a/b/c") + b"/cgroup.procs"],
                              stdout=subprocess.PIPE)
    try:
        burner.stdout.readline()
        before = cpu_stat(c.join("a/b/c"))["usage_usec"]
        text = works("top", path, "-n", "2", "--delay", "300ms", "--sort", "name", stderr=stderr)
        after = cpu_stat(c.join("a/b/c"))["usage_usec"]
    finally:
        burner.kill()
        burner.wait()
    tables = text.split("\n\n")
    equal(len(tables), 2)
    for table in tables:
        rows = {}
        for line in table.splitlines():
            match = re.fullmatch(r" *(\S+) +(\S+) +(\S+) +(\S+) +(\S+)  (/.*)", line)
            expect(match, f"a row: {line!r}")
            rows[match[6][len(path):]] = match.groups()
        equal(len(rows), 6 + len(ODD))
        rate = float(rows["/a/b/c"][0])
        expect(0 < rate <= 110, f"one process uses one CPU at most: {rows}")
        # two tables lie in the time between the two readings of cpu.stat
        expect(rate * 3e3 <= after - before + 20000, f"{rate} % of 300 ms, {after - before} us")
        equal([rows[name][0] for name in ("", "/a", "/a/b")], [rows["/a/b/c"][0]] * 3)
        equal(rows["/a/d"][0], "0.0")
        expect(abs(float(rows["/a"][1]) + float(rows["/a"][2]) - rate) < 0.25, f"parts: {rows}")
        if "nr_periods" not in cpu_stat(c.join("odd")):
            equal(rows["/odd"][3], "-", "no cpu controller: absent is not 0")


@test
def show_in_process():
    check_show(NOT_RUNNING)


@test
def json_in_process():
    check_json(NOT_RUNNING)
    equal(json.loads(works("ls", "--json", "--depth", "0", stderr=NOT_RUNNING))["pass"], 1,
          "one pass, as the manual says")


@test
def ls_in_process():
    check_ls(NOT_RUNNING)


@test
def top_in_process():
    check_top(NOT_RUNNING)


@test
def show_from_serve():
    daemon()
    check_show(r"^$")


@test
def json_from_serve():
    daemon()
    check_json(r"^$")


@test
def ls_from_serve():
    daemon()
    check_ls(r"^$")


@test
def top_from_serve():
    daemon()
    check_top(r"^$")


@test
def paths_are_taken_as_people_write_them():
    c, path = tree()
    daemon()
    for form in (path + "/a", path[1:] + "/a", c.path + "/a", c.path + "/a/"):
        equal(shown(works("show", form))["path"], path + "/a", form)
    equal(shown(works("show", "/"))["path"], "/")
    equal(shown(works("show", cgroup2_mount()))["path"], "/")


@test
def a_cgroup_younger_than_the_last_pass_is_found():
    c, path = tree()
    stop_daemon()
    with Serve("--interval", "60s", segment="host"):
        for i in range(5):
            c.make(f"young{i}")
            equal(shown(works("show", f"{path}/young{i}"))["path"], f"{path}/young{i}")
            c.rmdir(f"young{i}")
            fails(1, f"^freshet: {path}/young{i}: no such cgroup\n$", "show", f"{path}/young{i}")


@test
def max_age_asks_for_a_pass_when_the_last_is_too_old():
    stop_daemon()
    with Serve("--interval", "60s", segment="host") as slow:
        passes = []
        for age, again in (("0", True), ("0", True), ("60s", False), ("1ms", True)):
            got = json.loads(works("ls", "/", "--json", "--depth", "0"))
            works("show", "/", "--max-age", age)
            after = json.loads(works("ls", "/", "--json", "--depth", "0"))
            equal(after["pass"] > got["pass"], again, f"--max-age {age}: another pass")
            passes.append(after["pass"])
        equal(sorted(passes), passes)
        expect(slow.process.poll() is None, "serve lives")


@test
def a_serve_of_another_part_is_not_taken_for_the_host():
    c, path = tree()
    stop_daemon()
    with Serve(root=c.path + "/a", segment="host"):
        equal(shown(works("show", path + "/a/b"))["path"], path + "/a/b")
        got = json.loads(works("ls", path + "/a/b", "--json"))
        equal([g["path"] for g in got["groups"]], [path + "/a/b", path + "/a/b/c"])
        works("show", path + "/odd",
              stderr=FALLBACK.format("segment host: it does not hold this part of the hierarchy"))


@test
def a_segment_named_has_paths_of_its_own():
    c, path = tree()
    with Serve(root=c.path, segment="other") as other:
        for name in ("other", "/run/freshet/other"):
            if name != "other" and os.geteuid():
                continue
            equal(shown(works("show", "a/b", "--segment", name))["path"], "/a/b")
            expect(works("ls", "--segment", name).splitlines()[1].endswith(" /a"), "ls")
        fails(1, "^freshet: /nix: no such group in the segment\n$", "show", "/nix", "--segment",
              "other")
        fails(1, "^freshet: /a/../a: a path may not have", "show", "/a/../a", "--segment", "other")
        expect(other.process.poll() is None, "serve lives")
    fails(1, "^freshet: .*/other: no such segment; freshet ls --segments lists .*\n$", "show", "/", "--segment", "other")


@test
def groups_without_room_are_counted():
    c, path = tree()
    stop_daemon()
    with Serve("--max-groups", "4", root=c.path, segment="small") as small:
        said = r"^freshet: (\d+) groups found no room in the segment \(serve --max-groups is 4\)\n$"
        for arguments in (["ls"], ["ls", "--json"], ["top", "-n", "2", "--delay", "150ms"]):
            done = cli.freshet(*arguments, "--segment", "small")
            equal(done.returncode, 0, done.stderr)
            match = re.search(said, done.stderr)
            expect(match, f"{arguments}: {done.stderr!r}")
        listed = json.loads(cli.freshet("ls", "--json", "--segment", "small").stdout)
        equal([len(listed["groups"]), listed["left_out"]], [4, int(match[1])])
        equal(int(match[1]) + 4, 6 + len(ODD), "all are shown or counted")
        served = json.loads(small.get("/api/v1/groups"))
        equal(served["left_out"], int(match[1]))
    with Serve(root=c.path, segment="small") as large:
        expect("left_out" not in works("ls", "--json", "--segment", "small"), "none")
        expect("left_out" not in large.get("/api/v1/groups"), "none")


@test
def paths_too_long_are_not_cut():
    """What is left of one may name another group."""
    with Cgroups("cli-long") as c:
        c.make("a/b")
        with Serve(root=c.path) as serve:
            equal(shown(works("show", "a//////b/", "--segment", serve.segment))["path"], "/a/b")
            fails(1, ": File name too long\n$", "show", "/a" + "/" * 5000 + "b", "--segment",
                  serve.segment)


@test
def a_hundred_odd_bytes():
    """Every byte that a name can have, one cgroup each."""
    c, path = tree()
    made = [bytes([i]) for i in range(1, 256) if i not in (0x0a, 0x2f, 0x2e)]
    c.make(*[b"bytes/x" + name for name in made])
    text = works("ls", path + "/bytes", stderr=".*").splitlines()
    equal(len(text), len(made) + 1)
    for line in text:
        expect(re.fullmatch(r"[\x20-\x7e]*", line), f"only printable ASCII: {line!r}")
    got = json.loads(works("ls", path + "/bytes", "--json", stderr=".*"))
    equal(len(got["groups"]), len(made) + 1)
    for name in (b"x\t", b"x\x01", b"x ", b'x"', b"x\\"):
        done = subprocess.run([os.fsencode(cli.FRESHET), b"show", os.fsencode(path) + b"/bytes/" +
                               name], capture_output=True)
        equal(done.returncode, 0, f"{name!r}: {done.stderr!r}")
    c.rmdir("bytes")


@test
def doctor_says_what_is_so():
    text = works("doctor")
    for line in text.splitlines():
        expect(re.match(r"(ok|no|n\.a\.) +\S", line), f"a fact a line: {line!r}")
    expect(f"mounted at {cgroup2_mount()}" in text, text)
    with open("/sys/devices/system/cpu/possible") as f:
        expect(f"possible: {f.read().strip()}" in text, text)
    expect(re.search(r"^n\.a\. +segment +no serve is running", text, re.M), text)
    got = json.loads(works("doctor", "--json"))
    equal(got["can_serve"], True)
    expect(got["source"] in ("bpf", "files"), got)
    states = {check["name"]: check["state"] for check in got["checks"]}
    equal(states["source " + got["source"]], "ok")
    equal([len(got["checks"]), states["cgroup2"]], [len(text.splitlines()), "ok"])
    with Serve(segment="host") as running:
        expect(re.search(rf"^ok +segment +\S+: kept by \S.* \(pid {running.pid}\), \d", works("doctor"),
                         re.M), "the running serve")
    with Serve("--max-groups", "2", root=tree()[0].path, segment="host"):
        expect(re.search(r"^no +segment .*no room for \d+ groups", works("doctor"), re.M),
               "what does not fit")


@test
def usage_errors_name_the_option():
    cases = [
        ([], "^Usage: freshet"),
        (["lss"], "^freshet: no command or option 'lss'\nTry 'freshet --help'.\n$"),
        (["--nix"], "'--nix'"),
        (["ls", "--nix"], "^freshet ls: unrecognized option '--nix'\nTry 'freshet ls --help'.\n$"),
        (["ls", "--depth"], "'--depth' requires an argument"),
        (["ls", "--depth", "x"], "'--depth': 'x' is not"),
        (["ls", "--depth", "-1"], "'--depth': '-1' is not"),
        (["ls", "a", "b"], "'b'"),
        (["show"], "^freshet show: which PATH"),
        (["show", "/", "--max-age", "soon"], "'--max-age': 'soon' is not"),
        (["top", "--delay", "1ms"], "'--delay': '1ms' is not"),
        (["top", "--sort", "size"], "'--sort': 'size' is not cpu, user"),
        (["top", "-n", "0"], "'-n': '0' is not"),
        (["doctor", "me"], "'me'"),
        (["doctor", "--jsn"], "'--jsn'"),
        (["show", ""], "^freshet show: the PATH is empty"),
        (["ls", ""], "^freshet ls: the PATH is empty"),
        (["top", "-x"], "^freshet top: unrecognized option '-x'\n"),
        (["top", "-n"], "^freshet top: option '-n' requires an argument\n"),
        (["top", "--s=1"], "^freshet top: ambiguous option '--s=1'\n"),
        (["ls", "--js=1"], "^freshet ls: option '--json' takes no argument\n"),
        (["ls", "--depth=1", "-jh"], "^freshet ls: unrecognized option '-j'\n"),
        # what came in as control characters and bytes that are no UTF-8 goes out as text
        ([b"\x1b[31m\xff"], r"^freshet: no command or option '\\x1b\[31m\\xff'\nTry 'freshet --help'."),
        (["ls", b"--\x1b\xff"], r"unrecognized option '--\\x1b\\xff'\n"),
        (["ls", b"-\xff"], r"unrecognized option '-\\xff'\n"),
        (["ls", b"--json=\x1b"], r"option '--json' takes no argument\n"),
        (["ls", "--depth", b"\x1b"], r"'\\x1b' is not"),
        (["ls", "/", b"\x1b"], r"'\\x1b' is one more"),
        (["doctor", b"\x1b"], r"'\\x1b'"),
    ]
    for command in (["ls"], ["show", "/"], ["top"]):
        for name, said in (("..", r"\.\."), ("", ""), (b"\x1b[", r"\\x1b\["), ("a.new", r"a\.new")):
            cases.append(([*command, "--segment", name],
                          f"^freshet {command[0]}: option '--segment': '{said}' is not a name"))
    for arguments, stderr in cases:
        fails(2, stderr, *arguments)
    for name in ("..", ""):
        fails(2, "^freshet serve: ", "serve", "--segment", name)
    for command in ("ls", "show", "top", "doctor", "serve"):
        expect(works(command, "--help").startswith(f"Usage: freshet {command}"), command)
    expect(re.fullmatch(r"freshet \d+\.\d+\.\d+\n", works("--version")), "--version")
    expect("doctor" in works("--help"), "--help")


@test
def an_empty_table():
    works("top", "/", "-n", "1", "--delay", "10ms", "--filter", "no such cgroup",
          stderr=NOT_RUNNING)


@test
def errors_are_said():
    fails(1, "^freshet: /nix: no such cgroup\n$", "show", "/nix")
    fails(1, "^freshet: /nix/\\\\x1b: no such cgroup\n$", "ls", "/nix/\x1b")
    fails(1, "a path may not have", "top", "/a/../b")


def shell(line, *arguments):
    """A command line of sh in which "$@" is the program with arguments."""
    return subprocess.run(["sh", "-c", line, "sh", cli.FRESHET, *arguments], capture_output=True,
                          text=True, timeout=30)


@test
def output_that_cannot_be_written():
    for arguments in (["ls"], ["ls", "--json"], ["show", "/"], ["top", "-n", "1", "--delay", "10ms"],
                      ["doctor"], ["--help"], ["--version"], ["ls", "--help"], ["serve", "--help"]):
        for where, why in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
            done = shell('"$@" ' + where, *arguments)
            equal(done.returncode, 1, f"{arguments} {where}: {done.stderr}")
            expect(f"cannot write: {why}\n" in done.stderr, f"{arguments} {where}: {done.stderr}")
    done = shell('{ "$@"; echo $? >&2; } | true', "ls")
    expect(re.search(r"^(141|0)$", done.stderr, re.M), f"a reader that leaves: {done.stderr}")
    expect("cannot write" not in done.stderr, done.stderr)


@test
def closed_standard_descriptors_stay_closed():
    """Else messages would be written into what is opened next."""
    with Cgroups("cli-closed") as c, Serve(root=c.path, wrapper=[
            "sh", "-c", 'exec "$@" <&- >&-', "sh"]) as serve:
        for fd in (0, 1):
            equal(os.readlink(f"/proc/{serve.pid}/fd/{fd}"), "/", f"descriptor {fd}")


run(stop_daemon)
