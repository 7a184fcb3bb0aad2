/* SPDX-License-Identifier: MIT */
/*
 * Implements openmetrics.h. Written for a scrape of thousands of groups: each group's labels are
 * escaped once and then copied into every family.
 */
#include "view/openmetrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "view/histogram.h"

static const char *const unit_names[] = {
	[FRESHET_COUNT] = NULL,
	[FRESHET_NANOSECONDS] = "seconds",
	[FRESHET_BYTES] = "bytes",
};

/* *exact becomes false when something was replaced. */
static void escape(struct buf *out, const char *text, bool quotes, bool *exact)
{
	size_t len = strlen(text);

	for (size_t i = 0, n; i < len; i += n) {
		n = utf8_char(text + i, len - i);
		if (!n) {
			buf_str(out, UTF8_REPLACEMENT);
			*exact = false;
			n = 1;
		} else if (text[i] == '\n') {
			buf_str(out, "\\n");
		} else {
			if (text[i] == '\\' || (text[i] == '"' && quotes))
				buf_char(out, '\\');
			buf_add(out, text + i, n);
		}
	}
}

void metrics_escape(struct buf *out, const char *value, bool *exact)
{
	escape(out, value, true, exact);
}

/* HELP texts: text format escapes backslash and newline, OpenMetrics the quote too. */
static void add_help(struct buf *out, enum metrics_format format, const char *help)
{
	bool exact;

	escape(out, help, format == METRICS_OPENMETRICS, &exact);
}

void metrics_family(struct buf *out, enum metrics_format format, const char *name,
		    enum metrics_type type, const char *unit, const char *help)
{
	static const char *const types[] = { "counter", "gauge", "histogram", "info" };
	const char *type_name = types[type], *suffix = "";

	if (format == METRICS_TEXT) {
		if (type == METRICS_COUNTER)
			suffix = "_total";
		if (type == METRICS_INFO) {
			suffix = "_info";
			type_name = "gauge";
		}
	}
	buf_str(out, "# HELP ");
	buf_str(out, name);
	buf_str(out, suffix);
	buf_char(out, ' ');
	add_help(out, format, help);
	buf_str(out, "\n# TYPE ");
	buf_str(out, name);
	buf_str(out, suffix);
	buf_char(out, ' ');
	buf_str(out, type_name);
	buf_char(out, '\n');
	if (format == METRICS_OPENMETRICS && unit) {
		buf_str(out, "# UNIT ");
		buf_str(out, name);
		buf_char(out, ' ');
		buf_str(out, unit);
		buf_char(out, '\n');
	}
}

void metrics_end(struct buf *out, enum metrics_format format)
{
	if (format == METRICS_OPENMETRICS)
		buf_str(out, "# EOF\n");
}

/* What stands between a sample's name and its value, for an entry of the subtree. */
struct label {
	size_t begin;    /* in the text */
	uint32_t length; /* 0: there is none, the path does not fit into FRESHET_PATH_MAX */
	uint32_t path;   /* length of the escaped path within, without what encloses it */
	uint32_t raw;    /* of the path itself */
	bool exact;      /* no byte of the path was replaced */
};

struct labels {
	struct buf text;
	struct label *label;
	char open[16]; /* {cgroup=" */
};

static void labels_free(struct labels *l)
{
	buf_free(&l->text);
	free(l->label);
}

#define LABEL_CLOSE "} "

/* Nothing for the root. Gives the length of what was not escaped. */
static uint32_t add_path(struct buf *out, const struct freshet_entry *entries, size_t i,
			 bool *exact)
{
	uint32_t len;

	if (i == 0)
		return 0;
	len = add_path(out, entries, entries[i].parent, exact);
	buf_char(out, '/');
	metrics_escape(out, entries[i].name, exact);
	return len + 1 + (uint32_t)strlen(entries[i].name);
}

/* The path of an entry whose parent's label stands in the text already. */
static void add_child_path(struct labels *l, const struct label *parent, const char *name,
			   bool *exact, struct buf *scratch)
{
	/* The text may move while it grows, so it cannot be copied from itself. */
	buf_clear(scratch);
	if (!l->text.error)
		buf_add(scratch, l->text.data + parent->begin + strlen(l->open), parent->path);
	buf_add(&l->text, scratch->data, scratch->len);
	*exact = parent->exact;
	buf_char(&l->text, '/');
	metrics_escape(&l->text, name, exact);
}

