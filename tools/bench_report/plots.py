# SPDX-License-Identifier: MIT
"""Draws the lines of a bench as one SVG a plot, by gnuplot.

Everything is decided here and gnuplot only draws: its script goes in by standard input, the
picture comes out by standard output, and no file is left behind. Each line is named at its end.
Lines differ in colour (by family: seqlock and seqlock-fresh are one), in dashes and in the shape of
their points, so that they can be told apart in print; ours are thicker and lie on top.

The picture has a background of its own, and takes dark colours where its reader prefers them: so it
can be read on every page.
"""
import collections
import math
import re
import shutil
import subprocess
from xml.sax.saxutils import escape

PACKAGE = "gnuplot-nox"

# scale: "log"; "share" (log: 10 is the slowest tenth); "each" (values that occur, evenly spaced);
# "linear"; "guess". unit: of the numbers: "ns", "us", "ms", "s" on a log axis, or None.
Axis = collections.namedtuple("Axis", "title scale unit", defaults=["guess", None])
# diagonal: a thin line where y is x.
Plot = collections.namedtuple("Plot", "title x y caption diagonal", defaults=[False])

PLOTS = {
    "read-latency": Plot(
        "How long a read takes", Axis("share of the reads that take less", "share"),
        Axis("a read takes at most", "log", "ns"),
        "The further to the right, the rarer the reads: at 99.9 % one read of a thousand takes "
        "longer than the line says. A line ends where fewer than ten reads were slower. *Stale* and "
        "*torn*: some of its reads were; what is quick there is another thing."),
    "pollers": Plot(
        "What polling does to the updater", Axis("pollers, flat out", "each"),
        Axis("updates per microsecond, one updater", "linear"),
        "A line that falls is an updater slowed down by those who read."),
    "stopped-flusher": Plot(
        "Who waits for a stopped flusher", Axis("the flusher was stopped for", "log", "ms"),
        Axis("the longest read took", "log", "ms"),
        "A reader on the dotted diagonal waits for as long as the flusher stands still; one on a flat "
        "line at the bottom does not notice.", True),
    "pass-cost": Plot(
        "One reading of every cgroup's CPU numbers", Axis("cgroups", "log"),
        Axis("a whole pass takes", "log", "ns"),
        "`open` and `pread` read `cpu.stat`; `bpf` is the pass of `freshet serve`, publication "
        "included."),
    "hammer-read": Plot(
        "What a read costs when readers poll flat out", Axis("readers, each polling its own cgroup",
                                                             "each"),
        Axis("100,000 reads take", "log", "s"),
        "Mean of all reads, 300 cgroups with work in them."),
    "hammer-workload": Plot(
        "What readers leave of the cgroups' own work",
        Axis("readers, each polling its own cgroup", "each"),
        Axis("throughput, of that beside pollers that read nothing", "linear"),
        "1: reading costs the cgroups' processes nothing beyond the CPU time that pollers use. Above "
        "1: pollers that are blocked in the kernel leave their CPU time to the workload."),
}

# Longest match of a name's beginning. Light and dark: at least 3:1 against white and #0d1117.
Family = collections.namedtuple("Family", "ours light dark points")
BLUE, RED, OCHRE, GREEN, PINK, GREY = (("#0060a8", "#58a6ff"), ("#c24a00", "#ff8a50"),
                                       ("#8a6a00", "#d8b13c"), ("#007a5a", "#3fc79a"),
                                       ("#b0488a", "#f08cc4"), ("#6a6a6a", "#a5a5a5"))
FAMILIES = {
    "freshet": Family(True, *BLUE, (7, 6)), "segment": Family(True, *BLUE, (7, 6)),
    "bpf": Family(True, *BLUE, (7, 6)), "bpf+flush": Family(False, *GREEN, (9, 8)),
    "global-lock": Family(False, *RED, (5, 4)), "open": Family(False, *RED, (5, 4)),
    "lock-break": Family(False, *OCHRE, (11, 10)), "kept": Family(False, *OCHRE, (11, 10)),
    "pread": Family(False, *OCHRE, (11, 10)), "subsystem-lock": Family(False, *GREEN, (9, 8)),
    "atomic": Family(False, *PINK, (13, 12)), "seqlock": Family(False, *GREY, (1, 2)),
    "spin": Family(False, *GREY, (2, 1)),
}
OTHERS = [Family(False, *colours, points) for colours, points in
          ((RED, (5, 4)), (GREEN, (9, 8)), (PINK, (13, 12)), (OCHRE, (11, 10)), (GREY, (1, 2)))]
DASHES = {True: ["solid", "(10,4)", "(3,3)"], False: ["solid", "(10,5)", "(3,4)", "(12,4,3,4)"]}
FAMILY_DASH = {RED: 0, OCHRE: 1, GREEN: 3, PINK: 0, GREY: 2, BLUE: 0}

WIDTH, HEIGHT = 880, 460
LEFT, TOP, BOTTOM = 88, 74, 392  # the axes, from the upper left corner
SAMPLE, LETTER, LABEL_GAP = 78, 8, 19  # of the labels on the right
FONT, BOLD = "Helvetica Neue,Arial,sans-serif", "Bold"
INK, PAPER, GRID = ("black", "#e6edf3"), ("white", "#0d1117"), ("gray", "#6e7681")
TIMES = [("ns", 1), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)]
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


