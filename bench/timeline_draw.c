/* SPDX-License-Identifier: MIT */
/* Implements timeline_draw.h. */
#include "timeline_draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- what both pictures say ---- */

/* Why a flusher's end is called so. */
#define PUBLISHED "done at: changed write by write until then; published at: all at once, then"

struct label {
	char name[32];       /* of the actor */
	char result[160];    /* what it read, and when it was done */
	const char *verdict; /* what is wrong with that; "": nothing */
};

static void label(struct label *ret, const struct timeline *t, const struct timeline_run *runs,
		  int design, int i)
{
	const struct timeline_actor *a = &runs[design].actor[i];
	size_t n = 0;

	ret->verdict = "";
	if (i == 0) {
		snprintf(ret->name, sizeof(ret->name), "flusher");
		snprintf(ret->result, sizeof(ret->result), "%s at %" PRId64,
			 design == TIMELINE_FRESHET ? "published" : "done", a->end);
		return;
	}
	snprintf(ret->name, sizeof(ret->name), "reader at %" PRId64, a->begin);
	for (int k = 0; k < t->stats; k++)
		n += (size_t)snprintf(ret->result + n, sizeof(ret->result) - n, "%s%d",
				      k ? "," : "", a->values[k]);
	snprintf(ret->result + n, sizeof(ret->result) - n, " at %" PRId64, a->end);
	if (!a->whole) /* then it lacks something, too */
		ret->verdict = "torn, stale";
	else if (!a->fresh)
		ret->verdict = "stale";
}

struct extent {
	int64_t end;    /* of all actors */
	int name, text; /* longest name, longest result with verdict; characters */
	int waited;     /* room for ", waited N" */
};

static struct extent extent(const struct timeline *t, const struct timeline_run *runs)
{
	struct extent e = { 0 };

	for (int d = 0; d < TIMELINE_DESIGNS; d++) {
		for (int i = 0; i <= t->readers; i++) {
			struct label l;
			int name, text;

			label(&l, t, runs, d, i);
			name = (int)strlen(l.name);
			text = (int)strlen(l.result) + (*l.verdict ? 1 : 0) +
			       (int)strlen(l.verdict);
			e.name = name > e.name ? name : e.name;
			e.text = text > e.text ? text : e.text;
			if (runs[d].actor[i].end > e.end)
				e.end = runs[d].actor[i].end;
		}
	}
	e.waited = snprintf(NULL, 0, ", waited %" PRId64, e.end);
	return e;
}

/* ---- text ---- */

#define COLUMNS 80 /* or more, with many stats of many CPU slots */
#define LEAST   20 /* for the bars */
#define LABELS  10 /* columns from one time of the axis to the next */

/* A column shows what was last in it; so every reader is seen to read. */
static void text_bar(char *bar, int columns, const struct timeline_actor *a, int64_t unit)
{
	static const char marks[] = {
		[TIMELINE_WAITS] = '.', [TIMELINE_WRITES] = '#', [TIMELINE_READS] = '='
	};

	memset(bar, ' ', (size_t)columns);
	bar[columns] = 0;
	for (int i = 0; i < a->spans; i++) {
		const struct timeline_span *s = &a->span[i];

		for (int64_t c = s->from / unit; c * unit < s->to; c++)
			bar[c] = marks[s->kind];
	}
}

static void text_axis(struct buf *out, int name, int columns, int64_t unit)
{
	char line[COLUMNS + 32] = "";
	int at = 0;

	/* A number may stand beyond the last column, where results begin. */
	for (int c = 0; c <= columns; c += LABELS) {
		if (at > c)
			continue;
		at += snprintf(line + at, sizeof(line) - (size_t)at, "%*s%" PRId64 " ", c - at, "",
			       c * unit);
	}
	buf_printf(out, "%*s%.*s\n", name + 3, "", (int)strlen(line) - 1, line);
}

void timeline_text(struct buf *out, const struct timeline *t,
		   const struct timeline_run runs[TIMELINE_DESIGNS])
{
	const struct extent e = extent(t, runs);
	const int left = COLUMNS - (e.name + 3) - (e.text + 2);
	const int room = left > LEAST ? left : LEAST;
	const int64_t unit = (e.end + room - 1) / room;
	const int columns = (int)((e.end + unit - 1) / unit);

	buf_printf(out,
		   "\n# writes, = reads, . waits; a column is %" PRId64
		   " unit%s of time\n" PUBLISHED "\n\n",
		   unit, unit == 1 ? "" : "s");
	text_axis(out, e.name, columns, unit);
	for (int d = 0; d < TIMELINE_DESIGNS; d++) {
		buf_printf(out, "%s\n", timeline_names[d]);
		for (int i = 0; i <= t->readers; i++) {
			char bar[COLUMNS + 1];
			struct label l;

			label(&l, t, runs, d, i);
			text_bar(bar, columns, &runs[d].actor[i], unit);
			buf_printf(out, "  %-*s %s  %s%s%s\n", e.name, l.name, bar, l.result,
				   *l.verdict ? " " : "", l.verdict);
		}
	}
}

