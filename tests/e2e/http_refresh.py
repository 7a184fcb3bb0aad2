# SPDX-License-Identifier: MIT
"""The refresh socket of `freshet serve`, as a program in any language would use it: one packet out,
one packet back."""
import os
import resource
import select
import socket
import struct
import threading
import time

import cli
from freshet import Cgroups, Serve
from tap import equal, expect, note, run, test

cli.private_run()

MAGIC, VERSION = 0x46524652, 1
SECOND = 1000000000
ETIMEDOUT, EINVAL = 110, 22


def ask(s, max_age, timeout):
    s.send(struct.pack("=IIQQ", MAGIC, VERSION, max_age, timeout))


def answer(s):
    """(result, pass), or None when the server has closed the connection."""
    s.settimeout(20)
    packet = s.recv(64)
    if not packet:
        return None
    result, _, number = struct.unpack("=iIQ", packet)
    return result, number


def connect(serve):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(serve.segment + ".sock")
    return s


def running(*arguments):
    cgroups = Cgroups("refresh")
    return cgroups, Serve(*arguments, root=cgroups.path)


@test
def younger_passes_on_one_connection():
    cgroups, serve = running("--interval", "1h")
    with cgroups, serve, connect(serve) as s:
        ask(s, 3600 * SECOND, SECOND)
        equal(answer(s), (0, 1), "the first pass is young enough")
        for wanted in (2, 3, 4):
            ask(s, 0, 10 * SECOND)
            equal(answer(s), (0, wanted))
        equal(serve.stop(), 0)


@test
def who_waits_together_shares_a_pass():
    cgroups, serve = running("--interval", "1500ms", "--max-cpu", "0")
    with cgroups, serve:
        clients = [connect(serve) for _ in range(20)]
        for s in clients:
            ask(s, 0, 20 * SECOND)
        equal(len({answer(s) for s in clients}), 1)
        for s in clients:
            s.close()


@test
def impatient_ones_are_told():
    cgroups, serve = running("--interval", "1h", "--max-cpu", "0")
    with cgroups, serve, connect(serve) as s:
        ask(s, 0, SECOND // 10)
        equal(answer(s), (-ETIMEDOUT, 0))
        ask(s, 3600 * SECOND, SECOND)
        equal(answer(s), (0, 1), "and may ask again")


@test
def out_of_descriptors():
    """A client that cannot be taken in waits in the queue, and does not keep the daemon busy."""
    cgroups, serve = running("--interval", "1h")
    with cgroups, serve:
        _, most = resource.prlimit(serve.pid, resource.RLIMIT_NOFILE)
        taken = len(os.listdir(f"/proc/{serve.pid}/fd"))
        resource.prlimit(serve.pid, resource.RLIMIT_NOFILE, (taken, most))
        cpu = serve.cpu_seconds()
        with connect(serve) as s:
            ask(s, 3600 * SECOND, 20 * SECOND)
            expect(not select.select([s], [], [], 1)[0], "there is no descriptor for it")
            expect(serve.cpu_seconds() - cpu < 0.3, f"{serve.cpu_seconds() - cpu} s of a second")
            resource.prlimit(serve.pid, resource.RLIMIT_NOFILE, (most, most))
            equal(answer(s), (0, 1))
        equal(serve.stop(), 0)


@test
def the_budget_counts_all_that_the_thread_does():
    """Not the passes alone: waking up, reading requests and replying, too."""
    cgroups, serve = running("--interval", "1h", "--max-cpu", "2")

    def spent():
        with open(f"/proc/{serve.pid}/task/{serve.pid}/schedstat") as f:
            return int(f.read().split()[0]) / SECOND

    def client(until):
        with connect(serve) as s:
            while time.monotonic() < until:
                ask(s, 0, 20 * SECOND)
                answer(s)

    with cgroups, serve:
        begin, before = time.monotonic(), spent()
        clients = [threading.Thread(target=client, args=[begin + 4]) for _ in range(4)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        took, cpu = time.monotonic() - begin, spent() - before
        note(f"{cpu / took:.2%} of one CPU in {took:.1f} s")
        # The bucket was full: a second's share comes on top.
        expect(cpu < 1.5 * 0.02 * (took + 1), f"{cpu} s in {took} s")
        expect(cpu > 0.01 * took, f"{cpu} s in {took} s: who asks gets what there is")


@test
def malformed_packets_end_the_connection():
    good = struct.pack("=IIQQ", MAGIC, VERSION, 0, SECOND)
    cgroups, serve = running("--interval", "1h")
    with cgroups, serve:
        for packet in (b"x", good[:-1], good + b"x", b"\0" * 24, os.urandom(1000),
                       struct.pack("=IIQQ", MAGIC, 2, 0, SECOND)):
            with connect(serve) as s:
                s.send(packet)
                equal(answer(s), (-EINVAL, 0))
                equal(answer(s), None)
        equal(serve.request("/healthz")[0], 200)


@test
def silent_ones_make_room_and_waiting_ones_stay():
    cgroups, serve = running("--interval", "1h", "--max-cpu", "0")
    with cgroups, serve:
        waiting = connect(serve)
        ask(waiting, 0, 20 * SECOND)
        silent = [connect(serve) for _ in range(200)]
        with connect(serve) as s:
            ask(s, 3600 * SECOND, SECOND)
            equal(answer(s), (0, 1))
        closed = sum(1 for s in silent if select.select([s], [], [], 0)[0])
        note(f"{closed} of 200 silent clients were closed")
        expect(100 < closed < 200, f"{closed} closed")
        expect(not select.select([waiting], [], [], 0)[0], "who waits is kept")
        cpu = serve.cpu_seconds()
        waiting.send(b"more")  # which nobody reads before the reply
        waiting.close()
        time.sleep(1)
        expect(serve.cpu_seconds() - cpu < 0.5, "a client that left keeps the daemon busy")
        equal(serve.stop(), 0)
        for s in silent:
            s.close()


run()