class Failed(Exception):
    pass


def available():
    return shutil.which("gnuplot") is not None


def spec(name):
    return PLOTS.get(name) or Plot(name, Axis("x"), Axis("y"), "")


def quote(text):
    return "'" + re.sub(r"\s+", " ", text).replace("'", "''") + "'"


def show(value, unit=None):
    """A number as an axis says it: 10,000; 100 µs."""
    if unit:
        ns = value * UNITS[unit]
        name, factor = [t for t in TIMES if ns >= t[1] * 0.999][-1] if ns >= 1 else TIMES[0]
        return f"{ns / factor:.12g} {name}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


class Scale:
    """One axis: where a value lies, and which values are named."""

    def __init__(self, axis, values):
        kind = axis.scale
        if kind == "guess":
            kind = "log" if min(values) > 0 and max(values) > 30 * min(values) else "linear"
        if kind == "log" and min(values) <= 0:
            kind = "each"
        self.log = kind in ("log", "share")
        self.each = sorted(set(values)) if kind == "each" else None
        low, high = min(values), max(values)
        if self.each:
            self.low, self.high = -0.3, len(self.each) - 0.7
            self.tics = [(show(v, axis.unit), i) for i, v in enumerate(self.each)]
        elif kind == "share":
            self.low, self.high = min(low, 2) * 0.9, max(high, 10) * 1.1
            self.tics = [("50 %", 2)] + [(f"{100 - 100 / 10**k:.{max(k - 2, 0)}f} %", 10**k)
                                         for k in range(1, 10)]
        elif kind == "log":
            self.low, self.high = low / 1.3, high * 1.3
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1,) if math.log10(high / low) > 2 else (1, 2, 5)
            self.tics = [(show(s * 10**d, axis.unit), s * 10**d) for d in decades for s in steps]
        else:
            self.low = min(low, 0)
            self.high = high + 0.06 * (high - self.low) if high > self.low else self.low + 1
            step = 10 ** math.floor(math.log10((self.high - self.low) / 2))
            step *= next(m for m in (1, 2, 2.5, 5, 10) if (self.high - self.low) / (step * m) <= 7)
            first, last = math.floor(self.low / step), math.ceil(self.high / step)
            self.tics = [(show(step * i), step * i) for i in range(first, last + 1)]
        self.tics = [t for t in self.tics if self.low <= t[1] <= self.high]

    def place(self, value):
        return self.each.index(value) if self.each else value

    def fraction(self, value):
        f = math.log10 if self.log else float
        return (f(self.place(value)) - f(self.low)) / (f(self.high) - f(self.low))

    def commands(self, letter):
        if self.log:
            yield f"set logscale {letter}"
        yield f"set {letter}range [{self.low:.9g}:{self.high:.9g}]"
        tics = ",".join(f"{quote(name.replace('%', '%%'))} {at:.9g}" for name, at in self.tics)
        yield f"set {letter}tics nomirror out scale 0.5 ({tics})"


def family(name, unknown):
    known = [f for f in FAMILIES if name.startswith(f)]
    if known:
        return FAMILIES[max(known, key=len)]
    return OTHERS[unknown % len(OTHERS)]


def styles(names):
    """Of each name: whether it is ours, and how gnuplot is to draw it."""
    seen, unknown, found = collections.Counter(), 0, {}
    for name in names:
        f = family(name, unknown)
        unknown += f in OTHERS and not any(name.startswith(k) for k in FAMILIES)
        nth, colours = seen[f.light], (f.light, f.dark)
        seen[f.light] += 1
        dash = DASHES[f.ours][(nth + (0 if f.ours else FAMILY_DASH[colours])) % len(DASHES[f.ours])]
        point = f.points[nth % 2]
        found[name] = f.ours, (f"lc rgb '{f.light}' lw {3.2 if f.ours else 1.6} dt {dash} "
                               f"pt {point} ps {0.75 if f.ours else 0.65}")
    return found


def spread(wanted, gap, low, high):
    """Places for labels, in the order of `wanted` (rising), `gap` apart if there is room."""
    gap = min(gap, (high - low) / max(len(wanted) - 1, 1))
    places = []
    for w in wanted:
        places.append(max(w, places[-1] + gap if places else low))
    limit = high
    for i in reversed(range(len(places))):
        places[i] = min(places[i], limit)
        limit = places[i] - gap
    return places


def usable(lines, plot):
    """Points that can be drawn, by name of the line; those without any are left out."""
    found = {}
    for line in lines:
        points = [(x, y) for x, y in line["points"]
                  if x is not None and y is not None and math.isfinite(x) and math.isfinite(y) and
                  (y > 0 or plot.y.scale != "log") and (x > 0 or plot.x.scale != "share")]
        if points:
            found[line["line"]] = sorted(points)
    return found


