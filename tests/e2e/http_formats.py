# SPDX-License-Identifier: MIT
"""What /metrics and /api/v1/groups say: both metrics formats under strict parsers, gzip, negotiation,
JSON, subtrees, and cgroups with odd names in all of them. One pass, so that answers can be compared
to the digit."""
import gzip
import json
import os
import re

import cli
from freshet import Cgroups, Serve, promtool
from tap import equal, expect, note, run, skip, test

cli.private_run()

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT = "text/plain; version=0.0.4; charset=utf-8"

ODD = [
    b'quote"backslash\\', b"tab\there", "ünï¢ødé-🌊".encode(), b"x" * 255, b"space and {brace}=,#",
    b"\xff", b"\xfe", b"\xff/child", b"\xfe/child", "\ufffd".encode(), b"cut\xe2\x82", b"cr\rhere",
    b"\x01\x1f\x7f", "\u2028\u0085".encode(),
]

cgroups = serve = None


def served():
    """The daemon of all tests here, over a tree of odd names. It makes one pass only."""
    global cgroups, serve
    if not serve:
        cgroups = Cgroups("formats")
        cgroups.make("plain/child", *ODD)
        cgroups.burn("plain/child", 0.05)
        serve = Serve("--interval", "1h", root=cgroups.path)
    return serve


def decoded(name):
    """A path as views show it: one U+FFFD for each byte that is no UTF-8."""
    path, at = "/", 0
    while at < len(name):
        for length in (1, 2, 3, 4):
            try:
                path += name[at:at + length].decode()
                at += length
                break
            except UnicodeDecodeError:
                pass
        else:
            path += "\ufffd"
            at += 1
    return path


def parse(text, strict):
    try:
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as om
        from prometheus_client.parser import text_string_to_metric_families as plain
    except ImportError:
        skip("python3-prometheus-client is not installed")
    return list((om if strict else plain)(text))


def usage(families):
    """{(path, id): seconds} of the usage family."""
    return {(s.labels["cgroup"], s.labels.get("id")): s.value
            for f in families for s in f.samples if s.name == "cgroup_cpu_usage_seconds_total"}


@test
def openmetrics_under_the_strict_parser():
    body = served().get("/metrics", {"Accept": OPENMETRICS})
    expect(body.endswith("# EOF\n"))
    families = {f.name: f for f in parse(body, True)}
    equal(families["cgroup_cpu_usage_seconds"].type, "counter")
    equal(families["cgroup_cpu_usage_seconds"].unit, "seconds")
    equal(families["freshet_pass_seconds"].type, "histogram")
    equal(families["freshet_source"].type, "info")
    equal(len({s.labels["cgroup"] for s in families["cgroup_cpu_usage_seconds"].samples
               if s.labels["cgroup"].startswith("/plain")}), 2)


@test
def text_format_parses_and_says_the_same():
    plain, strict = (usage(parse(served().get("/metrics", {"Accept": a}), a == OPENMETRICS))
                     for a in (TEXT, OPENMETRICS))
    expect(plain)
    equal(plain, strict)


@test
def promtool_has_nothing_to_say():
    promtool(served(), "/metrics", "/metrics?path=/plain")


@test
def odd_names_in_labels():
    for accept in (TEXT, OPENMETRICS):
        body = served().get("/metrics", {"Accept": accept})
        seen = usage(parse(body, accept == OPENMETRICS))
        for name in ODD:
            inode = str(os.stat(cgroups.join(name)).st_ino)
            exact = "/" + os.fsdecode(name) == decoded(name)
            expect((decoded(name), None if exact else inode) in seen, f"{name} in {accept}")
        equal(body.count("cgroup_cpu_usage_seconds_total{"), len(seen), "every series is its own")


@test
def odd_names_in_json():
    groups = json.loads(served().get("/api/v1/groups"))["groups"]
    seen = {(g["path"], g["id"]) for g in groups}
    for name in ODD:
        expect((decoded(name), os.stat(cgroups.join(name)).st_ino) in seen, str(name))


