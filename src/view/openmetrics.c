/* SPDX-License-Identifier: MIT */
/*
 * Implements openmetrics.h. Written for a scrape of thousands of groups: each group's labels are
 * escaped once and then copied into every family.
 */
#include "view/openmetrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

static const char *const unit_names[] = {
	[FRESHET_COUNT] = NULL,
	[FRESHET_NANOSECONDS] = "seconds",
	[FRESHET_BYTES] = "bytes",
};

void metrics_escape(struct buf *out, const char *value, bool *exact)
{
	size_t len = strlen(value);

	for (size_t i = 0, n; i < len; i += n) {
		n = utf8_char(value + i, len - i);
		if (!n) {
			buf_str(out, UTF8_REPLACEMENT);
			*exact = false;
			n = 1;
		} else if (value[i] == '\n') {
			buf_str(out, "\\n");
		} else {
			if (value[i] == '"' || value[i] == '\\')
				buf_char(out, '\\');
			buf_add(out, value + i, n);
		}
	}
}

/* HELP texts: text format escapes backslash and newline, OpenMetrics the quote too. */
static void add_help(struct buf *out, enum metrics_format format, const char *help)
{
	for (const char *p = help; *p; p++) {
		if (*p == '\n') {
			buf_str(out, "\\n");
			continue;
		}
		if (*p == '\\' || (*p == '"' && format == METRICS_OPENMETRICS))
			buf_char(out, '\\');
		buf_char(out, *p);
	}
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
};

static void labels_free(struct labels *l)
{
	buf_free(&l->text);
	free(l->label);
}

#define LABEL_OPEN "{cgroup=\""

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
		buf_add(scratch, l->text.data + parent->begin + strlen(LABEL_OPEN), parent->path);
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
		buf_str(&l->text, LABEL_OPEN);
		if (parent) {
			add_child_path(l, parent, e->name, &exact, &scratch);
			label->raw = parent->raw + 1 + (uint32_t)strlen(e->name);
		} else {
			label->raw = add_path(&l->text, entries, at, &exact);
		}
		label->path = (uint32_t)(l->text.len - label->begin - strlen(LABEL_OPEN));
		label->exact = exact;
		if (!label->path)
			buf_char(&l->text, '/');
		if (!exact) {
			buf_str(&l->text, "\",id=\"");
			buf_u64(&l->text, e->id);
		}
		buf_str(&l->text, "\"} ");
		label->length = (uint32_t)(l->text.len - label->begin);
	}
	if (scratch.error)
		l->text.error = scratch.error;
	buf_free(&scratch);
	return l->text.error;
}

static void add_value(struct buf *out, const struct freshet_stat *stat, uint64_t value)
{
	if (stat->kind == FRESHET_GAUGE && (int64_t)value < 0) {
		buf_char(out, '-');
		value = 0 - value;
	}
	if (stat->unit == FRESHET_NANOSECONDS)
		buf_seconds(out, value);
	else
		buf_u64(out, value);
}

static void add_column(struct buf *out, enum metrics_format format, const char *prefix,
		       const struct freshet_stat *stat, unsigned column, const struct labels *l,
		       const struct freshet_entry *entries, size_t count)
{
	bool counter = stat->kind == FRESHET_COUNTER;
	const char *unit = stat->unit <= FRESHET_BYTES ? unit_names[stat->unit] : NULL;
	struct buf name _cleanup_(buf_free) = BUF_INIT;

	buf_printf(&name, "%s_%s_%s%s%s", prefix, stat->family, stat->name, unit ? "_" : "",
		   unit ? unit : "");
	buf_char(&name, '\0');
	if (name.error) {
		out->error = name.error;
		return;
	}
	metrics_family(out, format, name.data, counter ? METRICS_COUNTER : METRICS_GAUGE, unit,
		       stat->help);
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

void metrics_groups(struct buf *out, enum metrics_format format, const char *prefix,
		    const struct freshet_stat *stats, size_t nstats,
		    const struct freshet_entry *entries, size_t at)
{
	struct labels labels _cleanup_(labels_free) = { .text = BUF_INIT };
	size_t count = entries[at].size;
	uint64_t present = 0;
	int r = labels_build(&labels, entries, at);

	if (r < 0) {
		out->error = r;
		return;
	}
	for (size_t i = 0; i < count; i++)
		if (labels.label[i].length)
			present |= entries[at + i].present;
	for (unsigned column = 0; column < nstats; column++)
		if (present >> column & 1)
			add_column(out, format, prefix, &stats[column], column, &labels,
				   entries + at, count);
}
