# SPDX-License-Identifier: MIT
"""What the tests of programs' segments share: a program with a tree of its own (producer.c)."""
import atexit
import os
import subprocess

from freshet import TREE
from tap import equal, expect

PRODUCER = os.environ.get("PRODUCER") or os.path.join(TREE, "build/tests/e2e/test_producer")


def directory():
    """Where segments live for this user. cli.private_run() has made it nobody else's."""
    above = "/run" if os.geteuid() == 0 else os.environ["XDG_RUNTIME_DIR"]
    path = os.path.join(above, "freshet")
    os.makedirs(path, mode=0o755, exist_ok=True)
    return path


class Program:
    """Keeps a segment, by name or file, until stop() or kill()."""

    def __init__(self, segment):
        self.file = segment if "/" in segment else os.path.join(directory(), segment)
        self.process = subprocess.Popen([PRODUCER, self.file], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        atexit.register(self.kill)
        equal(self.process.stdout.readline(), "ready\n", self.file)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def do(self, *lines):
        for line in lines:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            equal(self.process.stdout.readline(), "ok\n", line)

    def stop(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            equal(self.process.wait(10), 0)
        expect(not os.path.exists(self.file), f"{self.file} is left behind")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