/* ---- SVG ---- */

/* Pixels. Bars begin at multiples of 7, as the pattern of dots does. */
enum {
	MARGIN = 12,
	LETTER = 7, /* on the average */
	BARS = 460, /* width of the time axis */
	ROW = 21,
	BAR = 14,
	HEADING = 30,
	TITLE = 28,
	GAP = 14,
	LEGEND = 56,
	AXIS = 24,
};

struct picture {
	int64_t end;
	int left, right; /* of the bars */
	int top, bottom; /* of the designs */
	int width, height;
};

static double x_of(const struct picture *p, int64_t time)
{
	return p->left + (double)BARS * (double)time / (double)p->end;
}

/* The picture has a background of its own, light or dark as its reader prefers, so that it can be read
 * on any page. Bars are of middle lightness, with a contrast of 3 or more to both; they differ by their
 * pattern, too. */
static const char style[] =
	"<style>\n"
	".paper { fill: #fff }\n"
	"text { font: 13px sans-serif; fill: #333 }\n"
	"@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .paper { fill: #0d1117 } }\n"
	".heading { font-weight: bold; font-size: 16px }\n"
	".design { font-weight: bold; font-size: 14px }\n"
	".tick { font-size: 11px; text-anchor: middle }\n"
	".result { font-variant-numeric: tabular-nums }\n"
	".bad { fill: #d6453d; font-weight: bold }\n"
	".grid { stroke: #808080; stroke-opacity: .35; stroke-width: 1 }\n"
	".writes { fill: url(#hatch); stroke: #3c7fd0; stroke-width: 1.5 }\n"
	".reads { fill: #2e9060; stroke: #2e9060; stroke-width: 1.5 }\n"
	".waits { fill: url(#dots); stroke: #c8701e; stroke-width: 1.5; stroke-dasharray: 3 3 }\n"
	"@media print { .paper { fill: #fff } text { fill: #000 } .bad { fill: #000 } }\n"
	"</style>\n"
	"<defs>\n"
	"<pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
	"patternTransform=\"rotate(45)\">"
	"<rect width=\"6\" height=\"6\" fill=\"#3c7fd0\" fill-opacity=\".25\"/>"
	"<rect width=\"3\" height=\"6\" fill=\"#3c7fd0\"/></pattern>\n"
	"<pattern id=\"dots\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\">"
	"<circle cx=\"3.5\" cy=\"3.5\" r=\"1.2\" fill=\"#c8701e\"/></pattern>\n"
	"</defs>\n";

static const char *const classes[] = {
	[TIMELINE_WAITS] = "waits", [TIMELINE_WRITES] = "writes", [TIMELINE_READS] = "reads"
};

static void svg_head(struct buf *out, const struct picture *p, const struct timeline *t)
{
	buf_printf(out,
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		   "viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"title desc\">\n"
		   "<title id=\"title\">Who runs and who waits</title>\n"
		   "<desc id=\"desc\">A flush writes %d stat%s of %d CPU slot%s, %" PRId64
		   " units of time each; reading a word takes %" PRId64
		   ". For each design, a bar for the flusher and for each reader.</desc>\n",
		   p->width, p->height, p->width, p->height, t->stats, t->stats == 1 ? "" : "s",
		   t->cpus, t->cpus == 1 ? "" : "s", t->write, t->read);
	buf_str(out, style);
	buf_printf(out,
		   "<rect class=\"paper\" x=\"0\" y=\"0\" width=\"%d\" height=\"%d\"/>\n"
		   "<text class=\"heading\" x=\"%d\" y=\"%d\">Who runs and who waits: %d stat%s "
		   "updated on "
		   "%d CPU slot%s</text>\n",
		   p->width, p->height, MARGIN, MARGIN + 16, t->stats, t->stats == 1 ? "" : "s",
		   t->cpus, t->cpus == 1 ? "" : "s");
}

