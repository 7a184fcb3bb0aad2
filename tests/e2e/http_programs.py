# SPDX-License-Identifier: MIT
"""Programs' segments in `freshet serve`: that they come, change, restart and go; what their metrics and
JSON say; and that nothing that lies where segments live harms it."""
import json
import os
import re
import shutil
import signal
import time

import cli
from freshet import Cgroups, Serve, promtool, sanitized, temporary, wait_until
from programs import Program, Wide, directory
from tap import equal, expect, run, skip, test

cli.private_run()

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
YOUNG = 0.02  # seconds after which an answer has what was counted before: freshet-serve(1)

cgroups = serve = None


def served():
    global cgroups, serve
    if not serve:
        cgroups = Cgroups("programs")
        cgroups.make("a")
        serve = Serve("--interval", "100ms", root=cgroups.path,
                      segment=os.path.join(directory(), "host"))
    return serve


def segments(server=None):
    return {s["name"]: s for s in json.loads((server or served()).get("/api/v1/segments"))["segments"]}


def shows(name, server=None):
    wait_until(lambda: name in segments(server), f"{name} is shown", 5)


def shows_no_more(name, server=None):
    wait_until(lambda: name not in segments(server), f"{name} is shown no more", 5)


def groups(target):
    time.sleep(YOUNG)
    return {g["path"]: g for g in json.loads(served().get(target))["groups"]}


def said(server, pattern):
    return [line for line in server.lines if re.search(pattern, line)]


def families(text, strict=True):
    try:
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as om
        from prometheus_client.parser import text_string_to_metric_families as plain
    except ImportError:
        skip("python3-prometheus-client is not installed")
    return {f.name: f for f in (om if strict else plain)(text)}


@test
def a_program_comes_and_goes():
    before = len(served().lines)
    equal(list(segments()), ["host"])
    with Program("shop") as program:
        shows("shop")
        got = segments()["shop"]
        equal(got, {"name": "shop", "producer": "test <producer>", "pid": program.process.pid,
                    "live": True, "metrics": "freshet_shop", "groups": 1, "max_groups": 64,
                    "left_out": 0})
        program.do("create /acme", "add /acme 0 3")
        equal(groups("/api/v1/groups?segment=shop")["/acme"]["http"]["requests"], 3)
        expect("freshet_segments 1\n" in served().get("/metrics"))
    time.sleep(YOUNG)
    status, _, body = served().request("/api/v1/groups?segment=shop")
    equal(status, 404)
    expect(b"segment: " in body, body)
    expect("freshet_shop" not in served().get("/metrics"))
    shows_no_more("shop")
    expect("freshet_segments 0\n" in served().get("/metrics"))
    equal(served().lines[before:], [], "that is nothing to talk about")


@test
def metrics_under_both_parsers():
    with Program("shop") as program:
        shows("shop")
        program.do("create /acme", "create /acme/web", "set /acme/web 5 1 4096", "add /acme 0 1",
                   "add /acme/web 3 1500000", "add /acme/web 4 -3", "observe /acme/web 999",
                   "observe /acme/web 2500", f"observe /acme {2**40}")
        time.sleep(YOUNG)
        for accept, strict in ((OPENMETRICS, True), ("text/plain", False)):
            for target in ("/metrics", "/metrics?segment=shop", "/metrics?segment=shop&path=/acme"):
                got = families(served().get(target, {"Accept": accept}), strict)
                total = "" if strict else "_total"
                values = {(s.name, s.labels["group"], s.labels.get("le")): s.value
                          for f in got.values() for s in f.samples
                          if s.name.startswith("freshet_shop_")}
                one = {"/acme": 6, "/acme/web": 5}
                for group, wanted in one.items():
                    equal(values["freshet_shop_http_requests_total", group, None], wanted, target)
                equal(values["freshet_shop_http_sent_bytes_total", "/acme", None], 4096)
                equal(values["freshet_shop_http_busy_seconds_total", "/acme/web", None], 0.0015)
                equal(values["freshet_shop_pool_open", "/acme", None], -3)
                equal(values["freshet_shop_http_latency_seconds_count", "/acme", None], 3)
                equal(values["freshet_shop_http_latency_seconds_sum", "/acme/web", None], 3.499e-6)
                equal(values["freshet_shop_http_latency_seconds_bucket", "/acme", "+Inf"], 3)
                equal(values["freshet_shop_http_latency_seconds_bucket", "/acme",
                             "0.000001023"], 1)
                equal(values["freshet_shop_http_latency_seconds_bucket", "/acme/web",
                             "68.719476735"], 2)
                equal({s.labels.get("group") for n, f in got.items() for s in f.samples
                       if n.startswith("freshet_shop_")},
                      {"/acme", "/acme/web"} | (set() if "path" in target else {"/"}), target)
                equal(any(n.startswith("cgroup_") for n in got), target == "/metrics", target)
                equal("freshet_build" in got or "freshet_build_info" in got, target == "/metrics")
                latency = got["freshet_shop_http_latency_seconds"]
                equal(latency.type, "histogram")
                equal(got["freshet_shop_http_requests"].type if strict else
                      got["freshet_shop_http_requests"].type, "counter", total)
        # a host's subtree says nothing of programs
        expect("freshet_shop" not in served().get("/metrics?path=/a"))
        expect("cgroup=" in served().get("/metrics?segment=host&path=/a"))


