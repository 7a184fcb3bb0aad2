# SPDX-License-Identifier: MIT
"""The screen of top, in tmux: keys go in, and what is on the screen is compared."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

import cli
from freshet import Cgroups, Serve, cgroup2_mount, temporary, wait_until
from programs import Program
from tap import equal, expect, note, run, skip, test

cli.private_run()

ROW = re.compile(r" *(\S+) +(\S+) +(\S+) +(\S+) +(\S+)  (.*)")
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7]")
_count = 0
_groups = None


def tree():
    """a [b [c d] e] z, all idle; (cgroups, path)."""
    global _groups
    if not _groups:
        _groups = Cgroups("cli-top")
        _groups.make("t/a/b/c", "t/a/b/d", "t/a/e", "t/z")
    return _groups, "/" + os.path.basename(_groups.path) + "/t"


class Screen:
    """top in a terminal of its own."""

    def __init__(self, *arguments, columns=100, lines=24, env=""):
        global _count
        if not shutil.which("tmux"):
            skip("no tmux")
        _count += 1
        self.socket = os.path.join(temporary(), f"tmux-{_count}")
        self.errors = os.path.join(temporary(), f"stderr-{_count}")
        self.code = os.path.join(temporary(), f"code-{_count}")
        command = (f"LC_ALL=C.UTF-8 {env} {shlex.quote(cli.FRESHET)} top "
                   f"{shlex.join(arguments)} 2>{self.errors}; echo $? >{self.code}; "
                   "echo ended; exec sleep 1000")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines),
                  "sh", "-c", command)
        self.tmux("set", "-g", "status", "off")

    def tmux(self, *arguments):
        done = subprocess.run(["tmux", "-S", self.socket, *arguments], capture_output=True,
                              timeout=30, env={**os.environ, "LC_ALL": "C.UTF-8"})
        equal(done.returncode, 0, f"tmux {arguments}: {done.stderr}")
        return done.stdout.decode()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            note(self.text())
            note(self.stderr())
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True)

    def text(self, *how):
        return self.tmux("capture-pane", "-p", *how)

    def lines(self):
        return self.text().splitlines()

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def resize(self, columns, lines):
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def rows(self):
        """Matches of the table's rows, up to the foot."""
        rows, inside = [], False
        for line in self.lines():
            match = ROW.fullmatch(line)
            if "CGROUP" in line:
                inside = True
            elif inside and match:
                rows.append(match)
        return rows

    def names(self):
        return [row[6] for row in self.rows()]

    def see(self, names, what="", timeout=30):
        """Waits for these names in the table."""
        try:
            wait_until(lambda: self.names() == names, what, timeout)
        except Exception:
            equal(self.names(), names, what)
            raise

    def wait_for(self, pattern, timeout=30):
        wait_until(lambda: re.search(pattern, self.text(), re.M), pattern, timeout)

    def selected(self):
        """Name in the row that is in reverse."""
        below = self.text("-e").partition("CGROUP")[2].splitlines()[1:]
        found = [re.sub(r"\x1b\[[0-9;]*m|\x1b\(.|\x0f", "", line) for line in below
                 if re.search(r"\x1b\[(\d+;)*7m", line)]
        return [ROW.fullmatch(line)[6] for line in found if ROW.fullmatch(line)]

    def see_selected(self, name):
        wait_until(lambda: self.selected() == [name], f"{name} is selected", 30)

    def stderr(self):
        with open(self.errors) as f:
            return f.read()

    def exit_code(self):
        wait_until(lambda: os.path.exists(self.code) and os.path.getsize(self.code), "it ends", 30)
        with open(self.code) as f:
            return int(f.read())

    def alive(self):
        return not os.path.exists(self.code)


def watch(*arguments, **more):
    """top of the test's tree, sorted by name."""
    return Screen(tree()[1], "--sort", "name", "--delay", "100ms", *arguments, **more)


def whole():
    return [tree()[1], "├╴a", "│ ├╴b", "│ │ ├╴c", "│ │ └╴d", "│ └╴e", "└╴z"]


