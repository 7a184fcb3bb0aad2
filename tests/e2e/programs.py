# SPDX-License-Identifier: MIT
"""What the tests of programs' segments share: a program with a tree of its own (producer.c)."""
import atexit
import fcntl
import mmap
import os
import struct
import subprocess
import time

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


class Wide:
    """A segment that is published in passes, made here: a root with groups below it whose names are as
    long as can be. One bank in four is written. Until stop()."""

    PAGE, NAME = 4096, 255

    def __init__(self, path, groups, room=None):
        self.file, self.room = path, room or groups
        strings = b"f\0n\0k\0h\0"
        order = (64 + 16 * self.room + 63) // 64 * 64
        bank = self.up(order + 24 * self.room)
        parts = ((1, 1, 32, 32), (2, 1, len(strings), 0), (3, self.room, 272 * self.room, 272),
                 (4, 4, 4 * bank, bank))  # stats, strings, groups, banks
        at, sections, offsets = self.PAGE, b"", []
        for kind, count, size, stride in parts:
            sections += struct.pack("=IIQQQ", kind, count, at, size, stride)
            offsets.append(at)
            at += self.up(size)
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        os.ftruncate(self.fd, at)
        self.map = mmap.mmap(self.fd, at)
        self.map[:248] = struct.pack("=8sIIQIIIIIiQ16s64s108sI", b"FRESHET\n", 1, 0x01020304, at, 4, 1,
                                     self.room, 4, 24, os.getpid(), 1, os.urandom(16), b"wide", b"", 0)
        self.map[248:248 + len(sections)] = sections
        self.map[offsets[0]:offsets[0] + 32] = struct.pack("=8I", 0, 2, 4, 6, 1, 0, 0, 0)
        self.map[offsets[1]:offsets[1] + len(strings)] = strings
        names = (b"" if i == 0 else b"%0*d" % (self.NAME, i) for i in range(self.room))
        self.put(offsets[2], (struct.pack("=QII256s", i, 1, len(n), n) for i, n in enumerate(names)))
        self.bank, self.rows, self.generation, self.topology = offsets[3], order, 0, 0
        fcntl.fcntl(self.fd, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
        self.publish(groups)

    def up(self, size):
        return (size + self.PAGE - 1) // self.PAGE * self.PAGE

    def put(self, at, elements):
        data = b"".join(elements)
        self.map[at:at + len(data)] = data

    def publish(self, groups):
        """So many, the root among them."""
        now = time.monotonic_ns()
        self.generation += 4
        self.topology += 1
        self.put(self.bank + 64, (struct.pack("=4I", i, 0, groups if i == 0 else 1, i > 0)
                                  for i in range(groups)))
        self.put(self.bank + self.rows, (struct.pack("=IIQQ", 1, i, 1, 1) for i in range(groups)))
        self.map[self.bank:self.bank + 40] = struct.pack("=QQQIIQ", self.generation, now, now, groups,
                                                         groups, self.topology)
        self.map[768:776] = struct.pack("=Q", self.generation)
        self.map[792:796] = struct.pack("=I", 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.fd >= 0:
            os.unlink(self.file)
            self.map.close()
            os.close(self.fd)
        self.fd = -1
