/* SPDX-License-Identifier: MIT */
/* Implements top_columns.h. */
#include "view/top_columns.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "view/format.h"

void top_columns_host(const struct freshet_stat *stats, size_t nstats, struct top_columns *ret)
{
	static const char *const keys[TOP_HOST_COLUMNS] = {
		[TOP_USAGE] = "usage_usec",   [TOP_USER] = "user_usec",
		[TOP_SYSTEM] = "system_usec", [TOP_THROTTLED] = "throttled_usec",
		[TOP_TIME] = "usage_usec",
	};
	static const struct top_column columns[TOP_HOST_COLUMNS] = {
		[TOP_USAGE] = { .title = "%CPU", .key = "cpu", .width = 7 },
		[TOP_USER] = { .title = "%USER", .key = "user", .width = 8, .from = 50 },
		[TOP_SYSTEM] = { .title = "%SYS", .key = "system", .width = 8, .from = 50 },
		[TOP_THROTTLED] = { .title = "%THR", .key = "throttled", .width = 8, .from = 70 },
		[TOP_TIME] = { .title = "TIME",
			       .key = "time",
			       .kind = TOP_TOTAL,
			       .width = 10,
			       .from = 34 },
	};

	ret->host = true;
	ret->count = TOP_HOST_COLUMNS;
	memcpy(ret->column, columns, sizeof(columns));
	for (unsigned c = 0; c < TOP_HOST_COLUMNS; c++) {
		ret->column[c].unit = FRESHET_NANOSECONDS;
		ret->column[c].value = -1;
		for (size_t i = 0; i < nstats; i++)
			if (strcmp(stats[i].family, "cpu") == 0 &&
			    strcmp(stats[i].key, keys[c]) == 0 &&
			    stats[i].unit == FRESHET_NANOSECONDS)
				ret->column[c].value = (int)i;
	}
}

/* How often a name occurs among all. */
static unsigned times(const char *name, const struct freshet_stat *stats, size_t nstats,
		      const struct freshet_histogram *histograms, size_t nhistograms)
{
	unsigned n = 0;

	for (size_t i = 0; i < nstats; i++)
		n += strcmp(stats[i].name, name) == 0;
	for (size_t i = 0; i < nhistograms; i++)
		n += strcmp(histograms[i].name, name) == 0;
	return n;
}

/* Names come from outside: what is no plain character is not shown. */
static void name_column(struct top_column *c, const char *family, const char *name, bool both)
{
	const char *before = "", *behind = "";
	char title[32];

	snprintf(c->key, sizeof(c->key), "%.18s%s%.18s", both ? family : "", both ? "." : "", name);
	for (char *p = c->key; *p; p++)
		if (*p <= ' ' || *p > '~')
			*p = '?';
	snprintf(title, sizeof(title), "%.24s", c->key);
	for (char *p = title; *p; p++)
		if (*p >= 'a' && *p <= 'z')
			*p -= 'a' - 'A';
	if (c->kind == TOP_PERCENT)
		before = "%";
	else if (c->kind == TOP_P99)
		before = "P99 ";
	else if (c->kind == TOP_RATE)
		behind = c->unit == FRESHET_BYTES ? " B/s" : "/s";
	snprintf(c->title, sizeof(c->title), "%s%s%s", before, title, behind);
	c->width = (int)strlen(c->title) + 3; /* and the arrow */
	if (c->width < 9)
		c->width = 9;
}

void top_columns_program(const struct freshet_stat *stats, size_t nstats,
			 const struct freshet_histogram *histograms, size_t nhistograms,
			 struct top_columns *ret)
{
	ret->host = false;
	ret->count = 0;
	for (size_t i = 0; i < nstats; i++) {
		struct top_column *c = &ret->column[ret->count++];
		bool both = times(stats[i].name, stats, nstats, histograms, nhistograms) > 1;

		*c = (struct top_column){ .value = (int)i, .unit = stats[i].unit };
		if (stats[i].kind == FRESHET_GAUGE)
			c->kind = TOP_VALUE;
		else
			c->kind = c->unit == FRESHET_NANOSECONDS ? TOP_PERCENT : TOP_RATE;
		name_column(c, stats[i].family, stats[i].name, both);
	}
	for (size_t i = 0; i < nhistograms; i++) {
		struct top_column *c = &ret->column[ret->count++];
		const struct freshet_histogram *h = &histograms[i];
		bool both = times(h->name, stats, nstats, histograms, nhistograms) > 1;

		*c = (struct top_column){
			.kind = TOP_P99, .value = h->word, .unit = h->unit, .histogram = *h
		};
		name_column(c, h->family, h->name, both);
	}
}

int top_columns_find(const struct top_columns *columns, const char *key)
{
	if (strcmp(key, "name") == 0)
		return TOP_BY_NAME;
	for (unsigned c = 0; c < columns->count; c++)
		if (strcmp(columns->column[c].key, key) == 0)
			return (int)c;
	return -ENOENT;
}

void top_columns_text(const struct top_column *column, double number, uint64_t value, char *buf,
		      size_t size)
{
	bool time = column->unit == FRESHET_NANOSECONDS;

	if (isnan(number))
		snprintf(buf, size, "-");
	else if (column->kind == TOP_PERCENT)
		format_percent(number, buf, size);
	else if (column->kind == TOP_TOTAL)
		format_time(value, buf, size);
	else if (column->kind == TOP_P99 && value == UINT64_MAX)
		snprintf(buf, size, "inf");
	else if (time && number >= 0 && column->kind != TOP_RATE)
		format_duration(value, buf, size);
	else
		format_count(number, buf, size);
}