@test
def the_tree_is_drawn():
    with watch() as screen:
        screen.see(whole())
        lines = screen.lines()
        expect(re.match(r" freshet · \S+ · 7 groups · in-process \((bpf|files)\) · \d+\.\d s old$",
                        lines[0]), lines[0])
        screen.wait_for(r"^ CPU \[ *\] 0\.0% of \d+ CPUs?$")
        equal(lines[2].split(), ["%CPU", "%USER", "%SYS", "%THR", "TIME", "CGROUP▴"])
        expect(lines[-1].startswith(" q quit   / filter   space fold"), lines[-1])
        screen.keys("q")
        equal(screen.exit_code(), 0)
        wait_until(lambda: screen.lines()[0] == "ended", "the terminal is as it was")
        expect("serve is not running" in screen.stderr(), screen.stderr())


@test
def rates_are_shown():
    c, path = tree()
    with Screen(path, "--delay", "200ms") as screen:
        screen.see([path, "├╴a", "│ ├╴b", "│ │ ├╴c", "│ │ └╴d", "│ └╴e", "└╴z"])
        code = "open(__import__('sys').argv[1], 'w').write('0')\nwhile True: pass\n"
        burner = subprocess.Popen([sys.executable, "-c", code, c.join("t/a/e") + b"/cgroup.procs"])
        try:
            # what uses most comes first, and all above it use as much
            screen.see([path, "├╴a", "│ ├╴e", "│ └╴b", "│   ├╴c", "│   └╴d", "└╴z"])

            def equal_rates():
                rows = screen.rows()
                rate = float(rows[2][1]) if rows[2][1] != "-" else 0
                return (0 < rate <= 110 and [r[1] for r in rows[:3]] == [rows[2][1]] * 3 and
                        rows[3][1] == "0.0" and f" {rows[0][1]}% of " in screen.lines()[1])
            wait_until(equal_rates, "rates", 30)
            expect("|" in screen.lines()[1], "a bar")
        finally:
            burner.kill()
            burner.wait()


@test
def folds():
    path = tree()[1]
    with watch() as screen:
        screen.see(whole())
        screen.keys("Down", "Down")
        screen.see_selected("│ ├╴b")
        screen.keys("Space")
        screen.see([path, "├╴a", "│ ├╴b [+2]", "│ └╴e", "└╴z"])
        screen.keys("Up", "Enter")
        screen.see([path, "├╴a [+4]", "└╴z"])
        screen.keys("Space")
        screen.see([path, "├╴a", "│ ├╴b [+2]", "│ └╴e", "└╴z"])
        screen.keys("End", "Space")
        screen.see_selected("└╴z")
        screen.keys("Home", "Down", "Down", "Space")
        screen.see(whole())


@test
def orders():
    path = tree()[1]
    with watch() as screen:
        screen.see(whole())
        screen.keys("Down")
        screen.keys("r")
        screen.see([path, "├╴z", "└╴a", "  ├╴e", "  └╴b", "    ├╴d", "    └╴c"])
        screen.see_selected("└╴a")
        screen.keys("t")
        screen.see([path, "/z", "/a", "/a/e", "/a/b", "/a/b/d", "/a/b/c"])
        expect("CGROUP (flat)▾" in screen.text(), "the title says so")
        screen.keys("t", "s")
        screen.wait_for("%CPU▾")
        for title in ("%USER▾", "%SYS▾", "%THR▾", "TIME▾", "CGROUP▴"):
            screen.keys("s")
            screen.wait_for(re.escape(title))
        screen.see(whole())


@test
def filters():
    path = tree()[1]
    with watch() as screen:
        screen.see(whole())
        screen.keys("/", "B", "/", "d")
        screen.see([path, "└╴a", "  └╴b", "    └╴d"])
        screen.wait_for("^ filter: B/d")
        screen.keys("BSpace", "BSpace", "Enter")
        screen.see([path, "└╴a", "  └╴b", "    ├╴c", "    └╴d"])
        screen.keys("t")
        screen.see(["/a/b", "/a/b/c", "/a/b/d"])
        screen.keys("/", "x")
        screen.see([])
        screen.wait_for("no path has this text")
        screen.keys("q", "Escape", "t")  # a letter while typing, not the command
        screen.see(whole())
        expect(screen.alive(), "it runs")