static void svg_legend(struct buf *out, const struct picture *p)
{
	const int top = MARGIN + HEADING;
	int x = p->left;

	for (int k = 0; k < 3; k++) {
		static const int order[] = { TIMELINE_WRITES, TIMELINE_READS, TIMELINE_WAITS };
		const char *name = classes[order[k]];

		buf_printf(out,
			   "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"36\" height=\"%d\"/>"
			   "<text x=\"%d\" y=\"%d\">%s</text>\n",
			   name, x, top, BAR, x + 44, top + BAR - 2, name);
		x += 120;
	}
	buf_printf(out, "<text x=\"%d\" y=\"%d\">" PUBLISHED "</text>\n", MARGIN, top + BAR + 20);
}

/* 1, 2 or 5 times a power of ten: at most 10 steps to the end. */
static int64_t tick_step(int64_t end)
{
	int64_t power = 1;

	while (end > 100 * power)
		power *= 10;
	if (end > 50 * power)
		return 10 * power;
	if (end > 20 * power)
		return 5 * power;
	return end > 10 * power ? 2 * power : power;
}

static void svg_axis(struct buf *out, const struct picture *p)
{
	const int64_t step = tick_step(p->end);

	buf_printf(out, "<text x=\"%d\" y=\"%d\">time</text>\n", 2 * MARGIN, p->top - 6);

	for (int64_t time = 0; time <= p->end; time += step) {
		double x = x_of(p, time);

		buf_printf(out,
			   "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>", x,
			   p->top, x, p->bottom);
		buf_printf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%d\">%" PRId64 "</text>", x,
			   p->top - 6, time);
		buf_printf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%d\">%" PRId64 "</text>\n", x,
			   p->bottom + 14, time);
	}
}

static void svg_actor(struct buf *out, const struct picture *p, int y, const struct label *l,
		      const struct timeline_actor *a)
{
	buf_printf(out, "<text x=\"%d\" y=\"%d\">%s</text>\n", 2 * MARGIN, y + BAR - 2, l->name);
	for (int i = 0; i < a->spans; i++) {
		const struct timeline_span *s = &a->span[i];
		const char *what = classes[s->kind];
		double from = x_of(p, s->from), to = x_of(p, s->to);

		/* Lines have a width: what is beside must not be under them. */
		buf_printf(out,
			   "<rect class=\"%s\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\">"
			   "<title>%s %s, %" PRId64 " to %" PRId64 "</title></rect>\n",
			   what, from + 0.75, y, to - from > 2 ? to - from - 1.5 : 0.5, BAR,
			   l->name, what, s->from, s->to);
	}
	buf_printf(out, "<text class=\"result\" x=\"%d\" y=\"%d\">%s", p->right + MARGIN,
		   y + BAR - 2, l->result);
	if (a->waited)
		buf_printf(out, ", waited %" PRId64, a->waited);
	if (*l->verdict)
		buf_printf(out, " <tspan class=\"bad\">%s</tspan>", l->verdict);
	buf_str(out, "</text>\n");
}

void timeline_svg(struct buf *out, const struct timeline *t,
		  const struct timeline_run runs[TIMELINE_DESIGNS])
{
	const struct extent e = extent(t, runs);
	const int rows = 1 + t->readers;
	struct picture p = {
		.end = e.end,
		.left = 2 * MARGIN + LETTER * (e.name + 2),
		.top = MARGIN + HEADING + LEGEND + AXIS,
	};
	int y = p.top;

	p.right = p.left + BARS;
	p.bottom = p.top + TIMELINE_DESIGNS * (TITLE + rows * ROW) + (TIMELINE_DESIGNS - 1) * GAP;
	p.width = p.right + LETTER * (e.text + e.waited) + 2 * MARGIN;
	p.height = p.bottom + AXIS;
	svg_head(out, &p, t);
	svg_legend(out, &p);
	svg_axis(out, &p);
	for (int d = 0; d < TIMELINE_DESIGNS; d++) {
		buf_printf(out, "<g>\n<text class=\"design\" x=\"%d\" y=\"%d\">%s</text>\n", MARGIN,
			   y + 20, timeline_names[d]);
		y += TITLE;
		for (int i = 0; i < rows; i++, y += ROW) {
			struct label l;

			label(&l, t, runs, d, i);
			svg_actor(out, &p, y, &l, &runs[d].actor[i]);
		}
		y += GAP;
		buf_str(out, "</g>\n");
	}
	buf_str(out, "</svg>\n");
}
