# SPDX-License-Identifier: MIT
"""Reading a segment makes no system call, as strace sees it: a process attaches the daemon's segment
and reads one group's CPU set again and again while the daemon publishes. freshet-bench shows the
same another way (its reader would be killed at its first system call); this is for the eye.
"""
import ctypes
import os
import subprocess
import sys

from freshet import TREE, Cgroups, Serve, temporary
from tap import equal, expect, run, skip, test

LIBRARY = os.environ.get("LIBFRESHET") or os.path.join(TREE, "build/src/core/libfreshet.so")
READS = 20000


def reader(segment, path):
    """In the traced process: reads between two writes that mark where."""
    library = ctypes.CDLL(LIBRARY)

    class Group(ctypes.Structure):
        _fields_ = [("slot", ctypes.c_uint32), ("generation", ctypes.c_uint32)]

    class Moment(ctypes.Structure):
        _fields_ = [("passed", ctypes.c_uint64), ("begin", ctypes.c_uint64),
                    ("end", ctypes.c_uint64)]

    view, group, moment = ctypes.c_void_p(), Group(), Moment()
    values, present = (ctypes.c_uint64 * 5)(), ctypes.c_uint64()
    assert library.freshet_attach(segment.encode(), ctypes.byref(view)) == 0
    assert library.freshet_find(view, path.encode(), ctypes.byref(group)) == 0
    read = library.freshet_read_total
    read.argtypes = [ctypes.c_void_p, Group, ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p,
                     ctypes.c_void_p, ctypes.c_void_p]
    numbers = ctypes.addressof(values), ctypes.addressof(present), ctypes.addressof(moment)

    def loop():
        first = failed = 0
        for _ in range(READS):
            failed |= read(view, group, 0, 5, *numbers)
            first = first or moment.passed
        return first, failed

    loop()  # the interpreter and the lazy linker have had their calls
    os.write(1, b"reading\n")
    first, failed = loop()
    os.write(1, b"read\n")
    print(failed, moment.passed - first, values[0])


@test
def no_system_call_between():
    if not os.path.exists("/usr/bin/strace"):
        skip("no strace")
    log = os.path.join(temporary(), "strace")
    with Cgroups("strace") as groups:
        groups.make("a")
        groups.burn("a", 0.02)
        with Serve("--interval", "10ms", root=groups.path) as daemon:
            done = subprocess.run(["strace", "-f", "-o", log, sys.executable, __file__, "--reader",
                                   daemon.segment, "/a"], capture_output=True, text=True, timeout=60)
    equal(done.returncode, 0, done.stderr)
    failed, passes, usage = map(int, done.stdout.splitlines()[-1].split())
    equal(failed, 0)
    expect(passes > 0, "nothing was published meanwhile")
    expect(usage > 20_000_000, f"usage {usage} ns")
    with open(log) as f:
        calls = f.read().splitlines()
    marks = [i for i, call in enumerate(calls) if 'write(1, "read' in call]
    equal(len(marks), 2, calls[-20:])
    equal(calls[marks[0] + 1:marks[1]], [])


if sys.argv[1:2] == ["--reader"]:
    reader(*sys.argv[2:])
else:
    run()
