# SPDX-License-Identifier: MIT
"""What the commands say and do where something is missing: no cgroup2, no privilege, a serve that
was killed, stopped, or whose segment may not be read."""
import json
import os
import pty
import re
import signal
import struct
import subprocess
import time

import cli
from cli import FALLBACK, fails, shown, works
from freshet import Cgroups, Serve, cgroup2_mount, temporary, wait_until
from tap import equal, expect, run, skip, test

cli.private_run()


def root_only():
    if os.geteuid():
        skip("only root can do that")


def as_nobody(*arguments):
    """(exit code, stdout, stderr) of the program without any privilege."""
    root_only()
    global program
    if not program:
        program = cli.public_copy()
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                           "--inh-caps=-all", program, *arguments], cwd="/", text=True,
                          capture_output=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


program = None


def without_cgroup2(*arguments):
    root_only()
    return subprocess.run(["unshare", "-m", "sh", "-c",
                           'while m=$(awk \'/ - cgroup2 / {print $5; exit}\' /proc/self/mountinfo);'
                           ' [ "$m" ]; do umount -l "$m" || exit 99; done; exec "$@"', "sh",
                           cli.FRESHET, *arguments], text=True, capture_output=True, timeout=60)


@test
def no_cgroup2():
    for arguments in (["ls"], ["show", "/"], ["top", "-n", "1"]):
        done = without_cgroup2(*arguments)
        equal(done.returncode, 1, f"{arguments}: {done.stderr}")
        equal(done.stderr, "freshet: cgroup2: not mounted here (mount -t cgroup2 none DIR)\n")
        equal(done.stdout, "")
    done = without_cgroup2("doctor")
    equal(done.returncode, 1, done.stderr)
    expect(re.search(r"^no +cgroup2 +it is not mounted", done.stdout, re.M), done.stdout)
    got = json.loads(without_cgroup2("doctor", "--json").stdout)
    equal([got["can_serve"], got["source"]], [False, None])


@test
def controllers_are_told_apart():
    root_only()
    path = os.path.join(temporary(), "controllers")
    for text, state in (("cpuset cpu io", "ok"), ("cpuset cpu", "ok"), ("cpu", "ok"),
                        ("cpuset io", "no"), ("cpuacct", "no"), ("", "no")):
        with open(path, "w") as f:
            f.write(text + "\n")
        done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && '
                               'exec "$@"', "sh", path, cgroup2_mount() + "/cgroup.controllers",
                               cli.FRESHET, "doctor"], text=True, capture_output=True, timeout=60)
        expect(re.search(rf"^{state} +controllers ", done.stdout, re.M), f"{text!r}: {done}")


@test
def no_privilege():
    """The same numbers, from files, and it says why."""
    with Cgroups("cli-absent") as c:
        c.make("a")
        c.burn("a", 0.05)
        path = "/" + os.path.basename(c.path) + "/a"
        code, out, err = as_nobody("show", path)
        equal(code, 0, err)
        equal(shown(out)["usage_usec"], str(cli.cpu_stat(c.join("a"))["usage_usec"]))
        expect(re.search(r"^freshet: serve is not running; collecting in-process \(files: .*BPF",
                         err), err)
        code, out, err = as_nobody("doctor")
        equal(code, 0, err)
        for line in (r"^no +privilege +without CAP_BPF", r"^no +source bpf +\S", r"^ok +source files",
                     r"^ok +serve +it can, by files: "):
            expect(re.search(line, out, re.M), f"{line}: {out}")


@test
def a_segment_that_may_not_be_read():
    root_only()
    with Serve(segment="host"):
        code, out, err = as_nobody("show", "/")
        equal(code, 0, err)
        expect(re.search(FALLBACK.format("segment host: no permission to read it"), err), err)
        equal(shown(out)["path"], "/")
        code, out, err = as_nobody("show", "/", "--segment", "/run/freshet/host")
        equal([code, out, err], [1, "", "freshet: /run/freshet/host: no permission to read it\n"])


@test
def a_killed_serve_is_not_believed():
    serve = Serve(segment="host")
    works("show", "/")
    equal(serve.stop(signal.SIGKILL), -signal.SIGKILL)
    reason = FALLBACK.format("segment host: its producer has ended")
    for arguments in (["show", "/"], ["ls", "--depth", "0"], ["top", "-n", "1", "--delay", "50ms"]):
        works(*arguments, stderr=reason)
    expect(re.search(r"^no +segment .*\(pid \d+\) has ended$", works("doctor"), re.M), "doctor")
    # another takes its place
    with Serve(segment="host"):
        works("show", "/")
    works("show", "/", stderr=FALLBACK.format("serve is not running"))