def script(plot, lines):
    points = usable(lines, plot)
    if not points:
        raise Failed(f"{plot.title}: no point to draw")
    x = Scale(plot.x, [p[0] for line in points.values() for p in line])
    y = Scale(plot.y, [p[1] for line in points.values() for p in line])
    style = styles(points)
    yield (f"set terminal svg size {WIDTH},{HEIGHT} fixed font {quote(FONT + ',14')} "
           "noenhanced butt dashlength 0.7")
    yield "set encoding utf8"
    right = WIDTH - SAMPLE - LETTER * max(map(len, points)) - 8
    yield f"set lmargin at screen {LEFT / WIDTH}; set rmargin at screen {right / WIDTH:.4f}"
    yield f"set tmargin at screen {1 - TOP / HEIGHT}; set bmargin at screen {1 - BOTTOM / HEIGHT}"
    yield "set border 3 lw 1; set grid lc rgb 'gray' lw 0.4 dt (2,4); unset key"
    yield from x.commands("x")
    yield from y.commands("y")
    yield f"set xlabel {quote(plot.x.title)} offset 0,0.4"
    yield f"set label {quote(plot.title)} at screen 0.02, screen {1 - 26 / HEIGHT} font ',18'"
    yield f"set label {quote(plot.y.title)} at screen 0.02, screen {1 - 54 / HEIGHT}"

    ends = sorted(points, key=lambda name: points[name][-1][1])
    at = spread([y.fraction(points[name][-1][1]) for name in ends],
                LABEL_GAP / (BOTTOM - TOP), 0, 1)
    sample = [1 + pixels / (right - LEFT) for pixels in (24, 46, 68, SAMPLE)]
    for name, place in zip(ends, at):
        x_end, y_end = points[name][-1]
        ours, how = style[name]
        colour, dashes = how.split(" lw ")[0], how.split(" pt ")[0]
        yield (f"set arrow from graph {x.fraction(x_end):.4f}, graph {y.fraction(y_end):.4f} to "
               f"graph {sample[0]:.4f}, graph {place:.4f} nohead {colour} lw 0.6" +
               (" dt (1,6)" if x.fraction(x_end) < 0.9 else ""))  # so that it is not taken for data
        yield (f"set arrow from graph {sample[0]:.4f}, graph {place:.4f} to "
               f"graph {sample[2]:.4f}, graph {place:.4f} nohead {dashes}")
        yield (f"set label '' at graph {sample[1]:.4f}, graph {place:.4f} "
               f"point {colour} pt {how.split(' pt ')[1]}")
        yield (f"set label {quote(name)} at graph {sample[3]:.4f}, graph {place:.4f} left" +
               (f" font '{BOLD},14'" if ours else ""))
    order = sorted(points, key=lambda name: style[name][0])
    for i, name in enumerate(order):
        yield f"$line{i} << EOD"
        yield from (f"{x.place(px):.9g} {y.place(py):.9g}" for px, py in points[name])
        yield "EOD"
    diagonal = "x with lines lc rgb 'black' lw 1.4 dt (3,5), " if plot.diagonal else ""
    yield f"plot {diagonal}" + ", ".join(
        f"$line{i} with linespoints {style[name][1]} pi {max(1, len(points[name]) // 12)}"
        for i, name in enumerate(order))


def rgb(colour):
    """As gnuplot's SVG has it."""
    if colour[0] != "#":
        return colour
    return "rgb({:3d}, {:3d}, {:3d})".format(*bytes.fromhex(colour[1:]))


def dress(svg, title):
    """Title, background, and colours for dark pages."""
    rules = []
    for light, dark in [INK, GRID, *{(f.light, f.dark) for f in (*FAMILIES.values(), *OTHERS)}]:
        if rgb(light) in svg:
            rules += [f'[{kind}="{rgb(light)}"]{{{kind}:{dark}}}'
                      for kind in ("stroke", "fill", "color")]
    style = (f"<style>@media (prefers-color-scheme: dark) {{\n.paper{{fill:{PAPER[1]}}}\n" +
             "\n".join(sorted(rules)) + "\n}</style>")
    svg = re.sub(r"<title>Gnuplot</title>\s*<desc>.*?</desc>",
                 lambda _: f"<title>{escape(title)}</title>\n{style}", svg, flags=re.S)
    svg = re.sub(r'(<rect x="0" y="0"[^>]*) fill="none"/>',
                 rf'\1 rx="6" class="paper" fill="{PAPER[0]}"/>', svg, count=1)
    svg = re.sub(r"<g fill=[^>]*>\s*</g>\n", "", svg)
    svg = svg.replace(f'font-family="{BOLD}"', f'font-family="{FONT}" font-weight="bold"')
    return re.sub(r"[ \t]+$", "", svg, flags=re.M).rstrip() + "\n"


def draw(name, lines):
    """The SVG of the plot of that name. Failed: gnuplot did not like it."""
    plot = spec(name)
    done = subprocess.run(["gnuplot", "-"], input="\n".join(script(plot, lines)) + "\n",
                          capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0 or "</svg>" not in done.stdout:
        raise Failed(f"gnuplot, plot {name}: {done.stderr.strip() or 'no picture'}")
    return dress(done.stdout, plot.title)