@test
def json_and_metrics_agree():
    answer = json.loads(served().get("/api/v1/groups"))
    equal(answer["pass"], 1)
    expect(answer["age_us"] > 0)
    seconds = usage(parse(served().get("/metrics"), False))
    equal(len(answer["groups"]), len(seconds))
    for group in answer["groups"]:
        value = seconds.get((group["path"], None), seconds.get((group["path"], str(group["id"]))))
        cpu = group["cpu"]
        equal(cpu["usage_usec"], int(round(value * 1e9)) // 1000, group["path"])
        equal(cpu["usage_usec"] - cpu["user_usec"] - cpu["system_usec"] in (0, 1), True,
              group["path"])
    burnt = {g["path"]: g["cpu"]["usage_usec"] for g in answer["groups"]}
    expect(burnt["/plain/child"] >= 50000, str(burnt["/plain/child"]))
    expect(burnt["/plain"] >= burnt["/plain/child"])


@test
def json_is_a_tree():
    groups = json.loads(served().get("/api/v1/groups"))["groups"]
    path = {g["id"]: g["path"] for g in groups}
    equal(groups[0]["path"], "/")
    expect("parent" not in groups[0])
    for group in groups[1:]:
        above, _, last = group["path"].rpartition("/")
        equal(path[group["parent"]], above or "/")
        expect(last)


@test
def depth_cuts_the_tree():
    def paths(target):
        return [g["path"] for g in json.loads(served().get(target))["groups"]]

    everything = paths("/api/v1/groups")
    expect("/plain/child" in everything)
    equal(paths("/api/v1/groups?depth=0"), ["/"])
    equal(sorted(paths("/api/v1/groups?depth=1")),
          sorted(p for p in everything if p.count("/") == 1))
    equal(paths("/api/v1/groups?depth=999999999"), everything)
    equal(paths("/api/v1/groups?path=/plain"), ["/plain", "/plain/child"])
    equal(paths("/api/v1/groups?path=/plain&depth=0"), ["/plain"])
    equal(paths("/api/v1/groups?path=plain/child"), ["/plain/child"])
    equal(paths("/api/v1/groups?path="), everything)


@test
def a_subtree_shows_nothing_else():
    body = served().get("/metrics?path=%2Fplain", {"Accept": OPENMETRICS})
    families = parse(body, True)
    equal({s.labels.get("cgroup") for f in families for s in f.samples},
          {None, "/plain", "/plain/child"})
    equal([f.name for f in families if not f.name.startswith("cgroup_")],
          ["freshet_last_pass_age_seconds"])


@test
def odd_names_as_paths():
    from urllib.parse import quote
    for name in ODD:
        answer = json.loads(served().get("/api/v1/groups?depth=0&path=" + quote(name)))
        equal(answer["groups"][0]["id"], os.stat(cgroups.join(name)).st_ino, str(name))


@test
def gzip_is_the_same_text():
    for target, accept in (("/metrics", TEXT), ("/metrics", OPENMETRICS), ("/api/v1/groups", "*/*"),
                           ("/metrics?path=/plain", TEXT)):
        status, headers, body = served().request(
            target, headers={"Accept": accept, "Accept-Encoding": "br;q=1, gzip;q=0.8, *;q=0.1"})
        equal(status, 200)
        equal(headers["Content-Encoding"], "gzip")
        plain = served().get(target, {"Accept": accept})
        # The heads differ: they tell ages. What follows is one rendering.
        start = '"groups"' if "api" in target else "# HELP cgroup_"
        equal(gzip.decompress(body).decode().partition(start)[1:], plain.partition(start)[1:])
        expect(plain.partition(start)[2])
    status, headers, _ = served().request("/metrics", headers={"Accept-Encoding": "gzip;q=0"})
    equal((status, headers["Content-Encoding"]), (200, None))


@test
def accept_decides():
    chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
    prometheus = ("application/openmetrics-text;version=1.0.0,application/openmetrics-text;"
                  "version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
    for accept, wanted in ((None, TEXT), ("", TEXT), ("*/*", TEXT), (chrome, TEXT),
                           (prometheus, OPENMETRICS), (OPENMETRICS, OPENMETRICS),
                           ("application/openmetrics-text;q=0.2, text/plain;q=0.1", OPENMETRICS),
                           ("application/openmetrics-text;q=0.1, text/plain;q=0.2", TEXT)):
        status, headers, _ = served().request("/metrics", headers={"Accept": accept} if accept
                                              is not None else {})
        equal((status, headers["Content-Type"]), (200, wanted), str(accept))
    for target in ("/metrics", "/api/v1/groups"):
        status, _, body = served().request(target, headers={"Accept": "image/png"})
        equal(status, 406)
        expect(body.startswith(b"Accept: ") and body.count(b"\n") == 1, body)


@test
def own_metrics_count():
    def value(name):
        for line in served().get("/metrics").splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        expect(False, f"no {name}")

    equal(value("freshet_passes_total"), 1)
    equal(value("freshet_groups"), len(json.loads(served().get("/api/v1/groups"))["groups"]))
    rendered = value("freshet_rendered_bytes_total")
    for _ in range(5):
        served().get("/metrics")
    equal(value("freshet_rendered_bytes_total"), rendered, "renderings are shared")
    before = value('freshet_requests_total{endpoint="healthz"}')
    served().get("/healthz")
    equal(value('freshet_requests_total{endpoint="healthz"}'), before + 1)
    expect(0 < value("process_cpu_seconds_total") < 60)
    expect(1e6 < value("process_resident_memory_bytes") < 32e6 * 3)
    first = value("freshet_last_pass_age_seconds")
    expect(value("freshet_last_pass_age_seconds") > first, "the age is of now, not of the rendering")


@test
def one_rendering_however_it_is_asked_for():
    """Else whoever varies his requests makes the server render anew each time, and others wait."""
    def rendered():
        return re.search(r"^freshet_rendered_bytes_total (\d+)", served().get("/metrics"), re.M)[1]

    served().get("/api/v1/groups")
    served().get("/metrics?path=/plain")
    before = rendered()
    for n in range(1, 40):
        served().get("/metrics?path=" + "/" * n)
        served().get("/metrics?path=" + "/" * n + "plain" + "/" * (n - 1))
        served().get(f"/api/v1/groups?depth={n + 1}&path=" + "/" * n)
    equal(rendered(), before)


@test
def deep_trees_do_not_square():
    """Two hundred levels, whose paths together would take megabytes."""
    with Cgroups("formats-deep") as deep:
        levels, at = 200, os.open(deep.path, os.O_RDONLY)
        held = [at]
        try:
            for _ in range(levels):
                os.mkdir("n" * 200, dir_fd=held[-1])
                held.append(os.open("n" * 200, os.O_RDONLY, dir_fd=held[-1]))
            with Serve("--interval", "1h", root=deep.path) as own:
                groups = json.loads(own.get("/api/v1/groups"))["groups"]
                equal([len(groups), len(groups[-1]["path"])], [21, 20 * 201])
                metrics = own.get("/metrics")
                equal(metrics.count("cgroup_cpu_usage_seconds_total{"), 21)
                expect("freshet_groups 21\n" in metrics, "those that can be asked for")
                expect(f"freshet_left_out {levels + 1 - 21}\n" in metrics, "the others are counted")
                long = own.request("/metrics?path=" + ("/" + "n" * 200) * 21)
                equal([long[0], long[2]], [404, b"path: no such group\n"])
        finally:
            for directory in reversed(held[:-1]):
                os.rmdir("n" * 200, dir_fd=directory)
            for fd in held:
                os.close(fd)


@test
def head_has_no_body():
    for target in ("/", "/metrics", "/api/v1/groups", "/healthz"):
        status, headers, body = served().request(target, method="HEAD")
        equal((status, body), (200, b""), target)
        expect(int(headers["Content-Length"]) > 0)


@test
def landing_page():
    status, headers, body = served().request("/")
    equal((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
    page = body.decode()
    for needed in ("/metrics", "/api/v1/groups", "/healthz", "color-scheme:light dark",
                   os.uname().nodename, cgroups.path, serve.segment):
        expect(needed in page, needed)
    note(f"{len(page)} bytes")


def teardown():
    if serve:
        serve.stop()
    if cgroups:
        cgroups.remove()


run(teardown)