@test
def promtool_has_nothing_to_say():
    with Program("shop") as program:
        shows("shop")
        program.do("observe / 5000", "set / 1 1 1")
        promtool(served(), "/metrics", "/metrics?segment=shop")


@test
def gzip_is_the_same_text():
    import gzip
    with Program("shop") as program, Program("second"):
        shows("shop")
        shows("second")
        program.do("create /acme", "set /acme 5 1 4096")
        time.sleep(YOUNG)
        for target, accept in (("/metrics", OPENMETRICS), ("/metrics?segment=shop", OPENMETRICS),
                               ("/metrics", "text/plain"), ("/api/v1/groups?segment=shop", "*/*")):
            status, headers, body = served().request(
                target, headers={"Accept": accept, "Accept-Encoding": "gzip"})
            equal((status, headers["Content-Encoding"]), (200, "gzip"))
            text = gzip.decompress(body).decode()
            plain = served().get(target, {"Accept": accept})
            start = '"groups"' if "api" in target else "# HELP freshet_shop_"
            equal(text.partition(start)[1:], plain.partition(start)[1:])
            expect(plain.partition(start)[2])
            if "openmetrics" in accept:
                families(text)


@test
def answers_are_shared_and_young():
    """Between two copies of a live tree everybody gets the same one; the next copy has it all."""
    def rendered():
        return int(re.search(r"^freshet_rendered_bytes_total (\d+)", served().get("/metrics"),
                             re.M)[1])

    with Program("shop") as program:
        shows("shop")
        seen = []
        for n in range(1, 30):
            program.do("add / 0 1")
            time.sleep(YOUNG)
            answer = json.loads(served().get("/api/v1/groups?segment=shop&max_age=20ms"))
            equal(answer["segment"], "shop")
            expect(answer["age_us"] < 60000, answer)
            seen.append(answer["groups"][0]["http"]["requests"])
        equal(seen, list(range(1, 30)))
        one = len(served().get("/api/v1/groups?segment=shop&depth=0").partition('"groups"')[2])
        before, begin = rendered(), time.monotonic()
        for _ in range(300):
            served().get("/api/v1/groups?segment=shop&depth=0")
        took = time.monotonic() - begin
        expect((rendered() - before) / one < took / 0.01 + 100, "at most one copy each 10 ms")


@test
def restarted_and_killed():
    program = Program("shop")
    program.do("create /old", "add /old 0 5")
    shows("shop")
    program.kill()
    time.sleep(YOUNG)
    status, _, _ = served().request("/metrics?segment=shop")
    equal(status, 404, "what is left of it is not shown as current")
    shows_no_more("shop")
    expect(os.path.exists(program.file))
    with Program("shop") as again:
        again.do("create /new", "add /new 0 7")
        shows("shop")
        equal({p: g["http"]["requests"] for p, g in groups("/api/v1/groups?segment=shop").items()},
              {"/": 7, "/new": 7})
    # within a second: it is gone and there again, and the file's name is the same
    first = Program("shop")
    shows("shop")
    first.stop()
    with Program("shop") as second:
        wait_until(lambda: segments().get("shop", {}).get("pid") == second.process.pid,
                   "the new one is shown", 5)


@test
def a_stopped_program_is_read():
    """Readers of a tree never wait for who keeps it."""
    with Program("shop") as program:
        program.do("add / 0 4")
        shows("shop")
        program.process.send_signal(signal.SIGSTOP)
        try:
            equal(groups("/api/v1/groups?segment=shop")["/"]["http"]["requests"], 4)
        finally:
            program.process.send_signal(signal.SIGCONT)


