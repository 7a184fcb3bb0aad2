# SPDX-License-Identifier: MIT
"""Rows of a bench: from its JSON, to and from CSV, and as Markdown tables.

A row is a dict of texts, in the digits that the bench printed: nothing is rounded on the way. `nan`
is a number that could not be had; a key that is missing (an empty field of the CSV) is one that such
rows do not have. Arrays are numbers with spaces between.
"""
import collections
import csv
import io
import re

NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?|nan")


def text_of(value):
    """Of a value of JSON whose numbers were kept as texts."""
    if value is None:
        return "nan"
    if isinstance(value, list):
        return " ".join(map(text_of, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def from_json(rows):
    return [{key: text_of(value) for key, value in row.items()} for row in rows]


def to_csv(rows):
    columns = list(dict.fromkeys(key for row in rows for key in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def from_csv(text):
    return [{key: value for key, value in row.items() if value != ""}
            for row in csv.DictReader(io.StringIO(text))]


def show(text):
    """A value as a page has it: 22,350,508; a dash for what could not be had."""
    if text == "nan":
        return "–"
    if text.startswith("NOT "):
        return f"**{text}**"
    match = re.fullmatch(r"(-?)(\d+)(\.\d+)?", text)
    if match:
        return f"{match[1]}{int(match[2]):,}{match[3] or ''}"
    return re.sub(r"([\\|<>*`\[\]])", r"\\\1", " ".join(text.split()))


def markdown(columns, rows):
    """A table of rows of texts; columns of numbers alone are aligned to the right."""
    right = [all(NUMBER.fullmatch(row[i]) for row in rows if row[i]) and
             any(row[i] for row in rows) for i in range(len(columns))]
    cells = [[show(c) for c in columns]] + [[show(c) for c in row] for row in rows]
    width = [max(3, *(len(row[i]) for row in cells)) for i in range(len(columns))]
    cells.insert(1, ["-" * (w - 1) + (":" if r else "-") for w, r in zip(width, right)])
    return "\n".join("| " + " | ".join(c.rjust(w) if r else c.ljust(w)
                                       for c, w, r in zip(row, width, right)) + " |"
                     for row in cells) + "\n"


def complete(rows):
    """All rows, one table for each stretch of rows with the same keys."""
    tables, keys, part = [], None, []
    for row in [*rows, None]:
        if row is None or tuple(row) != keys:
            if part:
                tables.append(markdown(keys, [list(r.values()) for r in part]))
            keys, part = tuple(row or ()), []
        part.append(row)
    return "\n".join(tables)


# What a page asks of many rows. where: keys and the values they shall have; a run that has none such
# (a quick one) gives the nearest. View: columns of these rows. Pivot: one value, a column for each
# value of the key `across`. Compare: one value of two kinds of rows, and how many times smaller the
# second is.
View = collections.namedtuple("View", "title where columns")
Pivot = collections.namedtuple("Pivot", "title where columns across value")
Compare = collections.namedtuple("Compare", "title where columns kind before after value")


def choose(rows, where):
    """The rows, and the values they really have."""
    found = {}
    for key, wanted in where.items():
        values = list(dict.fromkeys(row[key] for row in rows if key in row))
        if not values:
            continue
        if wanted not in values and all(NUMBER.fullmatch(v) for v in [*values, wanted]):
            wanted = min(values, key=lambda v: abs(float(v) - float(wanted)))
        rows = [row for row in rows if row.get(key) == wanted]
        found[key] = wanted
    return rows, found


def answer(view, rows):
    """(where, table); None: there are no such rows."""
    rows, where = choose(rows, view.where)
    columns = [c for c in view.columns if any(c in row for row in rows)]
    if isinstance(view, View):
        if not rows or not columns:
            return None
        return where, markdown(columns, [[row.get(c, "") for c in columns] for row in rows])
    key = view.across if isinstance(view, Pivot) else view.kind
    cells = collections.defaultdict(dict)
    for row in rows:
        if key in row and view.value in row:
            of = cells[tuple(row.get(c, "") for c in columns)]
            if row[key] in of:
                return None  # rows differ in more than the view knows: better none than a wrong one
            of[row[key]] = row[view.value]
    cells = {names: of for names, of in cells.items() if set(of.values()) != {"nan"}}
    if isinstance(view, Pivot):
        across = sorted({a for of in cells.values() for a in of}, key=order)
        if len(across) == 1:
            return None  # of a quick run, which has other tables with these numbers
        table = [[*names, *(of.get(a, "") for a in across)] for names, of in cells.items()]
        heads = [*columns, *(f"{view.across} {a}" for a in across)]
    else:
        table = [[*names, of[view.before], of[view.after],
                  ratio(of[view.before], of[view.after])]
                 for names, of in cells.items() if view.before in of and view.after in of]
        heads = [*columns, f"before: {view.before}", f"after: {view.after}", "ratio"]
    return (where, markdown(heads, table)) if table else None


def order(text):
    return (0, float(text), "") if NUMBER.fullmatch(text) else (1, 0, text)


def ratio(before, after):
    try:
        return f"{float(before) / float(after):.3g}"
    except ZeroDivisionError:
        return "nan"


CORNER = {"owners": "300", "threads": "8", "slots": "64", "set_size": "3"}


def corner(*without):
    return {key: value for key, value in CORNER.items() if key not in without}


HAMMER = {"cgroups": "300", "readers": "8", "pace_us": "0"}
DESIGN = ["design", "backend"]
VIEWS = {
    "designs": [
        View("What do an update and a read cost?", CORNER, DESIGN +
             ["update_ns", "read_p50_ns", "read_p99_ns", "read_max_us", "reads_per_s"]),
        View("Is what they read right?", CORNER, DESIGN +
             ["checked_reads", "stale", "torn", "torn_max_skew", "excess", "lost", "backwards",
              "tsan_races"]),
        View("Who waits for whom?", CORNER, DESIGN +
             ["blocked_ms", "flush_us", "hold_max_us", "updater_slowdown_pct",
              "others_slowdown_pct", "other_read_p99_ns", "other_alone_p99_ns"]),
        Pivot("An update (ns), by threads", corner("threads"), DESIGN, "threads", "update_ns"),
        Pivot("An update (ns), by the stats of a set", corner("set_size"), DESIGN, "set_size",
              "update_ns"),
        Pivot("A read (median, ns), by the stats of a set", corner("set_size"), DESIGN, "set_size",
              "read_p50_ns"),
        Pivot("A read (median, ns), by CPU slots", corner("slots"), DESIGN, "slots", "read_p50_ns"),
        Pivot("A flush (µs), by owners", corner("owners"), DESIGN, "owners", "flush_us"),
        Pivot("The longest hold of a lock (µs), by CPU slots", corner("slots"), DESIGN, "slots",
              "hold_max_us"),
        View("How long is the code, and what does ThreadSanitizer cost it?", CORNER,
             DESIGN + ["loc", "tsan_off_s", "tsan_on_s"]),
    ],
    "hammer": [
        Compare("Seconds for 100,000 reads, before and after", {"pace_us": "0"},
                ["cgroups", "readers"], "method", "open", "segment", "mean_s_per_100k"),
        View("All methods, flat out: what a reader gets", HAMMER,
             ["method", "mean_s_per_100k", "spread_pct", "cpu_s_per_100k", "reads_s", "worst_us",
              "age_p99_us", "daemon_cpu_pct"]),
        View("All methods, flat out: what is left to the work", HAMMER,
             ["method", "workload_ratio", "ratio_spread_pct", "units_s", "switches_s", "sys_s",
              "rstat_pct"]),
        View("All methods, a read each millisecond", {**HAMMER, "pace_us": "1000"},
             ["method", "mean_s_per_100k", "worst_us", "age_p99_us", "workload_ratio", "sys_s",
              "rstat_pct", "daemon_cpu_pct"]),
        Pivot("Seconds for 100,000 reads, by readers", {"cgroups": "300", "pace_us": "0"},
              ["method"], "readers", "mean_s_per_100k"),
        Pivot("What is left of the workload, by readers", {"cgroups": "300", "pace_us": "0"},
              ["method"], "readers", "workload_ratio"),
    ],
    "barriers": [
        Pivot("ns, by how many in succession", {}, ["where", "beside", "op"], "count", "ns"),
        Pivot("Per cent of what they stand beside, by how many in succession", {},
              ["where", "beside", "op"], "count", "pct"),
    ],
    "pass": [
        Pivot("ns for each cgroup, by the number of cgroups", {}, ["method"], "cgroups",
              "ns_per_cgroup"),
        Pivot("The same with cold caches", {}, ["method"], "cgroups", "cold_ns"),
    ],
    "read": [
        Pivot("Medians in ns, by groups updated since the last flush",
              {"groups": "10000", "slots": "1", "pollers": "0"}, ["what", "from"], "dirty", "ns"),
    ],
    "update": [
        Pivot("Medians in ns, one cell, by threads", {"cells": "1", "pollers": "0"}, ["what"],
              "threads", "ns"),
        Pivot("Medians in ns, one of 1,024 cells, by threads", {"cells": "1024", "pollers": "0"},
              ["what"], "threads", "ns"),
    ],
}