static int labels_build(struct labels *l, const struct freshet_entry *entries, size_t at)
{
	size_t count = entries[at].size;
	struct buf scratch = BUF_INIT;

	l->label = calloc(count, sizeof(*l->label));
	if (!l->label)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct freshet_entry *e = &entries[at + i];
		const struct label *parent = i ? &l->label[e->parent - at] : NULL;
		struct label *label = &l->label[i];
		bool exact = true;

		if (parent &&
		    (!parent->length || parent->raw + 1 + strlen(e->name) >= FRESHET_PATH_MAX))
			continue;
		label->begin = l->text.len;
		buf_str(&l->text, l->open);
		if (parent) {
			add_child_path(l, parent, e->name, &exact, &scratch);
			label->raw = parent->raw + 1 + (uint32_t)strlen(e->name);
		} else {
			label->raw = add_path(&l->text, entries, at, &exact);
		}
		label->path = (uint32_t)(l->text.len - label->begin - strlen(l->open));
		label->exact = exact;
		if (!label->path)
			buf_char(&l->text, '/');
		if (!exact) {
			buf_str(&l->text, "\",id=\"");
			buf_u64(&l->text, e->id);
		}
		buf_str(&l->text, "\"" LABEL_CLOSE);
		label->length = (uint32_t)(l->text.len - label->begin);
	}
	if (scratch.error)
		l->text.error = scratch.error;
	buf_free(&scratch);
	return l->text.error;
}

static void add_number(struct buf *out, enum freshet_unit unit, uint64_t value)
{
	if (unit == FRESHET_NANOSECONDS)
		buf_seconds(out, value);
	else
		buf_u64(out, value);
}

static void add_value(struct buf *out, const struct freshet_stat *stat, uint64_t value)
{
	if (stat->kind == FRESHET_GAUGE && (int64_t)value < 0) {
		buf_char(out, '-');
		value = 0 - value;
	}
	add_number(out, stat->unit, value);
}

static const char *unit_name(enum freshet_unit unit)
{
	return unit <= FRESHET_BYTES ? unit_names[unit] : NULL;
}

void metrics_name(struct buf *out, const char *prefix, const char *family, const char *name,
		  enum freshet_unit unit)
{
	const char *suffix = unit_name(unit);

	buf_printf(out, "%s_%s_%s%s%s", prefix, family, name, suffix ? "_" : "",
		   suffix ? suffix : "");
	buf_char(out, '\0');
}

static void add_column(struct buf *out, enum metrics_format format,
		       const struct metrics_schema *schema, unsigned column, const struct labels *l,
		       const struct freshet_entry *entries, size_t count)
{
	const struct freshet_stat *stat = &schema->stats[column];
	bool counter = stat->kind == FRESHET_COUNTER;
	struct buf name _cleanup_(buf_free) = BUF_INIT;

	metrics_name(&name, schema->prefix, stat->family, stat->name, stat->unit);
	if (name.error) {
		out->error = name.error;
		return;
	}
	metrics_family(out, format, name.data, counter ? METRICS_COUNTER : METRICS_GAUGE,
		       unit_name(stat->unit), stat->help);
	name.len--;
	if (counter)
		buf_str(&name, "_total");
	if (name.error)
		out->error = name.error;
	for (size_t i = 0; i < count && !out->error; i++) {
		if (!(entries[i].present >> column & 1) || !l->label[i].length)
			continue;
		buf_add(out, name.data, name.len);
		buf_add(out, l->text.data + l->label[i].begin, l->label[i].length);
		add_value(out, stat, entries[i].values[column]);
		buf_char(out, '\n');
	}
}

/* le="..." of each bound and of +Inf, with what encloses it, one after the other. OpenMetrics wants a
 * float, with a point. */
struct bounds {
	struct histogram_bounds at;
	struct buf text;
	size_t end[HISTOGRAM_BOUNDS_MAX + 1];
};

