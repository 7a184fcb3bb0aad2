# SPDX-License-Identifier: MIT
"""The pages: one for each bench, and the index. All is made from Results, which are what a
directory's NAME.csv (the rows) and NAME.json (the rest) hold."""
import collections
import itertools
import json
import os
import re

from . import findings, plots, tables, words
from .words import BENCHES

MARK = "<!-- Made by `make bench` (tools/bench-report): do not edit. -->"
ROWS_SHOWN, ROWS_FOLDED = 60, 100
BUSY = 0.2  # of each CPU, as freshet-bench has it
WIDE = 5    # columns

BARS = """## Bars

Freshet's goals, set before anything was measured.

"""
CHECKS = """## Expectations

No goals: does each design show what is said of it, also where it is bad? If not, the bench could not
see it, and what it says of the others is worth less.

"""

# date: when its run began, UTC. arguments: beside --json. commit: of the tree it was built from.
Run = collections.namedtuple("Run", "date seconds arguments commit")


class Result:
    """One bench: its last complete run, and what failed since, if something did."""

    def __init__(self, name, run=None, rows=(), report=None, failed=None):
        self.name, self.run, self.rows, self.failed = name, run, list(rows), failed
        self.report = report or {}  # machine, lines, bars, checks, notes

    def plots(self):
        """Lines by plot, in the order of the bench."""
        found = {}
        for line in self.report.get("lines", []):
            found.setdefault(line["plot"], []).append(line)
        return found

    def svgs(self):
        """File names by plot; of those that are one, and more than a column of points."""
        return {plot: (plot if plot.startswith(self.name) else f"{self.name}-{plot}") + ".svg"
                for plot, lines in self.plots().items()
                if len({x for line in lines for x, _ in line["points"]}) > 1}

    def quick(self):
        return bool(self.run) and "--quick" in self.run.arguments

    def busy(self):
        m = self.report.get("machine")
        return bool(m) and (m.get("cpus_in_use") or 0) > BUSY * m["cpus"]


def load(directory, name):
    """None: there is nothing of that bench."""
    try:
        with open(os.path.join(directory, name + ".json"), encoding="utf-8") as f:
            kept = json.load(f)
    except FileNotFoundError:
        return None
    failed = kept.pop("failed", None)
    if "run" not in kept:
        return None
    with open(os.path.join(directory, name + ".csv"), encoding="utf-8", newline="") as f:
        rows = tables.from_csv(f.read())
    return Result(name, Run(**kept.pop("run")), rows, kept, failed)


