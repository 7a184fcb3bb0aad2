# SPDX-License-Identifier: MIT
"""What end-to-end tests share: the program under test, test cgroups, a running `freshet serve`.

The program is $FRESHET, else build/freshet of this tree. Everything here is undone at exit: test
cgroups (one folder of this process below the cgroup2 mount), processes, temporary files.
"""
import atexit
import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from tap import equal, expect, skip

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FRESHET = os.environ.get("FRESHET") or os.path.join(TREE, "build", "freshet")

def sanitized():
    """Whether the program is an ASan build, whose memory says nothing about the real one's."""
    with open(FRESHET, "rb") as f:
        return b"__asan_init" in f.read()


_temporary = None


def temporary():
    """A directory of this process, mode 0700."""
    global _temporary
    if not _temporary:
        _temporary = tempfile.mkdtemp(prefix="freshet-test-")
        atexit.register(shutil.rmtree, _temporary, ignore_errors=True)
    return _temporary


def freshet(*arguments, timeout=30, env=None):
    """Runs the program to its end; stdout and stderr are text (bytes that are no UTF-8 escaped)."""
    return subprocess.run([FRESHET, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=timeout, encoding="utf-8", errors="backslashreplace",
                          env={**os.environ, **(env or {})})


def wait_until(condition, what, timeout=10):
    """Polls condition() until it is true; its value. Fails the test after timeout seconds."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        expect(time.monotonic() < end, f"not within {timeout} s: {what}")
        time.sleep(0.01)


# Test cgroups

def cgroup2_mount():
    """The cgroup2 mount point, or None."""
    with open("/proc/self/mountinfo", "rb") as f:
        for line in f:
            left, _, right = line.rstrip(b"\n").partition(b" - ")
            if right.split(b" ")[0] == b"cgroup2":
                path = left.split(b" ")[4]
                return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), path))
    return None


class Cgroups:
    """A folder of test cgroups: with Cgroups("http") as c: c.make("a/b"). Skips the test if this
    machine lets us make none. Names may be bytes."""

    def __init__(self, name):
        mount = cgroup2_mount()
        if not mount:
            skip("no cgroup2 mount")
        self.path = os.path.join(mount, f"freshet-{name}-{os.getpid()}")
        try:
            os.mkdir(self.path)
        except OSError as error:
            skip(f"cannot make cgroups: {error}")
        atexit.register(self.remove)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def join(self, name):
        return os.path.join(os.fsencode(self.path), os.fsencode(name).lstrip(b"/"))

    def make(self, *names):
        for name in names:
            os.makedirs(self.join(name), exist_ok=True)

    def rmdir(self, name):
        """Removes a cgroup and those below it. Kernels drop ended processes a moment late."""
        for directory, _, _ in os.walk(self.join(name), topdown=False):
            end = time.monotonic() + 5
            while True:
                try:
                    os.rmdir(directory)
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.01)

    def burn(self, name, seconds):
        """Uses CPU time inside a cgroup, by a process that ends."""
        procs = self.join(name) + b"/cgroup.procs"
        subprocess.run([sys.executable, "-c",
                        "import sys, time\n"
                        "with open(sys.argv[1], 'w') as f: f.write('0')\n"
                        "end = time.process_time() + float(sys.argv[2])\n"
                        "while time.process_time() < end: pass\n",
                        procs, str(seconds)], check=True, timeout=60)

    def remove(self):
        if os.path.isdir(self.path):
            self.rmdir("")


# A running daemon

class Serve:
    """`freshet serve` on a free port with a segment of its own. With root=None it collects the whole
    hierarchy. Extra arguments go to the command line. It is ready when the constructor returns."""

    def __init__(self, *arguments, root=None, segment=None, listen="127.0.0.1:0", env=None,
                 timeout=20, wrapper=()):
        self.segment = segment or os.path.join(temporary(), f"segment-{id(self):x}")
        command = [*wrapper, FRESHET, "serve", "--listen", listen, "--segment", self.segment]
        if root:
            command += ["--root", root]
        self.lines = []
        self.port = None
        self.process = subprocess.Popen(command + list(arguments), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        env={**os.environ, **(env or {})})
        self.pid = self.process.pid
        atexit.register(self.kill)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        wait_until(lambda: self.port or self.process.poll() is not None, "serve says its address",
                   timeout)
        expect(self.port, f"serve did not start: {self.lines}")

    def _read(self):
        for line in self.process.stderr:
            text = line.decode("utf-8", "backslashreplace").rstrip("\n")
            self.lines.append(text)
            found = re.search(r"http://\S+:(\d+)/", text)
            if found and not self.port:
                self.port = int(found[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, by=signal.SIGTERM, timeout=10):
        """Its exit code; for one that a signal ended, minus the signal."""
        if self.process.poll() is None:
            self.process.send_signal(by)
        code = self.process.wait(timeout)
        self._reader.join(5)
        return code

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def rss_kb(self):
        with open(f"/proc/{self.pid}/status") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])

    def cpu_seconds(self):
        with open(f"/proc/{self.pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def request(self, target, method="GET", headers=None, timeout=10):
        """(status, headers, body). The target goes out as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.putrequest(method, target, skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, target, headers=None):
        """Body of a 200 answer, as text."""
        status, _, body = self.request(target, headers=headers)
        expect(status == 200, f"{target}: {status} {body[:200]!r}")
        return body.decode()


def promtool(server, *targets):
    """Has Prometheus's own checker look at what a daemon says, if FRESHET_PROMTOOL names it."""
    program = os.environ.get("FRESHET_PROMTOOL")
    if not program:
        skip("FRESHET_PROMTOOL is not set")
    for target in targets:
        done = subprocess.run([program, "check", "metrics"], input=server.get(target),
                              capture_output=True, encoding="utf-8", timeout=60)
        equal((done.returncode, done.stdout + done.stderr), (0, ""), target)