static void bounds_build(struct bounds *b, const struct freshet_histogram *h)
{
	histogram_bounds(h, &b->at);
	for (unsigned i = 0; i <= b->at.count; i++) {
		size_t begin;

		buf_str(&b->text, ",le=\"");
		begin = b->text.len;
		if (i == b->at.count)
			buf_str(&b->text, "+Inf");
		else
			add_number(&b->text, h->unit, b->at.bound[i].upper);
		if (i < b->at.count && !b->text.error &&
		    !memchr(b->text.data + begin, '.', b->text.len - begin))
			buf_str(&b->text, ".0");
		buf_str(&b->text, "\"" LABEL_CLOSE);
		b->end[i] = b->text.len;
	}
}

/* The samples of one group; label is without its end. */
static void add_distribution(struct buf *out, const char *name, const struct bounds *b,
			     const struct freshet_histogram *h, const char *label, size_t length,
			     const uint64_t *words)
{
	static const char *const totals[] = { "_count", "_sum" };
	size_t name_length = strlen(name);
	uint64_t count = 0;
	unsigned bucket = 0;

	for (unsigned i = 0; i <= b->at.count; i++) {
		unsigned end = i < b->at.count ? b->at.bound[i].end : h->buckets;
		size_t begin = i ? b->end[i - 1] : 0;

		while (bucket < end)
			count += words[bucket++];
		buf_add(out, name, name_length);
		buf_str(out, "_bucket");
		buf_add(out, label, length);
		buf_add(out, b->text.data + begin, b->end[i] - begin);
		buf_u64(out, count);
		buf_char(out, '\n');
	}
	for (unsigned i = 0; i < 2; i++) {
		buf_add(out, name, name_length);
		buf_str(out, totals[i]);
		buf_add(out, label, length);
		buf_str(out, LABEL_CLOSE);
		if (i == 0)
			buf_u64(out, count);
		else
			add_number(out, h->unit, words[h->buckets]);
		buf_char(out, '\n');
	}
}

static void add_histogram(struct buf *out, enum metrics_format format,
			  const struct metrics_schema *schema, const struct freshet_histogram *h,
			  const struct labels *l, const struct freshet_entry *entries, size_t count)
{
	struct buf name _cleanup_(buf_free) = BUF_INIT;
	struct bounds bounds = { .text = BUF_INIT };

	metrics_name(&name, schema->prefix, h->family, h->name, h->unit);
	bounds_build(&bounds, h);
	if (name.error || bounds.text.error) {
		out->error = -ENOMEM;
	} else {
		metrics_family(out, format, name.data, METRICS_HISTOGRAM, unit_name(h->unit),
			       h->help);
		for (size_t i = 0; i < count && !out->error; i++)
			if (l->label[i].length)
				add_distribution(out, name.data, &bounds, h,
						 l->text.data + l->label[i].begin,
						 l->label[i].length - strlen(LABEL_CLOSE),
						 entries[i].values + h->word);
	}
	buf_free(&bounds.text);
}

void metrics_groups(struct buf *out, enum metrics_format format,
		    const struct metrics_schema *schema, const struct freshet_entry *entries,
		    size_t at)
{
	struct labels labels _cleanup_(labels_free) = { .text = { .max = out->max } };
	size_t count = entries[at].size;
	uint64_t present = 0;
	int r;

	snprintf(labels.open, sizeof(labels.open), "{%s=\"", schema->label);
	r = labels_build(&labels, entries, at);
	if (r < 0) {
		out->error = r;
		return;
	}
	for (size_t i = 0; i < count; i++)
		if (labels.label[i].length)
			present |= entries[at + i].present;
	present &= ~schema->without;
	for (unsigned column = 0; column < schema->nstats; column++)
		if (present >> column & 1)
			add_column(out, format, schema, column, &labels, entries + at, count);
	for (size_t i = 0; i < schema->nhistograms && labels.label[0].length; i++)
		if (!(schema->without_histograms >> i & 1))
			add_histogram(out, format, schema, &schema->histograms[i], &labels,
				      entries + at, count);
}
