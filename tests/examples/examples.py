# SPDX-License-Identifier: MIT
"""The programs of docs/examples: what they print, and that a program's tree can be watched."""
import atexit
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from freshet import freshet, temporary, wait_until
from foreign import Segment
from tap import equal, expect, run, skip, test

EXAMPLES = os.environ.get("EXAMPLES", "build/tests/examples")
# Of users other than root.
RUNTIME = {"XDG_RUNTIME_DIR": temporary()}


def example(name, *arguments):
    done = subprocess.run([os.path.join(EXAMPLES, "example_" + name), *arguments], text=True,
                          capture_output=True, timeout=30, stdin=subprocess.DEVNULL)
    equal((done.returncode, done.stderr), (0, ""), name)
    return done.stdout.splitlines()


@test
def requests_per_tenant():
    equal(example("tenants"), [
        "/acme/web: 1000 requests, 200000 bytes in, 5000000 out, 1 connections",
        "/acme: 1010 requests, 201000 bytes in, 5001000 out, 1 connections",
        "/: 1011 requests, 201300 bytes in, 5001001 out, 1 connections",
        "/acme: 1010 requests, 201000 bytes in, 5001000 out, 1 connections",
    ])


def latencies(lines):
    """{path: [count, mean, half, 99 %]}, times in us."""
    row = re.compile(r"(\S+): (\d+) requests, mean ([\d.]+) us, half below ([\d.]+) us, "
                     r"99% below ([\d.]+) us")
    return {m[1]: [float(x) for x in m.groups()[1:]] for m in map(row.fullmatch, lines)}


def check_latencies(got):
    observed = {"/fast": list(range(1, 1001)), "/slow": list(range(10, 10001, 10))}
    observed["/"] = sorted(observed["/fast"] + observed["/slow"])
    equal(set(got), set(observed))
    for path, values in observed.items():
        count, mean, half, most = got[path]
        equal(count, len(values), path)
        expect(abs(mean - sum(values) / len(values)) < 0.06, f"{path}: mean {mean}")
        for q, upper in (0.5, half), (0.99, most):
            # The bound above it, and a bucket is at most 12.5 % wide.
            true = values[int(q * len(values)) - 1]
            expect(true - 0.1 <= upper <= true * 1.125 + 1, f"{path}: {q}: {upper}, not {true}")


@test
def latency_histogram():
    check_latencies(latencies(example("latency")))


@test
def latency_as_cpp():
    if not os.path.exists(os.path.join(EXAMPLES, "example_latency_cpp")):
        skip("no C++ compiler")
    equal(example("latency_cpp"), example("latency"))


