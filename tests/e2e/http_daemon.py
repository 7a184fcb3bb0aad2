# SPDX-License-Identifier: MIT
"""`freshet serve` as a process: start, stop, configuration, the service manager, what it does when
something is in its way."""
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import cli
from freshet import FRESHET, Cgroups, Serve, cgroup2_mount, freshet, temporary, wait_until
from tap import equal, expect, note, run, skip, test

cli.private_run()


def write(name, text):
    path = os.path.join(temporary(), name)
    with open(path, "w") as f:
        f.write(text)
    return path


def fresh_segment(name):
    return os.path.join(temporary(), name)


@test
def starts_says_so_and_stops_clean():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with Cgroups("daemon") as cgroups:
            cgroups.make("a/b")
            serve = Serve(root=cgroups.path)
            for beside in ("", ".sock"):
                expect(os.path.exists(serve.segment + beside), beside)
            equal(os.stat(serve.segment).st_mode & 0o777, 0o640)
            equal(os.stat(serve.segment + ".sock").st_mode & 0o777, 0o660)
            equal(serve.stop(number), 0, str(number))
            equal(len(serve.lines), 1, str(serve.lines))
            line = serve.lines[0]
            for word in (cgroups.path, "3 groups", f"http://127.0.0.1:{serve.port}/",
                         serve.segment):
                expect(word in line, f"{word}: {line}")
            expect(re.match(r"freshet \S+: (bpf|files)", line), line)
            for beside in ("", ".sock"):
                expect(not os.path.exists(serve.segment + beside), f"{beside} is left behind")


@test
def collects_before_others_unless_told_otherwise():
    """The collecting thread, which is the first one, alone; a nice value from outside stays."""
    if os.geteuid():
        skip("needs root")

    def nice_values(serve):
        return {thread: os.getpriority(os.PRIO_PROCESS, int(thread))
                for thread in os.listdir(f"/proc/{serve.pid}/task")}

    usual = os.getpriority(os.PRIO_PROCESS, 0)
    with Cgroups("daemon") as cgroups:
        with Serve(root=cgroups.path) as serve:
            wait_until(lambda: nice_values(serve)[str(serve.pid)] == -10 or usual,
                       "it is before others")
            values = nice_values(serve)
            first = values.pop(str(serve.pid))
            equal(first, usual or -10)
            expect(values and set(values.values()) == {usual}, str(values))
        with Serve(root=cgroups.path, wrapper=["nice", "-n", "7"]) as serve:
            serve.get("/healthz")
            equal(set(nice_values(serve).values()), {usual + 7})


@test
def stops_while_clients_wait():
    with Cgroups("daemon") as cgroups:
        serve = Serve("--interval", "1h", "--max-cpu", "0", root=cgroups.path)
        waiting = socket.create_connection(("127.0.0.1", serve.port))
        waiting.sendall(b"GET /api/v1/groups?max_age=0 HTTP/1.1\r\nHost: x\r\n\r\n")
        serve.get("/healthz")
        begin = time.monotonic()
        equal(serve.stop(), 0)
        expect(time.monotonic() - begin < 5)
        waiting.close()


@test
def second_instance_is_told():
    with Cgroups("daemon") as cgroups, Serve(root=cgroups.path) as first:
        done = freshet("serve", "--root", cgroups.path, "--segment", first.segment,
                       "--listen", "127.0.0.1:0")
        equal((done.returncode, done.stdout), (1, ""))
        expect(first.segment in done.stderr and done.stderr.count("\n") == 1, done.stderr)
        note(done.stderr)
        equal(first.request("/healthz")[0], 200, "the first is not disturbed")
        expect(os.path.exists(first.segment) and os.path.exists(first.segment + ".sock"))
        done = freshet("serve", "--root", cgroups.path, "--segment", fresh_segment("other"),
                       "--listen", f"127.0.0.1:{first.port}")
        equal(done.returncode, 1)
        expect("in use" in done.stderr and "--listen" in done.stderr, done.stderr)


@test
def starts_over_what_a_killed_one_left():
    with Cgroups("daemon") as cgroups:
        first = Serve(root=cgroups.path)
        equal(first.stop(signal.SIGKILL), -signal.SIGKILL)
        expect(os.path.exists(first.segment + ".sock"))
        with Serve(root=cgroups.path, segment=first.segment) as second:
            equal(second.request("/healthz")[0], 200)