@test
def what_is_no_segment_is_said_once():
    before = len(served().lines)
    there = directory()

    def lie(name, make):
        make(os.path.join(there, name))
        return name

    with Program("shop") as program:
        names = [
            lie("garbage", lambda p: open(p, "w").write("x" * 10000)),
            lie("link", lambda p: os.symlink(program.file, p)),
            lie("fifo", os.mkfifo),
            lie("nobody", lambda p: (shutil.copyfile(program.file, p), os.chmod(p, 0))),
            lie("zeroes", lambda p: open(p, "wb").write(bytes(65536))),
        ]
        if os.geteuid() == 0:
            names.append(lie("theirs", lambda p: (shutil.copyfile(program.file, p),
                                                  os.chown(p, 65534, 65534))))
        names.append(lie("torn", lambda p: torn(program.file, p)))
        os.mkdir(os.path.join(there, "directory"))
        lie("dead", lambda p: shutil.copyfile(program.file, p))  # nobody holds its lock: not said
        shows("shop")
        wait_until(lambda: len(served().lines) >= before + len(names), f"{served().lines}", 5)
        time.sleep(2.5)  # more looks
        lines = served().lines[before:]
        equal(len(lines), len(names), str(lines))
        for name in names:
            equal(len(said(served(), rf"/{name} is not shown: ")), 1, f"{name}: {lines}")
        equal(sorted(segments()), ["host", "shop"])
        equal(served().request("/healthz")[0], 200)
        for name in names + ["dead"]:
            os.unlink(os.path.join(there, name))
        os.rmdir(os.path.join(there, "directory"))


def torn(good, path):
    """A segment whose size says more than there is."""
    with open(good, "rb") as f:
        head = f.read(8192)
    with open(path, "wb") as f:
        f.write(head)


@test
def one_that_is_cut_short_does_no_harm():
    before = len(served().lines)
    program = Program("shop")
    program.do("create /acme", "add /acme 0 5")
    shows("shop")
    program.process.stdin.write("truncate 4096\n")
    program.process.stdin.flush()
    end = time.monotonic() + 2
    while time.monotonic() < end:
        for target in ("/metrics", "/metrics?segment=shop", "/api/v1/segments", "/"):
            expect(served().request(target)[0] in (200, 404, 503), target)
    shows_no_more("shop")
    equal(len(said(served(), "shop is not shown: the segment is damaged")), 1,
          str(served().lines[before:]))
    equal(len(served().lines), before + 1, str(served().lines[before:]))
    program.kill()
    os.unlink(program.file)


@test
def few_lines_for_many_files():
    before = len(served().lines)
    names = [os.path.join(directory(), f"garbage{n}") for n in range(50)]
    for name in names:
        with open(name + ".new", "w") as f:
            f.write("x" * 5000)
    for name in names:
        os.rename(name + ".new", name)
    try:
        wait_until(lambda: said(served(), "more lines of that kind"), "what is left out is said", 5)
        time.sleep(1.5)
        lines = served().lines[before:]
        expect(len(lines) <= 2 * 9, str(lines))  # two looks, if one came in between
        more = sum(int(re.search(r"and (\d+) more", line)[1]) for line in lines if "and " in line)
        equal(len([line for line in lines if "is not shown" in line]) + more, 50, str(lines))
    finally:
        for name in names:
            os.unlink(name)


@test
def what_is_too_large_is_shown_when_it_shrinks():
    before = len(served().lines)
    with Wide(os.path.join(directory(), "wide"), 200000) as wide:
        wait_until(lambda: said(served(), "wide is not shown: it takes too much"), "it is said", 10)
        expect("wide" not in segments())
        wide.publish(3)
        wait_until(lambda: "wide" in segments(), "it is shown", 15)
        equal(len(groups("/api/v1/groups?segment=wide")), 3)
        expect('freshet_segment_age_seconds{segment="wide"} ' in served().get("/metrics"))
        wide.publish(200000)
        status, _, body = served().request("/api/v1/groups?segment=wide")
        equal((status, b"too much" in body), (503, True), body)
        shows_no_more("wide")
        wide.publish(2)
        wait_until(lambda: "wide" in segments(), "it is shown again", 15)
        equal(len(served().lines), before + 1, str(served().lines[before:]))


@test
def all_together_have_a_budget():
    before = len(served().lines)
    # 42 MiB each: names 32, entries and rows 10
    wide = [Wide(os.path.join(directory(), f"wide{n}"), 100000) for n in range(4)]
    try:
        wait_until(lambda: said(served(), "wide. is not shown: it takes too much"), "it is said", 10)
        wait_until(lambda: len(segments()) == 4, "three are shown", 5)
        left, = {f"wide{n}" for n in range(4)} - set(segments())
        time.sleep(5)  # it was tried again
        equal(len(served().lines), before + 1, str(served().lines[before:]))
        expect(left not in segments())
        # of their texts, 29 MB each, two fit into an answer: who came first
        text = served().get("/metrics")
        expect("cgroup_" in text and "freshet_segments " in text)
        equal(len(set(re.findall(r"^# TYPE freshet_(wide.)_f_n", text, re.M))), 2)
        wait_until(lambda: len(said(served(), "wide. is not shown: it takes too much")) == 2,
                   "of the third that is said", 5)
        equal(served().request("/healthz")[0], 200)
        with open(f"/proc/{served().process.pid}/status") as f:
            peak = int(re.search(r"VmHWM:\s*(\d+)", f.read())[1])
        expect(peak < 512 << 10 or sanitized(), f"{peak} kB, what is mapped included")
    finally:
        for w in wide:
            w.stop()
    for w in wide:
        shows_no_more(os.path.basename(w.file))


