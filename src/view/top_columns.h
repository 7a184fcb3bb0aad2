/* SPDX-License-Identifier: MIT */
/* The columns of `freshet top`: for a host's CPU numbers the usual ones, for any other segment its own
 * numbers in their order. Pure. */
#ifndef FRESHET_TOP_COLUMNS_H
#define FRESHET_TOP_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <freshet/freshet.h>

enum top_kind {
	TOP_PERCENT, /* time a time, in per cent: of one CPU, if it is CPU time */
	TOP_RATE,    /* a second */
	TOP_VALUE,   /* as it is */
	TOP_TOTAL,   /* time so far */
	TOP_P99,     /* of a histogram, of what was observed between two passes */
};

struct top_column {
	char title[40];
	char key[40]; /* for --sort */
	enum top_kind kind;
	enum freshet_unit unit;
	int value; /* index into an entry's values: of the number, of the first bucket; -1: nowhere */
	struct freshet_histogram histogram; /* of TOP_P99 */
	int width;                          /* on the screen, with the blanks before it */
	int from; /* shown in terminals of at least this many columns; 0: in all */
};

#define TOP_COLUMNS_MAX (FRESHET_MAX_STATS + FRESHET_MAX_HISTOGRAMS)

/* Where they are in a host's columns. */
enum { TOP_USAGE, TOP_USER, TOP_SYSTEM, TOP_THROTTLED, TOP_TIME, TOP_HOST_COLUMNS };

struct top_columns {
	bool host;
	unsigned count; /* at least 1 */
	struct top_column column[TOP_COLUMNS_MAX];
};

/* host: what is not there has a column all the same. Else nstats + nhistograms are not 0. */
void top_columns_host(const struct freshet_stat *stats, size_t nstats, struct top_columns *ret);
void top_columns_program(const struct freshet_stat *stats, size_t nstats,
			 const struct freshet_histogram *histograms, size_t nhistograms,
			 struct top_columns *ret);

#define TOP_BY_NAME (-1)

/* The column that is called so, TOP_BY_NAME for "name", or -ENOENT. */
int top_columns_find(const struct top_columns *columns, const char *key);

/* A number as the column shows it; number is NaN where there is none. size at least 32. */
void top_columns_text(const struct top_column *column, double number, uint64_t value, char *buf,
		      size_t size);

#endif