@test
def root_removed_and_stale_numbers():
    with Cgroups("daemon") as cgroups:
        cgroups.make("a")
        with Serve("--interval", "100ms", root=cgroups.path) as serve:
            equal(serve.request("/healthz")[0], 200)
            cgroups.remove()
            wait_until(lambda: serve.request("/healthz")[0] == 503, "healthz fails")
            body = serve.request("/healthz")[2].decode()
            expect(re.match(r"the last pass began \S+ s ago, longer than 2.0 s\n$", body), body)
            metrics = serve.get("/metrics")
            expect('cgroup_cpu_usage_seconds_total{cgroup="/a"}' in metrics, "the last numbers")
            age = float(re.search(r"^freshet_last_pass_age_seconds (\S+)", metrics, re.M)[1])
            expect(age > 2, f"with their age: {age}")
            failures = int(re.search(r"^freshet_pass_failures_total (\d+)", metrics, re.M)[1])
            expect(failures > 5, f"and it tries again: {failures}")
            status, _, body = serve.request("/api/v1/groups?max_age=10ms")
            equal(status, 503)
            expect(body.startswith(b"max_age: "), body)
            equal(len([line for line in serve.lines if "pass failed" in line]), 1,
                  "one line, not one a pass")
            equal(serve.stop(), 0)


@test
def who_asks_of_a_removed_root_does_not_keep_it_busy():
    """A pass that fails at once costs next to nothing of the budget."""
    with Cgroups("daemon") as cgroups, Serve("--interval", "1h", root=cgroups.path) as serve:
        cgroups.remove()
        clients = [socket.create_connection(("127.0.0.1", serve.port)) for _ in range(2)]
        for s in clients:
            s.sendall(b"GET /api/v1/groups?max_age=0 HTTP/1.1\r\nHost: x\r\n\r\n")

        def failures():
            return int(re.search(r"^freshet_pass_failures_total (\d+)", serve.get("/metrics"),
                                 re.M)[1])

        wait_until(lambda: failures() > 1, "it tries, and tries again")
        expect(failures() < 4, f"{failures()} passes failed in about a second")
        expect("freshet_on_demand_passes_total 0\n" in serve.get("/metrics"), "none was made")
        for s in clients:
            s.close()


@test
def first_pass_must_work():
    """Whatever it runs out of at the start, it never says that it goes on when it does not."""
    with Cgroups("daemon") as cgroups:
        seen = set()
        for files in range(10, 60):
            done = subprocess.run(["prlimit", f"--nofile={files}", "timeout", "1", FRESHET, "serve",
                                   "--root", cgroups.path, "--segment", fresh_segment("few"),
                                   "--listen", "127.0.0.1:0"], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=30)
            if "http://" in done.stderr:
                break
            expect(done.returncode in (1, 127), f"{files}: {done.returncode} {done.stderr}")
            expect("trying again" not in done.stderr, f"{files}: {done.stderr}")
            seen.add(re.sub(r".*: ", "", done.stderr.strip()))
        expect("Too many open files" in seen, str(seen))


