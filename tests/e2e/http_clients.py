# SPDX-License-Identifier: MIT
"""Clients of the HTTP server: many at once, slow ones, malformed requests, and those who ask for
young numbers."""
import concurrent.futures
import json
import os
import re
import signal
import socket
import statistics
import threading
import time

import cli
from freshet import Cgroups, Serve, sanitized, wait_until
from tap import equal, expect, note, run, test

cli.private_run()

cgroups = serve = None


def served():
    global cgroups, serve
    if not serve:
        cgroups = Cgroups("clients")
        # Enough text that an answer does not fit into a socket's buffers.
        cgroups.make(*(f"{'long' * 30}-{i // 20}/{'name' * 30}-{i}" for i in range(400)))
        serve = Serve("--interval", "200ms", root=cgroups.path)
    return serve


def connect():
    return socket.create_connection(("127.0.0.1", served().port), timeout=20)


def talk(data, timeout=10):
    """Sends bytes, and reads until the server closes or has said nothing for so long."""
    answer = b""
    with connect() as s:
        s.settimeout(timeout)
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while got := s.recv(65536):
                answer += got
        except OSError:  # cut off in the middle of the request, or not a word
            pass
    return answer


def metric(name):
    return float(re.search(rf"^{name} (\S+)$", served().get("/metrics"), re.M)[1])


def seconds_to_answer(target="/metrics"):
    begin = time.monotonic()
    served().get(target)
    return time.monotonic() - begin


@test
def two_hundred_at_once():
    """All connected before any asks: the server holds 200 connections."""
    ready = threading.Barrier(200)
    request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

    def client(_):
        with connect() as s:
            ready.wait(60)
            s.sendall(request)
            answer = b""
            while got := s.recv(1 << 18):
                answer += got
            return answer

    served()
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(client, range(200)))
    note(f"{time.monotonic() - begin:.2f} s, {len(answers[0])} bytes each")
    for answer in answers:
        head, _, body = answer.partition(b"\r\n\r\n")
        expect(head.startswith(b"HTTP/1.1 200 "), head)
        equal(len(body), int(re.search(rb"Content-Length: (\d+)", head)[1]))
        expect(body.startswith(b"# HELP ") and body.endswith(b"\n"))