@test
def groups_come_and_go():
    c, path = tree()
    with watch() as screen:
        screen.see(whole())
        screen.keys("End")
        screen.see_selected("└╴z")
        c.make("t/m")
        screen.see(whole()[:-1] + ["├╴m", "└╴z"])
        screen.see_selected("└╴z")
        screen.keys("Up")
        screen.see_selected("├╴m")
        c.rmdir("t/m")
        screen.see(whole())
        screen.see_selected("└╴z")
    with watch() as screen:
        screen.see(whole())
        c.rmdir("t")
        screen.wait_for(r"^ freshet   STALE \d+s  the (cgroup|group) was removed")
        c.make("t/a/b/c", "t/a/b/d", "t/a/e", "t/z")
        expect(screen.alive(), "it runs")


@test
def any_size_of_a_terminal():
    with watch() as screen:
        screen.see(whole())
        for keys in ((), ("h",)):
            if keys:
                screen.keys(*keys)
            for columns, lines in ((1, 1), (2, 3), (9, 4), (30, 5), (40, 6), (500, 2), (2, 200),
                                   (200, 50), (1, 1)):
                screen.resize(columns, lines)
                screen.text()
        screen.resize(100, 24)
        screen.wait_for("any key: back")
        screen.keys("x")
        screen.see(whole())
        screen.resize(48, 9)
        screen.wait_for(r"^ +%CPU +TIME  CGROUP▴$")
        screen.resize(100, 9)
        screen.see(whole()[:5])
        screen.keys("NPage")
        screen.see(whole()[1:6])
        screen.keys("End")
        screen.see(whole()[2:])
        screen.keys("PPage", "PPage")
        screen.see(whole()[:5])
        screen.keys("q")
        equal(screen.exit_code(), 0)


@test
def odd_names():
    c, path = tree()
    names = [b"tab\t", b"esc\x1b[31m", "ünï€".encode(), b"bad\xff", b"n" * 255]
    c.make(*[b"odd/" + name for name in names])
    root = os.path.dirname(path) + "/odd"
    with Screen(root, "--sort", "name", "--delay", "100ms") as screen:
        visible = 100 - 43 - 2  # what is left of the line by numbers and guide
        screen.see([root, "├╴bad\\xff", "├╴esc\\x1b[31m", "├╴" + "n" * visible, "├╴tab\\x09",
                    "└╴ünï€"])
    with Screen(root, "--sort", "name", "--delay", "100ms", env="LC_ALL=C") as screen:
        screen.see([root, "|-bad\\xff", "|-esc\\x1b[31m", "|-" + "n" * visible, "|-tab\\x09",
                    "`-\\xc3\\xbcn\\xc3\\xaf\\xe2\\x82\\xac"])
    c.rmdir("odd")


@test
def deep_trees_keep_their_names_on_the_screen():
    c, path = tree()
    c.make("deep/" + "/".join(f"l{i}" for i in range(50)))
    with Screen(os.path.dirname(path) + "/deep", "--delay", "100ms", lines=60) as screen:
        wait_until(lambda: len(screen.names()) == 51, "51 rows", 30)
        for i, name in enumerate(screen.names()[1:]):
            expect(name.endswith(f"└╴l{i}"), f"level {i}: {name}")
    c.rmdir("deep")


@test
def colours_only_if_wanted():
    for env, coloured in (("", True), ("NO_COLOR=1", False), ("NO_COLOR=", True),
                          ("TERM=vt100", False)):
        with watch(env=env) as screen:
            wait_until(lambda: len(screen.rows()) == 7, "the table", 30)
            equal(bool(COLOUR.search(screen.text("-e"))), coloured, env)


@test
def terminals_that_are_not_known():
    with watch(env="TERM=nix") as screen:
        equal(screen.exit_code(), 1)
        expect("freshet: nix: no such terminal is known; --batch needs none" in screen.stderr(),
               screen.stderr())