def save(directory, result):
    """NAME.csv, and NAME.json, an item a line; of a bench that has a complete run."""
    kept = {"failed": result.failed} if result.failed else {}
    kept.update(run=result.run._asdict(), **result.report)
    write(directory, result.name + ".csv", tables.to_csv(result.rows))

    def dump(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def items(value):
        if not isinstance(value, list):
            return dump(value)
        return "[\n" + ",\n".join(map(dump, value)) + "]"

    write(directory, result.name + ".json",
          "{" + ",\n".join(f"{dump(key)}:{items(value)}" for key, value in kept.items()) + "}\n")


def write(directory, name, text):
    with open(os.path.join(directory, name), "w", encoding="utf-8", newline="") as f:
        f.write(text)


def machine(result):
    m = result.report["machine"]
    return f"{m['cpu']}, {m['cpus']} CPUs, Linux {m['kernel']}"


def took(seconds):
    return f"{seconds} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def goals(results, names, key="bars"):
    """The bars of the results, or their checks, as a table; "" when there are none. names: of the
    benches, too."""
    one, met, heads = {
        "bars": ("bar", ("met", "NOT met"), ["goal", "measured", "wanted", "result"]),
        "checks": ("check", ("as expected", "NOT as expected"),
                   ["what is said of it", "measured", "expected", "result"]),
    }[key]
    rows = []
    for result in results:
        for bar in result.report.get(key, []):
            kind, unit = "below" if "below" in bar else "at_least", bar["unit"].replace("us", "µs")
            rows.append([*([result.name] if names else []), bar[one], findings.digits(bar["value"], unit),
                         f"{kind.replace('_', ' ')} {findings.digits(bar[kind], unit)}",
                         met[0] if bar["met"] else met[1]])
    return tables.markdown([*(["bench"] if names else []), *heads], rows) if rows else ""


def both(results, names):
    """The sections of bars and of checks, if there are any."""
    for key, head in ("bars", BARS), ("checks", CHECKS):
        table = goals(results, names, key)
        if table:
            yield head + table


def count_met(result, key, what):
    met = [bar["met"] for bar in result.report.get(key, [])]
    return f"{sum(met)} of {len(met)} {what}" if met else ""


def pictures(result, level):
    files = result.svgs()
    for plot, lines in result.plots().items():
        spec = plots.spec(plot)
        if plot in files:
            yield f"{level} {spec.title}\n\n![{spec.title}]({files[plot]})\n"
            if spec.caption:
                yield spec.caption + "\n"
        elif any(line["points"] for line in lines):
            yield f"{level} {spec.title}\n"
            unit = f" ({spec.y.unit})" if spec.y.unit else ""
            yield tables.markdown(["", spec.x.title, spec.y.title + unit],
                                  [[line["line"], *map(findings.digits, point)]
                                   for line in lines for point in line["points"]])
    if result.name == "timeline":
        yield f"{level} Who runs and who waits\n\n![Who runs and who waits](timeline.svg)\n"
        yield words.TIMELINE + "\n"


def drawn_lines(result, plot):
    """Of a plot of how long reads take, those that get something else by being quick say so."""
    lines = result.plots()[plot]
    if plot != "read-latency":
        return lines
    designs = findings.Designs(result.rows)
    return [{**line, "line": line["line"] + (f" ({', '.join(faults)})" if faults else "")}
            for line in lines for faults in [designs.faults(line["line"])]]


def warnings(results):
    """Of runs that are not worth much; names when there are many."""
    def which(chosen, what):
        names = ", ".join(r.name for r in chosen)
        return f"{what}{f' ({names})' if len(results) > 1 else ''}"

    measured = [r for r in results if r.name != "timeline"]  # which is exact on any machine
    busy, quick = [r for r in measured if r.busy()], [r for r in measured if r.quick()]
    if busy:
        loads = ", ".join(dict.fromkeys(f"{r.report['machine']['cpus_in_use']} of "
                                        f"{r.report['machine']['cpus']} CPUs" for r in busy))
        yield (f"> **{which(busy, 'The machine was busy when this began')}:** {loads} in use. "
               "Absolute figures are too high and waits too long.\n")
    if quick:
        yield (f"> **{which(quick, 'A quick run')}:** few rounds and few sizes, to see that it works. "
               "Do not quote its figures.\n")


def failure(result):
    why = escape(result.failed["why"].rstrip(".")).replace("|", "\\|")
    text = f"The run of {result.failed['date']} failed: {why}."
    return text + (f" What is shown is the run of {result.run.date}." if result.run else "")


def page(result):
    """The Markdown of one bench."""
    yield f"{MARK}\n\n# {result.name}: {BENCHES[result.name]}\n"
    if result.failed:
        yield f"**{failure(result)}**\n"
    yield words.PURPOSE[result.name] + "\n"
    if result.run:
        yield from warnings([result])
        busy = result.report["machine"]["load"]
        command = " ".join(["freshet-bench", result.name, *result.run.arguments])
        yield (f"`{command}`, {result.run.date}, {took(result.run.seconds)}; {machine(result)}, "
               f"load {busy} when it began; Freshet {result.run.commit}.\n")
        yield (f"[All rows as CSV]({result.name}.csv) · [the rest as JSON]({result.name}.json) · "
               "[how to read this](README.md#how-to-read-it) · [all benches](README.md)\n")
        summary = findings.summary(result)
        if summary:
            yield "## In short\n"
            yield from summary
        yield from pictures(result, "##")
        for view in tables.VIEWS.get(result.name, []):
            found = tables.answer(view, result.rows)
            if found:
                where = ", ".join(f"{key} {tables.show(value)}" for key, value in found[0].items())
                yield f"## {view.title}\n"
                if where:
                    yield f"With {where}:\n"
                yield found[1]
                if len(view.columns) >= WIDE:
                    yield words.explain(result.name, [c for c in view.columns
                                                      if any(c in row for row in result.rows)])
        yield from all_rows(result)
        yield from both([result], False)
        if result.report["notes"]:
            yield "## Notes\n\n" + "\n".join(notes(result.report["notes"])) + "\n"
    else:
        yield "[All benches](README.md)\n"


def notes(texts):
    """A list; those that are lines of a table by themselves stay as they are."""
    for tabular, group in itertools.groupby(texts, lambda text: " | " in text):
        if tabular:
            yield "\n```\n" + "\n".join(group) + "\n```\n"
        else:
            yield from (f"- {escape(text)}" for text in group)


def all_rows(result):
    count, folded = len(result.rows), result.name in tables.VIEWS
    if count == 0:
        return
    yield "## All rows\n"
    if count > ROWS_FOLDED:
        yield f"{count:,}, in [{result.name}.csv]({result.name}.csv).\n"
    elif folded or count > ROWS_SHOWN:
        yield (f"<details><summary>{count:,} rows</summary>\n\n{tables.complete(result.rows)}\n"
               "</details>\n")
    else:
        yield tables.complete(result.rows)
    if count <= ROWS_FOLDED:
        yield words.explain(result.name, dict.fromkeys(key for row in result.rows for key in row))


def escape(text):
    return re.sub(r"([\\<>*\[\]])", r"\\\1", " ".join(text.split()))


def index(results):
    """The Markdown of the README: all benches that there are."""
    done = [r for r in results if r.run]
    yield f"{MARK}\n\n# What was measured\n"
    yield ("`make bench` made this: the tables and plots of `freshet-bench`, also where a rival wins. "
           "Run it (as root) and see whether your machine says the same.\n")
    where = list(dict.fromkeys(machine(r) for r in done))
    dates = sorted(r.run.date for r in done)
    if done:
        span = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
        yield f"**Machine:** {'; '.join(where)}. **Date:** {span}.\n"
    yield from warnings(done)
    rows = []
    for r in results:
        rows.append([f"[{r.name}]({r.name}.md)", BENCHES[r.name]] +
                    ([r.run.date, took(r.run.seconds) + (" (quick)" if r.quick() else ""),
                      ", ".join(filter(None, (
                          count_met(r, "bars", "goals met"),
                          count_met(r, "checks", "expectations seen")))), f"[CSV]({r.name}.csv)"]
                     if r.run else ["", "", "", ""]) + [failure(r) if r.failed else ""])
    heads = ["bench", "what", "run", "took", "outcome", "rows", "failed"]
    if not any(r.failed for r in results):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    yield links(heads, rows)
    for r in sorted(done, key=lambda r: r.name != "designs"):
        found = findings.summary(r)
        if found:
            what = BENCHES[r.name]
            yield f"## {what[0].upper()}{what[1:]} ([{r.name}]({r.name}.md))\n"
            yield from found
    yield from both(done, True)
    drawn = [text for r in done for text in pictures(r, "###")]
    if drawn:
        yield "## Plots\n"
        yield from drawn
    yield HOW


def links(heads, rows):
    """A table whose cells are Markdown already."""
    return "\n".join("| " + " | ".join(row) + " |"
                     for row in [heads, ["---"] * len(heads), *rows]) + "\n"


HOW = """## How to read it

- Figures are medians unless a name says otherwise (`mean`, `max`, `worst`, `p99`); where a table has
  a spread, it is the distance of the quartiles, in per cent of the median. Methods that are compared
  took turns within the same run.
- Compare within a table rather than between machines. On shared cores (virtual machines) the same
  loop takes up to twice as long from one moment to the next; pages say if the machine was busy. `load`
  is the mean of a minute, in which a bench that ran just before still counts.
- A bar is a goal of Freshet's: a limit that was set before anything was measured. One that is not
  met stays in the table. An expectation is no goal: it says what a design is known for.
- Each page says when its own run was and of which commit. A bench that failed keeps the page of its
  last complete run, and says so. *Quick* runs have fewer rounds and fewer sizes.
- In the CSV files an empty field is one that such rows do not have, `nan` a number that could not be
  had (– on the pages). Plots are drawn from the `lines` of the JSON files. `tools/bench-report
  --redraw` makes pages and plots from these files again.
"""


def files(results):
    """All pages and plots, by name; not what Results are kept in, nor timeline.svg."""
    made = {"README.md": "\n".join(index(results))}
    for r in results:
        made[r.name + ".md"] = "\n".join(page(r))
        for plot, file in r.svgs().items():
            made[file] = plots.draw(plot, drawn_lines(r, plot))
    return made