class Manager:
    """A service manager's notification socket."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(20)

    def wait_for(self, word):
        while True:
            text = self.socket.recv(4096).decode()
            if word in text.splitlines():
                return text


@test
def service_manager_is_told():
    for address in (os.path.join(temporary(), "notify"), f"\0freshet-test-{os.getpid()}"):
        manager = Manager(address)
        with Cgroups("daemon") as cgroups:
            serve = Serve(root=cgroups.path,
                          env={"NOTIFY_SOCKET": address.replace("\0", "@"),
                               "WATCHDOG_USEC": "200000"})
            ready = manager.wait_for("READY=1")
            expect(f"http://127.0.0.1:{serve.port}/" in ready and "STATUS=" in ready, ready)
            begin = time.monotonic()
            for _ in range(5):
                equal(manager.wait_for("WATCHDOG=1"), "WATCHDOG=1", "nothing that costs it more")
            took = time.monotonic() - begin
            expect(took < 2, f"5 pings of one each 200 ms took {took:.2f} s")
            cgroups.remove()
            manager.wait_for("STATUS=Passes fail: No such device")
            cgroups.make("")
            manager.wait_for("STATUS=Passes work again")
            serve.process.send_signal(signal.SIGTERM)
            manager.wait_for("STOPPING=1")
            equal(serve.stop(), 0)
        manager.socket.close()


@test
def configuration_file():
    with Cgroups("daemon") as cgroups:
        cgroups.make("a", "b")
        path = write("good.conf", f"# what to do\nroot = {cgroups.path}\ninterval = 1h\n"
                                  "source = files\n")
        with Serve("--config", path) as serve:
            expect("files" in serve.lines[0] and "3 groups" in serve.lines[0], serve.lines[0])
        with Serve("--config", path, root=os.path.join(cgroups.path, "a")) as serve:
            expect("1 groups" in serve.lines[0], "the command line has the last word")


@test
def wrong_usage():
    bad = write("bad.conf", "interval = 1s\n\nsource = magic\n")
    nameless = write("nameless.conf", " = 1s\n")
    raw = os.path.join(temporary(), "raw.conf")
    with open(raw, "wb") as f:
        f.write(b"\x1b\xff\n")
    for arguments, words in (
            (["--config", bad], f"{bad}:3: source: \"magic\" is not auto, bpf or files"),
            (["--config", "/nonexistent"], "/nonexistent: No such file"),
            (["--config", ""], 'the file named "": No such file'),
            (["--config", nameless], f'{nameless}:1: there is no option\'s name before "="'),
            (["--interval", "\x1b[31m"], 'interval: "\\x1b[31m" is not'),
            ([b"--\xff\x07"], '"--\\xff\\x07": no such option'),
            ([b"\xff\n"], '"\\xff\\x0a": no such argument'),
            (["--config", raw], f"{raw}:1: \"\\x1b\\xff\": write it as option = value"),
            (["--config", b"/no\x1b"], "/no\\x1b: No such file"),
            (["--interval", "0"], "interval: \"0\" is not a time from 1ms to 1h"),
            (["--interval", "soon"], "interval:"),
            (["--source", "magic"], "source:"),
            (["--max-groups", "0"], "max-groups:"),
            (["--max-cpu", "101"], "max-cpu:"),
            (["--segment", "a b"], "segment: \"a b\" is not a name"),
            (["--segment", ".."], "segment: \"..\" is not a name"),
            (["--listen", "nonsense"], "listen: \"nonsense\" is not ADDRESS:PORT"),
            (["--frobnicate"], "--frobnicate"),
            (["--interval"], "--interval"),
            (["operand"], "operand")):
        done = freshet("serve", "--listen", "127.0.0.1:0", *arguments)
        equal((done.returncode, done.stdout), (2, ""), str(arguments))
        expect(words in done.stderr, f"{arguments}: {done.stderr}")
    done = freshet("serve", "--help")
    equal((done.returncode, done.stderr), (0, ""))
    expect("--max-cpu" in done.stdout)


@test
def address_of_another_host():
    with Cgroups("daemon") as cgroups:
        segment = fresh_segment("addresses")
        done = freshet("serve", "--root", cgroups.path, "--segment", segment,
                       "--listen", "192.0.2.1:0")
        equal(done.returncode, 1)
        expect("cannot listen on 192.0.2.1:0: " in done.stderr, done.stderr)
        expect(not os.path.exists(segment) and not os.path.exists(segment + ".sock"))


@test
def listens_on_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        skip(f"no IPv6 here: {error}")
    with Cgroups("daemon") as cgroups, Serve(root=cgroups.path, listen="[::1]:0") as serve:
        with socket.create_connection(("::1", serve.port)) as s:
            s.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            expect(s.recv(100).startswith(b"HTTP/1.1 200 "))


@test
def no_such_root():
    done = freshet("serve", "--root", "/no/such/cgroup", "--segment", fresh_segment("noroot"),
                   "--listen", "127.0.0.1:0")
    equal((done.returncode, done.stdout), (1, ""))
    expect("/no/such/cgroup" in done.stderr, done.stderr)
    expect(not os.path.exists(fresh_segment("noroot")))


@test
def ordinary_user():
    """Without privilege: files, in the user's own runtime directory."""
    if os.geteuid() != 0 or not cgroup2_mount():
        skip("needs root to become somebody else, and a cgroup2 mount")
    runtime = os.path.join(temporary(), "runtime")
    os.mkdir(runtime, 0o700)
    os.chown(runtime, 65534, 65534)
    os.chmod(temporary(), 0o711)
    base = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", FRESHET, "serve",
            "--listen", "127.0.0.1:0"]
    if subprocess.run(base[:4] + ["test", "-x", FRESHET], check=False).returncode:
        skip("nobody cannot reach the program")
    environment = {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}
    for more, directory in (({"XDG_RUNTIME_DIR": runtime}, os.path.join(runtime, "freshet")),
                            ({}, "/tmp/freshet-65534")):
        process = subprocess.Popen(base, env={**environment, **more}, stderr=subprocess.PIPE,
                                   text=True)
        try:
            line = process.stderr.readline()
            expect(re.match(r"freshet \S+: files", line), line)
            expect(os.path.exists(os.path.join(directory, "host")), line)
            shutil.rmtree(directory)
            wait_until(lambda: os.path.exists(os.path.join(directory, "host.sock")),
                       "its directory is made anew", 5)
        finally:
            process.terminate()
            equal(process.wait(20), 0)
        expect(not os.path.exists(directory), "the directory that it made is gone with it")
    os.mkdir("/tmp/freshet-65534")  # root's
    try:
        done = subprocess.run(base, env=environment, capture_output=True, text=True, timeout=30)
        equal(done.returncode, 1)
        expect("/tmp/freshet-65534" in done.stderr, done.stderr)
    finally:
        os.rmdir("/tmp/freshet-65534")


run()