@test
def a_stopped_serve_is_not_believed():
    with Cgroups("cli-absent") as c:
        c.make("a")
        path = "/" + os.path.basename(c.path) + "/a"
        with Serve("--interval", "100ms", root=c.path, segment="host") as serve:
            os.kill(serve.pid, signal.SIGSTOP)
            try:
                c.burn("a", 0.05)
                wait_until(lambda: "stopped publishing" in works("doctor"), "it is stale", 30)
                reason = FALLBACK.format(rf"segment host: its producer \(pid {serve.pid}\) stopped "
                                         r"publishing \d+\.\d s ago")
                got = shown(works("show", path, stderr=reason))
                equal(int(got["usage_usec"]), cli.cpu_stat(c.join("a"))["usage_usec"])
                works("top", path, "-n", "1", "--delay", "50ms", stderr=reason)
            finally:
                os.kill(serve.pid, signal.SIGCONT)
            wait_until(lambda: not cli.freshet("show", path).stderr, "it goes on", 30)


@test
def a_stopped_serve_answers_no_requests():
    """Young enough to be believed, but it makes no younger pass: collected here, within seconds."""
    with Serve("--interval", "60s", segment="host") as serve:
        os.kill(serve.pid, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            works("show", "/", "--max-age", "0",
                  stderr=FALLBACK.format("segment host: it has no numbers that young: .*"))
            expect(time.monotonic() - begin < 20, "it did not wait for ever")
        finally:
            os.kill(serve.pid, signal.SIGCONT)


def start_top(*arguments):
    return subprocess.Popen([cli.FRESHET, "top", *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def first_table(top):
    while top.stdout.readline().strip():
        pass


def tables_to_the_end(top, code, stderr):
    out, err = top.stdout.read(), top.stderr.read()  # not communicate(): some is in the buffer
    equal(top.wait(60), code, err)
    expect(re.search(stderr, err), f"{err!r}, not {stderr}")
    return [table.splitlines() for table in out.split("\n\n")]


def check_rates(tables, count):
    equal(len(tables), count)
    for table in tables:
        for row in table:
            expect(re.match(r" *\d+\.\d +", row), f"a rate: {row!r}")


@test
def tables_follow_a_serve_that_was_restarted():
    with Cgroups("cli-absent") as c:
        c.make("a")
        first = Serve("--interval", "100ms", root=c.path, segment="host")
        top = start_top("/" + os.path.basename(c.path), "-n", "8", "--delay", "150ms")
        first_table(top)
        first.stop(signal.SIGKILL)
        with Serve("--interval", "100ms", root=c.path, segment="host"):
            check_rates(tables_to_the_end(top, 0, "^$"), 7)


@test
def tables_go_on_when_serve_ended():
    with Cgroups("cli-absent") as c:
        c.make("a")
        for by in (signal.SIGTERM, signal.SIGKILL):
            serve = Serve("--interval", "100ms", root=c.path, segment="host")
            top = start_top("/" + os.path.basename(c.path), "-n", "4", "--delay", "150ms")
            first_table(top)
            serve.stop(by)
            check_rates(tables_to_the_end(top, 0, r"^freshet: (serve is not running|segment host: "
                                          r"its producer has ended); collecting in-process "
                                          r"\([^\n]*\)\n$"), 3)


@test
def tables_go_on_when_serve_is_stopped():
    with Cgroups("cli-absent") as c:
        c.make("a")
        with Serve("--interval", "100ms", root=c.path, segment="host") as serve:
            top = start_top("/" + os.path.basename(c.path), "-n", "4", "--delay", "150ms")
            first_table(top)
            os.kill(serve.pid, signal.SIGSTOP)
            try:
                check_rates(tables_to_the_end(top, 0, FALLBACK.format(
                    rf"segment host: its producer \(pid {serve.pid}\) stopped publishing "
                    r"\d\.\d s ago")), 3)
            finally:
                os.kill(serve.pid, signal.SIGCONT)


@test
def tables_wait_for_the_next_pass_of_a_serve_that_takes_no_requests():
    with Cgroups("cli-absent") as c:
        c.make("a")
        with Serve("--interval", "1s", root=c.path, segment="host"):
            where = "/run/freshet" if not os.geteuid() else os.environ["XDG_RUNTIME_DIR"] + "/freshet"
            sockets = [name for name in os.listdir(where) if name.endswith(".sock")]
            equal(len(sockets), 1, f"the socket: {os.listdir(where)}")
            os.unlink(os.path.join(where, sockets[0]))
            top = start_top("/" + os.path.basename(c.path), "-n", "3", "--delay", "150ms")
            check_rates(tables_to_the_end(top, 0, "^$"), 3)


@test
def tables_of_other_segments_end_with_their_producer():
    serve = Serve("--interval", "100ms", segment=os.path.join(temporary(), "tables"))
    top = start_top("-n", "1000", "--delay", "150ms", "--segment", serve.segment)
    first_table(top)
    serve.stop(signal.SIGKILL)
    tables_to_the_end(top, 1, rf"^freshet: {serve.segment}: its producer has ended\n$")


@test
def a_stopped_serve_of_a_long_interval_is_not_believed():
    with Cgroups("cli-absent") as c:
        path = "/" + os.path.basename(c.path)
        with Serve("--interval", "1h", root=c.path, segment="host") as serve:
            begin = json.loads(works("ls", path, "--json"))
            os.kill(serve.pid, signal.SIGSTOP)
            try:
                wait_until(lambda: "stopped publishing" in cli.freshet("ls", path).stderr, "stale",
                           30)
                expect("stopped publishing" in works("doctor"), "doctor")
            finally:
                os.kill(serve.pid, signal.SIGCONT)
            again = json.loads(works("ls", path, "--json"))
            expect(again["pass"] > begin["pass"] and again["age_us"] <= 1e7,
                   f"one that goes on is asked: {again}")


@test
def a_terminal_is_told_the_age():
    with Cgroups("cli-absent") as c:
        path = "/" + os.path.basename(c.path)
        with Serve("--interval", "1h", root=c.path, segment="host"):
            def said():
                ours, theirs = pty.openpty()
                try:
                    done = subprocess.run([cli.FRESHET, "ls", path], stdout=theirs,
                                          stderr=subprocess.PIPE, text=True, timeout=30)
                finally:
                    os.close(theirs)
                    os.close(ours)
                equal(done.returncode, 0, done.stderr)
                return done.stderr
            equal(said(), "", "young")
            got = wait_until(said, "it says the age")
            match = re.fullmatch(r"freshet: these numbers are (\d+\.\d) s old\n", got)
            expect(match and 2 <= float(match[1]) < 9, got)
            works("ls", path)


@test
def other_segments_have_no_replacement():
    serve = Serve("--interval", "100ms", segment=os.path.join(temporary(), "mine"))
    wait_until(lambda: cli.freshet("show", "/", "--segment", serve.segment).stdout, "it publishes")
    os.kill(serve.pid, signal.SIGSTOP)
    wait_until(lambda: cli.freshet("show", "/", "--segment", serve.segment).returncode, "it is stale")
    for arguments in (["show", "/"], ["ls"], ["top", "-n", "1"]):
        fails(1, rf"^freshet: {serve.segment}: its producer \(pid {serve.pid}\) stopped publishing",
              *arguments, "--segment", serve.segment)
    serve.stop(signal.SIGKILL)
    fails(1, rf"^freshet: {serve.segment}: its producer has ended\n$", "show", "/", "--segment",
          serve.segment)
    path = os.path.join(temporary(), "text")
    for content, what in ((b"", "not a segment"), (b"x" * 10000, "not a segment")):
        with open(path, "wb") as f:
            f.write(content)
        fails(1, f"^freshet: {path}: {what}", "ls", "--segment", path)


@test
def a_damaged_segment_is_no_empty_list():
    """One whose header is whole: what is wrong shows when its tree is read."""
    with Cgroups("cli-absent") as c:
        c.make("a/b")
        with Serve("--interval", "1h", root=c.path,
                   segment=os.path.join(temporary(), "damaged")) as serve:
            with open(serve.segment, "r+b") as f:
                sections = struct.iter_unpack("=IIQQQ", f.read(760)[248:])
                _, count, offset, _, stride = next(s for s in sections if s[0] == 4)
                for bank in range(count):  # the root's size, in `order`
                    f.seek(offset + bank * stride + 64 + 8)
                    f.write(struct.pack("=I", 2))
            for arguments in (["ls"], ["ls", "--json"], ["top", "-n", "1", "--delay", "10ms"]):
                fails(1, r"^freshet: /: Input/output error\n$", *arguments, "--segment", serve.segment)


@test
def a_subtree_removed_while_top_watches():
    with Cgroups("cli-absent") as c:
        c.make("a/b")
        path = "/" + os.path.basename(c.path) + "/a"
        top = subprocess.Popen([cli.FRESHET, "top", path, "-n", "1000", "--delay", "50ms"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        expect(top.stdout.readline().endswith(path + "\n"), "a table")
        c.rmdir("a")
        _, err = top.communicate(timeout=20)
        equal(top.returncode, 1, err)
        expect(re.search(rf"^freshet: {path}: the \w+ was removed$", err, re.M), err)


if not cgroup2_mount():
    print("1..0 # SKIP no cgroup2 mount")
else:
    run()