@test
def a_segment_without_groups_is_no_fault():
    before = len(served().lines)
    with Wide(os.path.join(directory(), "wide"), 0, room=1):
        shows("wide")
        equal(segments()["wide"]["groups"], 0)
        equal(served().request("/metrics?segment=wide")[0], 404)
        expect("cgroup_" in served().get("/metrics"))
        listed = cli.works("ls", "--segments")
        expect(re.search(r"^wide +current +0 ", listed, re.M), listed)
    equal(len(served().lines), before, str(served().lines[before:]))


@test
def names_that_clash():
    before = len(served().lines)
    with Program("a.b"):
        shows("a.b")
        with Program("a-b"):
            wait_until(lambda: said(served(), "a-b is not shown: "), "it is said", 5)
            time.sleep(2)
            equal(len(served().lines), before + 1, str(served().lines[before:]))
            families(served().get("/metrics", {"Accept": OPENMETRICS}))
            equal(sorted(segments()), ["a.b", "host"])
            equal(segments()["a.b"]["metrics"], "freshet_a_b")


@test
def its_place_is_taken_by_the_next():
    first = Program("a.b")
    shows("a.b")
    with Program("a-b"):
        first.stop()
        shows("a-b")


@test
def no_more_than_64():
    programs = [Program(f"many{n:02}") for n in range(66)]
    try:
        wait_until(lambda: len(segments()) == 65, "64 are shown", 10)
        wait_until(lambda: said(served(), "no more than 64 segments"), "and that is said", 5)
        expect("freshet_segments 64\n" in served().get("/metrics"))
        left = {p.file.rpartition("/")[2] for p in programs} - set(segments())
        equal(len(left), 2)
        for program in programs:
            if program.file.rpartition("/")[2] not in left:
                program.stop()
        for name in left:
            shows(name)
        equal(len(said(served(), "no more than 64 segments")), 1)
    finally:
        for program in programs:
            program.stop()


@test
def other_serves_are_not_shown():
    with Serve(root=cgroups.path, segment=os.path.join(directory(), "second")) as other:
        with Program("shop"):
            shows("shop")
            shows("shop", other)
            equal(sorted(segments()), ["host", "shop"])
            equal(sorted(segments(other)), ["second", "shop"])
            status, _, body = other.request("/metrics?segment=host")
            equal((status, b"segment: " in body), (404, True))


@test
def further_directories():
    first, second = (os.path.join(temporary(), n) for n in ("dirs-one", "dirs-two"))
    os.mkdir(first)
    os.mkdir(second)
    with Program(os.path.join(first, "x")) as x, Program(os.path.join(second, "y")) as y:
        if os.geteuid() == 0:
            os.chown(y.file, 65534, 65534)
        with Serve("--segment-dirs", f"{first}:{second}:/no/such", root=cgroups.path) as own:
            shows("x", own)
            shows("y", own)
            equal(len(own.lines), 1, str(own.lines))
            expect("x" not in segments(), "and only where it was asked for")
            equal(x.process.poll(), None)


@test
def landing_page_names_them():
    expect("Programs" not in served().get("/"))
    with Program("shop"):
        shows("shop")
        page = served().get("/")
        expect('<a href="/metrics?segment=shop">shop</a><td>test &lt;producer&gt;, pid' in page, page)


@test
def wrong_requests():
    for target, status in (("/metrics?segment=nix", 404), ("/metrics?segment=", 404),
                           ("/metrics?segment=../etc", 404), ("/api/v1/segments?x=1", 400),
                           ("/api/v1/groups?segment=host&segment=host", 400),
                           ("/api/v1/groups?segment=host&depth=0", 200)):
        got, _, body = served().request(target)
        equal(got, status, f"{target}: {body}")
    with Program("shop"):
        shows("shop")
        for target, status in (("/metrics?segment=shop&path=/nix", 404),
                               ("/api/v1/groups?segment=shop&path=..", 404),
                               ("/api/v1/groups?segment=shop&max_age=0", 200),
                               ("/api/v1/groups?segment=shop&max_age=x", 400)):
            got, _, body = served().request(target)
            equal(got, status, f"{target}: {body}")


def teardown():
    if serve:
        serve.stop()
    if cgroups:
        cgroups.remove()


run(teardown)