class Watched:
    """A running example; what is written to it, it has counted when show says so."""

    def __init__(self, name):
        self.name = f"example_{name}_{os.getpid()}"
        self.process = subprocess.Popen([os.path.join(EXAMPLES, "example_watched"), self.name],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **RUNTIME})
        atexit.register(self.clean)
        self.segment = self.process.stdout.readline().strip()
        self.lines = 0

    def clean(self):
        """Nothing is left, should a test fail."""
        self.process.kill()
        self.process.wait()
        for path in self.segment, self.segment + ".lock":
            if self.segment and os.path.exists(path):
                os.unlink(path)

    def feed(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()
        self.lines += text.count("\n")
        wait_until(lambda: self.show("/")["input"]["lines"] == self.lines, "all lines counted")

    def show(self, path):
        done = freshet("show", path, "--segment", self.name, "--json", env=RUNTIME)
        equal((done.returncode, done.stderr), (0, ""), "show")
        return json.loads(done.stdout)

    def end(self):
        self.process.stdin.close()
        equal(self.process.wait(10), 0, "the example's end")


@test
def shown_by_the_commands():
    watched = Watched("shown")
    watched.feed("acme one\nacme two\nshop three\n")
    equal(watched.show("/acme")["input"], {"lines": 2, "text": 18})
    equal(watched.show("/acme")["path"], "/acme")
    equal(watched.show("/shop")["input"], {"lines": 1, "text": 11})
    equal(watched.show("/")["input"], {"lines": 3, "text": 29})
    # Fresh: the tree has not been flushed.
    watched.feed("acme four\n")
    equal(watched.show("/acme")["input"], {"lines": 3, "text": 28})

    ls = freshet("ls", "--segment", watched.name, env=RUNTIME)
    equal((ls.returncode, ls.stderr), (0, ""), "ls")
    for path in "/acme", "/shop":
        expect(any(line.split()[-1] == path for line in ls.stdout.splitlines()), ls.stdout)
    top = freshet("top", "--segment", watched.name, "--batch", "-n", "1", env=RUNTIME)
    equal((top.returncode, top.stderr), (0, ""), "top")
    expect("acme" in top.stdout and "shop" in top.stdout, top.stdout)
    watched.end()
    expect(not os.path.exists(watched.segment), "the segment is still there")


@test
def read_by_another_process():
    watched = Watched("read")
    watched.feed("acme one\nacme two\nshop three\n")
    equal(example("reader", watched.segment, "/acme"), [
        "watched is alive",
        "/acme input.lines 2",
        "/acme input.text 18",
        "/ input.lines 3",
        "/acme input.lines 2",
        "/shop input.lines 1",
    ])
    # Another one of the same name is refused; the first one's segment stays.
    second = subprocess.run([os.path.join(EXAMPLES, "example_watched"), watched.name], text=True,
                            capture_output=True, timeout=30, stdin=subprocess.DEVNULL,
                            env={**os.environ, **RUNTIME})
    equal(second.returncode, 1, "the second one")
    expect("busy" in second.stderr, second.stderr)
    # A killed one leaves its last numbers, and is known to be gone.
    watched.process.kill()
    watched.process.wait()
    equal(example("reader", watched.segment, "/shop")[:2], ["watched is gone", "/shop input.lines 1"])
    # The next one takes its place.
    again = Watched("read")
    again.feed("new line\n")
    equal(again.show("/")["input"], {"lines": 1, "text": 9})
    again.end()


@test
def read_by_another_language():
    """Whatever kinds of numbers there are; some in the totals, some not: unit/tree_image.h."""
    path = os.path.join(temporary(), "image")
    with open(path, "wb") as f:
        subprocess.run([os.path.join(EXAMPLES, "write_image")], stdout=f, check=True, timeout=30)
    segment = Segment(path)
    columns = segment.columns()
    slots = segment.paths()
    own = {"/": [4], "/a": [2], "/a/b": [3, 5], "/c": [6], "/gone": [1]}
    below = {"/": list(own), "/a": ["/a", "/a/b"], "/a/b": ["/a/b"], "/c": ["/c"]}
    equal(list(slots), list(below))
    for group, slot in slots.items():
        counted = [n for path in below[group] for n in own[path]]
        words = [word - 2**64 if word >> 63 else word for word in segment.read(slot)]
        # A counter, a gauge, a set of a counter and a gauge that was lowered on its own, too.
        wanted = [sum(counted), -sum(counted), sum(counted), -sum(counted) - len(counted)]
        equal(words[:4], wanted, group)
        # Buckets of 0, 1, 2, 3, 4 to 5, 6 to 7, ...; and the sum.
        buckets = [0] * 9
        for n in counted:
            buckets[n if n < 4 else 4 if n < 6 else 5] += 1
        equal(words[4:], [*buckets, sum(counted)], group)
        # So says the library.
        shown = [line for line in example("reader", path, group)[1:5]]
        equal(shown, [f"{group} {family}.{key} {word}"
                      for (family, key), word in zip(columns, words)])


@test
def living_program_read_by_another_language():
    watched = Watched("foreign")
    watched.feed("acme one\nshop two\nacme three\n")
    segment = Segment(watched.segment)
    for path, slot in segment.paths().items():
        shown = watched.show(path)["input"]
        equal(dict(zip((key for _, key in segment.columns()), segment.read(slot))), shown, path)
    watched.end()


run()
