# SPDX-License-Identifier: MIT
"""The segment of `freshet serve`: that it stays where readers look for it, whoever removes it; what
does not fit into it; and what happens when its file cannot be what it should be."""
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import time

import cli
from freshet import FRESHET, Cgroups, Serve, freshet, temporary, wait_until
from tap import equal, expect, note, run, test

cli.private_run()


def running(*arguments, segment):
    cgroups = Cgroups("segment")
    cgroups.make("a")
    return cgroups, Serve(*arguments, root=cgroups.path, segment=segment)


def path(*names):
    return os.path.join(temporary(), *names)


def pass_number(serve):
    return json.loads(serve.get("/api/v1/groups?max_age=0&depth=0"))["pass"]


def groups(serve):
    return json.loads(serve.get("/api/v1/groups?max_age=0"))["groups"]


def refreshed(segment):
    """Whether the refresh socket beside the segment answers with a pass."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(10)
        s.connect(segment + ".sock")
        s.send(struct.pack("=IIQQ", 0x46524652, 1, 0, 5 * 10**9))
        return struct.unpack("=iIQ", s.recv(64))[0] == 0


def shown(segment):
    return freshet("ls", "--segment", segment)


@test
def a_removed_file_is_made_anew():
    segment = path("removed")
    cgroups, serve = running(segment=segment)
    with cgroups, serve:
        before = pass_number(serve)
        for names in ([""], ["", ".lock", ".sock"], [".sock"]):
            for name in names:
                os.unlink(segment + name)
            wait_until(lambda: os.path.exists(segment) and os.path.exists(segment + ".sock"),
                       f"{names} are there again", 5)
            wait_until(lambda: refreshed(segment), "the refresh socket answers")
            done = shown(segment)
            equal((done.returncode, done.stderr), (0, ""))
            expect("a" in done.stdout.split() or "/a" in done.stdout, done.stdout)
            after = pass_number(serve)
            expect(after > before, f"pass numbers go on: {before}, {after}")
            before = after
            cgroups.make(f"new{len(names)}")  # the tree is followed as before
            expect(f"/new{len(names)}" in json.dumps(groups(serve)), "in the new segment too")
            equal(serve.request("/healthz")[0], 200)
        equal(len([line for line in serve.lines if line.endswith("removed, and is made anew")]), 3,
              str(serve.lines))
        equal(len(serve.lines), 4, str(serve.lines))
        equal(serve.stop(), 0)
    expect(not os.path.exists(segment) and not os.path.exists(segment + ".sock"))


@test
def a_removed_directory_and_a_foreign_file():
    directory = path("directory")
    os.mkdir(directory)
    segment = os.path.join(directory, "x")
    cgroups, serve = running(segment=segment)
    with cgroups, serve:
        shutil.rmtree(directory)
        wait_until(lambda: serve.request("/healthz")[0] == 503, "healthz fails", 5)
        body = serve.request("/healthz")[2].decode()
        expect("its directory is not there" in body, body)
        before = pass_number(serve)
        expect(pass_number(serve) > before, "passes go on")
        os.mkdir(directory)
        wait_until(lambda: serve.request("/healthz")[0] == 200, "it works again", 5)
        equal(shown(segment).returncode, 0)

        os.unlink(segment)
        with open(segment, "w") as f:
            f.write("mine")
        wait_until(lambda: serve.request("/healthz")[0] == 503, "healthz fails", 5)
        time.sleep(2)  # it tries again, and says so once
        with open(segment) as f:
            equal(f.read(), "mine", "what is not ours stays")
        os.unlink(segment)
        wait_until(lambda: serve.request("/healthz")[0] == 200, "it works again", 5)
        for text in ("its directory is not there", "no segment lies there"):
            equal(len([line for line in serve.lines if text in line]), 1, str(serve.lines))
        equal(serve.stop(), 0)


@test
def another_one_took_the_place():
    segment = path("taken")
    cgroups, first = running(segment=segment)
    with cgroups, first:
        for name in ("", ".lock", ".sock"):
            os.unlink(segment + name)
        with Serve(root=cgroups.path, segment=segment) as second:
            wait_until(lambda: first.request("/healthz")[0] == 503, "the first gives way", 5)
            body = first.request("/healthz")[2].decode()
            expect("another process keeps it" in body, body)
            equal(second.request("/healthz")[0], 200)
            expect(refreshed(segment), "the second's socket is left alone")
            equal(first.stop(), 0)
            expect(os.path.exists(segment) and refreshed(segment), "also at the first's end")


@test
def what_finds_no_room_is_said():
    cgroups, serve = running("--max-groups", "3", "--interval", "50ms", segment=path("room"))
    with cgroups, serve:
        equal(len(serve.lines), 1)
        cgroups.make("b", "c", "d")
        wait_until(lambda: len(serve.lines) > 1, "it is said")
        expect(re.search(r"\d groups are left out.*room for 3 \(--max-groups\)", serve.lines[1]),
               serve.lines[1])
        with Serve("--max-groups", "3", root=cgroups.path, segment=path("room2")) as other:
            expect("2 groups are left out" in other.lines[0], other.lines[0])
            equal(len(other.lines), 1, str(other.lines))
        cgroups.rmdir("c")
        cgroups.rmdir("d")
        wait_until(lambda: len(serve.lines) > 2, "and when it ends")
        expect("no groups are left out any more" in serve.lines[2], serve.lines[2])


@test
def truncated():
    segment = path("truncated")
    cgroups, serve = running("--interval", "50ms", segment=segment)
    with cgroups, serve:
        os.truncate(segment, 0)
        equal(serve.process.wait(10), 1)
        wait_until(lambda: len(serve.lines) > 1, "it says why")
        expect("the segment was truncated" in serve.lines[1], serve.lines[1])


def fails(*arguments, before=()):
    done = subprocess.run([*before, FRESHET, "serve", "--listen", "127.0.0.1:0", *arguments],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    note(done.stderr.strip())
    return done


@test
def limits_are_named():
    with Cgroups("segment") as cgroups:
        done = fails("--root", cgroups.path, "--segment", path("large"),
                     before=["prlimit", "--fsize=102400"])
        equal(done.returncode, 1)
        expect("File too large" in done.stderr, done.stderr)
        for files in range(8, 60):
            done = subprocess.run(["prlimit", f"--nofile={files}", "timeout", "1", FRESHET, "serve",
                                   "--root", cgroups.path, "--source", "files", "--segment",
                                   path("old"), "--listen", "127.0.0.1:0"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=30)
            expect("exists" not in done.stderr and "no segment" not in done.stderr, done.stderr)
            if "http://" in done.stderr:
                break


@test
def a_directory_that_is_not_there():
    directory = path("nodirectory")
    done = fails("--segment", os.path.join(directory, "x"))
    equal(done.returncode, 1)
    expect("its directory is not there" in done.stderr, done.stderr)
    expect(not os.path.exists(directory), "it was made")


run()