@test
def it_ends_with_its_terminal():
    with watch() as screen:
        screen.see(whole())
        parent = int(screen.tmux("list-panes", "-F", "#{pane_pid}"))
        with open(f"/proc/{parent}/task/{parent}/children") as f:
            pid = int(f.read().split()[0])
        screen.tmux("kill-server")
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "it ends", 30)


@test
def stale_numbers_are_marked():
    c, path = tree()
    arguments = dict(root=c.path, segment="host")
    serve = Serve("--interval", "100ms", **arguments)
    with watch() as screen:
        screen.see(whole())
        equal(screen.stderr(), "")
        screen.wait_for(r"^ freshet · .* · freshet serve")
        os.kill(serve.pid, signal.SIGSTOP)
        screen.wait_for(r"^ freshet   STALE \d+s  the producer does not publish · ")
        # also when there is room for nothing else
        screen.resize(30, 1)
        screen.wait_for(r"^ freshet   STALE \d+s")
        screen.resize(100, 24)
        os.kill(serve.pid, signal.SIGCONT)
        screen.wait_for(r"^ freshet · .* s old$")
        serve.stop(signal.SIGKILL)
        screen.wait_for(r"^ freshet   STALE \d+s  the producer has ended")
        screen.see(whole(), "what it last said")
        with Serve("--interval", "100ms", **arguments):
            screen.wait_for(r"^ freshet · .* s old$")
            screen.see(whole())
            c.make("t/m")
            screen.see(whole()[:-1] + ["├╴m", "└╴z"])
            c.rmdir("t/m")
        screen.wait_for(r"^ freshet   STALE")


@test
def groups_without_room_are_said():
    c, path = tree()
    with Serve("--interval", "100ms", "--max-groups", "3", root=c.path, segment="small"):
        with Screen("--segment", "small", "--delay", "100ms") as screen:
            screen.wait_for(r"^ freshet · \d+ groups without room · ")
            equal(len(screen.rows()), 3)


@test
def a_programs_numbers_are_its_columns():
    def head():
        return next((line.split() for line in screen.lines() if "GROUP" in line), [])

    def first(column):
        rows = [line.split() for line in screen.lines() if re.search(r"[├└]╴(a|b)$", line)]
        return [(row[column], row[-1][2:]) for row in rows]

    with Program("shop") as program:
        program.do("create /a", "create /b", "add /a 4 3", "add /b 4 12345678", "observe /a 5000")
        with Screen("--segment", "shop", "--delay", "100ms", "--sort", "open", columns=120) as screen:
            screen.wait_for("GROUP")
            wait_until(lambda: head() == ["REQUESTS/s", "ERRORS/s", "SENT", "B/s", "%BUSY", "OPEN▾",
                                          "P99", "LATENCY", "GROUP"], "all columns", 10)
            expect("CPU" not in screen.text(), "no meter of CPUs")
            wait_until(lambda: first(4) == [("12.3M", "b"), ("3", "a")], "sorted by open", 10)
            screen.keys("s")
            screen.wait_for("P99 LATENCY▾")
            screen.keys("s")
            wait_until(lambda: [name for _, name in first(4)] == ["a", "b"], "by name", 10)
            screen.keys("s")
            screen.wait_for("REQUESTS/s▾")
            program.do("add /b 0 1000000")
            wait_until(lambda: [name for _, name in first(4)] == ["b", "a"], "by requests", 10)
            # the sorted column stays where there is room for few
            screen.resize(44, 24)
            wait_until(lambda: head() == ["REQUESTS/s▾", "GROUP"], "one column", 10)
            screen.keys("h")
            screen.wait_for("P99: 99 of 1")
            program.kill()
            screen.resize(120, 24)
            screen.keys("h")  # back
            screen.wait_for(r"STALE 2s .*the producer has ended")
            equal(first(4), [("12.3M", "b"), ("3", "a")], "as it was")
            screen.keys("q")
            equal(screen.exit_code(), 0)
        os.unlink(program.file)


if not cgroup2_mount():
    print("1..0 # SKIP no cgroup2 mount")
else:
    run()