@test
def keep_alive_and_pipelining():
    data = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 5
    answer = talk(data + b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    equal(answer.count(b"HTTP/1.1 200 "), 6)


@test
def slow_clients_cost_nobody_else():
    before = statistics.median(seconds_to_answer() for _ in range(20))
    rss = served().rss_kb()
    stop = threading.Event()
    slow = []
    for i in range(50):
        s = connect()
        slow.append(s)
        if i % 2:  # asks for much and takes nothing in
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")

    def drip():  # a byte a second, in turn
        request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: " + b"y" * 1000
        for byte in request:
            for s in slow[::2]:
                try:
                    s.send(bytes([byte]))
                except OSError:
                    pass
            if stop.wait(1):
                return

    dripper = threading.Thread(target=drip)
    dripper.start()
    try:
        passes = metric("freshet_passes_total")
        times = []
        while metric("freshet_passes_total") < passes + 10:
            times += [seconds_to_answer() for _ in range(10)]
    finally:
        stop.set()
        dripper.join()
        for s in slow:
            s.close()
    during = statistics.median(times)
    note(f"median answer {before * 1e3:.2f} ms without, {during * 1e3:.2f} ms and at worst "
         f"{max(times) * 1e3:.2f} ms with 50 slow clients; RSS {rss} and {served().rss_kb()} kB")
    expect(during < 5 * before + 0.02, "answers have become slow")
    expect(max(times) < 2, "one answer took very long")


@test
def stalled_readers_do_not_hoard_memory():
    """Each stalled reader holds the rendering of its own pass; there is a bound to that."""
    held = []
    with Cgroups("stalled") as many:
        many.make(*(f"{'long' * 60}-{i // 40}/{'name' * 60}-{i}" for i in range(800)))
        with Serve("--interval", "1h", "--max-cpu", "100", root=many.path) as own:
            size = len(own.get("/metrics"))
            try:
                for _ in range(40):
                    own.get("/api/v1/groups?max_age=0&depth=0")  # the next rendering is another
                    s = socket.socket()
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    s.connect(("127.0.0.1", own.port))
                    s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                    s.recv(1)
                    held.append(s)
                note(f"40 stalled readers of {size} bytes each: RSS {own.rss_kb()} kB")
                expect(40 * size > 56 << 20, "they would hold more than the bound")
                expect(own.rss_kb() < 48 << 10 or sanitized(), f"RSS {own.rss_kb()} kB")
                equal(len(own.get("/metrics")) // 1000, size // 1000)
            finally:
                for s in held:
                    s.close()


@test
def malformed_requests():
    for data, wanted in (
            (b"\x00\x01\x02garbage\r\n\r\n", None),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(200), None),
            (b"GET\r\n\r\n", None),
            (b"GET /metrics\r\n\r\n", None),
            (b"GET /metrics HTTP/9.9\r\nHost: x\r\n\r\n", None),
            (b"GET /healthz HTTP/1.0\r\n\r\n", b" 200 "),
            (b"GET http://x/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b" 200 "),
            (b"GET http://x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b" 200 "),
            (b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100000 + b"\r\n\r\n", None),
            (b"GET /" + b"y" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", None),
            (b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20000 + b"\r\n", None),
            (b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", b" 405 "),
            (b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
             None),
            (b"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzzz", None),
            (b"GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b" 400 "),
            (b"GET /\xff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b" 404 ")):
        answer = talk(data, 10 if wanted else 1)
        first = answer.partition(b"\r\n")[0]
        if wanted:
            expect(wanted in first, f"{data[:60]!r}: {first!r}")
        else:
            expect(b" 200 " not in first, f"{data[:60]!r}: {first!r}")
        equal(served().request("/healthz")[0], 200, f"after {data[:60]!r}")


@test
def wrong_requests_say_what_is_wrong():
    for target, status, words in (
            ("/nothing", 404, "not found"),
            ("/metrics/", 404, "not found"),
            ("/metrics/../healthz", 404, "not found"),
            ("/%2e%2e/etc/passwd", 404, "not found"),
            ("/..%2fmetrics", 404, "not found"),
            ("/metrics?path=/nothing", 404, "path:"),
            ("/metrics?path=/..", 404, "path:"),
            ("/metrics?path=%2e%2e", 404, "path:"),
            ("/metrics?path=/x/%2e%2e/y", 404, "path:"),
            ("/api/v1/groups?path=/../../etc", 404, "path:"),
            ("/api/v1/groups?path=/.", 404, "path:"),
            ("/api/v1/groups?path=" + "/x" * 3000, 404, "path:"),
            ("/api/v1/groups?path=" + "y" * 300, 404, "path:"),
            ("/api/v1/groups?path=%00", 400, "escape"),
            ("/api/v1/groups?path=%", 400, "escape"),
            ("/api/v1/groups?depth=", 400, "depth:"),
            ("/api/v1/groups?depth=-1", 400, "depth:"),
            ("/api/v1/groups?depth=1e3", 400, "depth:"),
            ("/api/v1/groups?depth=9999999999", 400, "depth:"),
            ("/api/v1/groups?max_age=soon", 400, "max_age:"),
            ("/api/v1/groups?max_age=-1s", 400, "max_age:"),
            ("/api/v1/groups?max_age=", 400, "max_age:"),
            ("/api/v1/groups?max_age=99999999999999h", 400, "max_age:"),
            ("/api/v1/groups?dept=1", 400, "dept:"),
            ("/api/v1/groups?depth=1&depth=2", 400, "depth:"),
            ("/api/v1/groups?a&b&c&d&e&f&g&h&i", 400, "parameters"),
            ("/metrics?depth=1", 400, "depth:"),
            ("/healthz?x", 400, "x:")):
        got, headers, body = served().request(target)
        equal(got, status, target)
        equal(headers["Content-Type"], "text/plain; charset=utf-8")
        expect(words in body.decode() and body.count(b"\n") == 1 and body.endswith(b"\n"),
               f"{target}: {body}")
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        got, headers, _ = served().request("/metrics", method=method)
        equal((got, headers["Allow"]), (405, "GET, HEAD"), method)


@test
def max_age_is_kept():
    for text, bound in (("0", 0), ("10ms", 10000), ("1h", 3600e6)):
        for _ in range(5):
            begin = time.monotonic()
            answer = json.loads(served().get(f"/api/v1/groups?depth=0&max_age={text}"))
            took = (time.monotonic() - begin) * 1e6
            # The pass began max_age before the request at the earliest.
            expect(answer["age_us"] <= bound + took, f"{text}: {answer['age_us']} us old")
    # An old number satisfies at once; no pass is made for it.
    before = metric("freshet_on_demand_passes_total")
    for _ in range(20):
        served().get("/api/v1/groups?depth=0&max_age=1h")
    equal(metric("freshet_on_demand_passes_total"), before)


@test
def twenty_with_max_age_0_share_passes():
    """The daemon is held while they ask, so that they ask at once."""
    rounds, made, slowest = 20, 0, 0
    for _ in range(rounds):
        clients = [connect() for _ in range(20)]
        before = metric("freshet_on_demand_passes_total")
        os.kill(served().pid, signal.SIGSTOP)
        for s in clients:
            s.sendall(b"GET /api/v1/groups?depth=0&max_age=0 HTTP/1.1\r\nHost: x\r\n"
                      b"Connection: close\r\n\r\n")
        os.kill(served().pid, signal.SIGCONT)
        begin = time.monotonic()
        for s in clients:
            answer = b""
            while got := s.recv(65536):
                answer += got
            s.close()
            body = json.loads(answer.partition(b"\r\n\r\n")[2])
            took = time.monotonic() - begin
            slowest = max(slowest, took)
            expect(body["age_us"] <= took * 1e6 + 1e5, f"{body['age_us']} us old")
        made += metric("freshet_on_demand_passes_total") - before
    note(f"{20 * rounds} requests, {made:.0f} passes, all of a round within {slowest:.3f} s")
    expect(0 < made < 20 * rounds / 2, f"{made} passes for {20 * rounds} requests")


@test
def impatience_has_a_budget():
    """Whoever asks all the time gets 10 % of a CPU for passes and waits for the rest."""
    stop = time.monotonic() + 3

    def client(_):
        while time.monotonic() < stop:
            served().get("/api/v1/groups?depth=0&max_age=0")

    def spent():
        text = served().get("/metrics")
        return [float(re.search(rf"^{name} (\S+)$", text, re.M)[1])
                for name in ("freshet_pass_seconds_sum", "freshet_passes_total")]

    seconds, passes = spent()
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(client, range(8)))
    took = time.monotonic() - begin
    seconds_after, passes_after = spent()
    share = (seconds_after - seconds) / took
    note(f"{passes_after - passes:.0f} passes took {share:.1%} of one CPU's time")
    # Wall time of passes, on a machine that does other things too: only the order is checked.
    expect(share < 0.5, f"{share:.1%}")


@test
def a_client_that_leaves_while_it_waits():
    for _ in range(50):
        with connect() as s:
            s.sendall(b"GET /api/v1/groups?max_age=0 HTTP/1.1\r\nHost: x\r\n\r\n")
    wait_until(lambda: served().request("/healthz")[0] == 200, "the server answers")


@test
def who_has_said_all_and_waits_is_answered():
    """A client may close its sending half with its request, or while a pass is waited for."""
    one = b"GET /api/v1/groups?depth=0&max_age=0 HTTP/1.1\r\nHost: x\r\n"
    for end in (b"Connection: close\r\n\r\n", b"\r\n"):
        for _ in range(20):
            answer = talk(one + end)
            expect(answer.startswith(b"HTTP/1.1 200 "), answer[:80])
            json.loads(answer.partition(b"\r\n\r\n")[2])
    equal(talk((one + b"\r\n") * 10).count(b"HTTP/1.1 200 "), 10, "pipelined")
    with Cgroups("half") as few, Serve("--interval", "1s", "--max-cpu", "0", root=few.path) as own:
        cpu = own.cpu_seconds()
        with socket.create_connection(("127.0.0.1", own.port), timeout=20) as s:
            s.sendall(one + b"\r\n")
            time.sleep(0.2)
            s.shutdown(socket.SHUT_WR)
            expect(s.recv(100).startswith(b"HTTP/1.1 200 "))
        expect(own.cpu_seconds() - cpu < 0.3, "waiting costs no CPU time")


@test
def many_who_wait_long_keep_nobody_out():
    """No pass comes, and who has left is not seen to have: the table would stay full for hours."""
    with Cgroups("crowd") as few, Serve("--interval", "1h", "--max-cpu", "0", root=few.path) as own:
        begin = time.monotonic()
        for _ in range(1100):
            with socket.create_connection(("127.0.0.1", own.port), timeout=20) as s:
                s.sendall(b"GET /api/v1/groups?max_age=0 HTTP/1.1\r\nHost: x\r\n\r\n")
        equal(own.request("/healthz", timeout=30)[0], 200)
        note(f"an answer after {time.monotonic() - begin:.1f} s")
        with socket.create_connection(("127.0.0.1", own.port), timeout=2) as s:
            s.sendall(b"GET /api/v1/groups?max_age=0 HTTP/1.1\r\nHost: x\r\n\r\n")
            try:
                expect(not s.recv(1), "with room enough, patience is what it was")
            except TimeoutError:
                pass


@test
def it_still_runs_and_ends():
    equal(served().stop(), 0)
    equal([line for line in served().lines if not line.startswith("freshet ")], [])


run(lambda: cgroups and cgroups.remove())
