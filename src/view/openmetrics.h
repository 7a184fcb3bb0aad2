/* SPDX-License-Identifier: MIT */
/*
 * Metrics as Prometheus reads them: text format 0.0.4 and OpenMetrics 1.0.
 *
 * Pure: from a snapshot's entries into a buffer. Nothing here ends the text: OpenMetrics wants
 * metrics_end() once, after the last family.
 *
 * A group's label is cgroup="/a/b", or group="/a/b" of a program's. Names are bytes, labels are UTF-8: bytes that are none become
 * U+FFFD, and such a group (and all below it) gets a second label, id="its id", so that two groups
 * are never one series. No other group has that label. Groups whose path does not fit into
 * FRESHET_PATH_MAX are left out: labels of deep trees would add up to the square of the depth.
 */
#ifndef FRESHET_OPENMETRICS_H
#define FRESHET_OPENMETRICS_H

#include <stdbool.h>
#include <stddef.h>

#include <freshet/freshet.h>

#include "base/buf.h"

enum metrics_format { METRICS_TEXT, METRICS_OPENMETRICS };

enum metrics_type { METRICS_COUNTER, METRICS_GAUGE, METRICS_HISTOGRAM, METRICS_INFO };

/* Whose numbers they are, and how they are called. */
struct metrics_schema {
	const char *prefix; /* "cgroup" */
	const char *label;  /* "cgroup" */
	const struct freshet_stat *stats;
	size_t nstats;
	const struct freshet_histogram *histograms;
	size_t nhistograms;
	uint64_t without;            /* bit per column that is not to be shown */
	uint64_t without_histograms; /* bit per histogram */
};

/*
 * Families of one subtree: every column that some group of it has, named
 * <prefix>_<family>_<name>[_<unit>][_total], then histograms. entries is the whole snapshot (parents
 * are looked up), at the subtree's first entry. Errors are in out->error.
 */
void metrics_groups(struct buf *out, enum metrics_format format,
		    const struct metrics_schema *schema, const struct freshet_entry *entries,
		    size_t at);

/* "<prefix>_<family>_<name>[_<unit>]", with its NUL. */
void metrics_name(struct buf *out, const char *prefix, const char *family, const char *name,
		  enum freshet_unit unit);

/* The lines before a family's samples. name is without _total, _info; unit may be NULL. */
void metrics_family(struct buf *out, enum metrics_format format, const char *name,
		    enum metrics_type type, const char *unit, const char *help);

/* One label's value, escaped, without the quotes. *exact becomes false when bytes were replaced. */
void metrics_escape(struct buf *out, const char *value, bool *exact);

void metrics_end(struct buf *out, enum metrics_format format);

#endif
