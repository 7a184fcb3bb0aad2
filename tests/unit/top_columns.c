/* SPDX-License-Identifier: MIT */
/* The columns of top for any segment, and what they show of a program's counters, gauges and
 * histograms from pass to pass. */
#include "view/top_columns.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "tap.h"
#include "view/top_model.h"

enum { REQUESTS, BUSY, SENT, OPEN, OTHER, NSTATS };

static const struct freshet_stat stats[NSTATS] = {
	[REQUESTS] = { "http", "requests", "requests", "", FRESHET_COUNTER, FRESHET_COUNT, 0 },
	[BUSY] = { "http", "busy", "busy_usec", "", FRESHET_COUNTER, FRESHET_NANOSECONDS, 0 },
	[SENT] = { "http", "sent", "sent", "", FRESHET_COUNTER, FRESHET_BYTES, 0 },
	[OPEN] = { "pool", "open", "open", "", FRESHET_GAUGE, FRESHET_COUNT, 0 },
	[OTHER] = { "\x1b[", "requests", "x", "", FRESHET_COUNTER, FRESHET_COUNT, 0 },
};

/* 0 .. 3, 4 5, 6 7, 8 .. 11, 12 .. 15, the rest: 9 buckets */
static const struct freshet_histogram histogram = {
	"http", "latency", "latency", "", FRESHET_NANOSECONDS, 1, 0, 4, 9, NSTATS
};
enum { LATENCY = NSTATS, NCOLUMNS };

static struct top_columns columns;

static const struct top_columns *made(void)
{
	top_columns_program(stats, NSTATS, &histogram, 1, &columns);
	return &columns;
}

TEST(of_a_program)
{
	static const struct {
		const char *title, *key;
		enum top_kind kind;
	} wanted[NCOLUMNS] = {
		[REQUESTS] = { "HTTP.REQUESTS/s", "http.requests", TOP_RATE },
		[BUSY] = { "%BUSY", "busy", TOP_PERCENT },
		[SENT] = { "SENT B/s", "sent", TOP_RATE },
		[OPEN] = { "OPEN", "open", TOP_VALUE },
		[OTHER] = { "?[.REQUESTS/s", "?[.requests", TOP_RATE },
		[LATENCY] = { "P99 LATENCY", "latency", TOP_P99 },
	};
	const struct top_columns *c = made();

	EXPECT_EQ(c->count, NCOLUMNS);
	for (unsigned i = 0; i < NCOLUMNS; i++) {
		EXPECT(!strcmp(c->column[i].title, wanted[i].title), "%s", c->column[i].title);
		EXPECT(!strcmp(c->column[i].key, wanted[i].key), "%s", c->column[i].key);
		EXPECT_EQ(c->column[i].kind, wanted[i].kind);
		EXPECT(c->column[i].width > (int)strlen(wanted[i].title) + 1);
		EXPECT_EQ(top_columns_find(c, wanted[i].key), i);
	}
	EXPECT_EQ(top_columns_find(c, "name"), TOP_BY_NAME);
	EXPECT_EQ(top_columns_find(c, "requests"), -ENOENT);
}

TEST(of_a_host)
{
	static const struct freshet_stat usage = { "cpu", "usage",         "usage_usec",
						   "",    FRESHET_COUNTER, FRESHET_NANOSECONDS,
						   0 };

	top_columns_host(&usage, 1, &columns);
	EXPECT(columns.host);
	EXPECT_EQ(columns.column[TOP_USAGE].value, 0);
	EXPECT_EQ(columns.column[TOP_TIME].value, 0);
	EXPECT_EQ(columns.column[TOP_USER].value, -1);
	EXPECT_EQ(top_columns_find(&columns, "throttled"), TOP_THROTTLED);
}

/* A pass of one group, `ms` after 10 s; what it shows in a column. */
static struct top_model *model;

static void give(uint64_t ms, const uint64_t *values)
{
	struct freshet_entry e = {
		.id = 1, .size = 1, .name = "", .values = values, .present = 0xf
	};
	struct top_pass pass = { .entries = &e,
				 .columns = made(),
				 .moment = { 3, (10000 + ms) * NSEC_PER_MSEC, 0 },
				 .identity = { 1 } };

	EXPECT_EQ(top_model_pass(model, &pass), 1);
}

static const char *shows(unsigned column)
{
	static char text[32];
	size_t n;
	const struct top_cell *c = &top_model_groups(model, &n)->cell[column];

	top_columns_text(&columns.column[column], c->number, c->value, text, sizeof(text));
	return text;
}

#define EXPECT_SHOWS(column, wanted) \
	EXPECT(!strcmp(shows(column), wanted), "%s: %s", #column, shows(column))

/* Of a live tree: the pass stays the same one while the numbers change. */
TEST(rates_values_and_percentiles)
{
	uint64_t v[NSTATS + 10] = { [REQUESTS] = 1000, [BUSY] = 500, [SENT] = 5, [OPEN] = 3 };

	REQUIRE(top_model_new(&model) == 0);
	v[NSTATS + 8] = 77; /* long ago, all beyond */
	give(0, v);
	EXPECT_SHOWS(REQUESTS, "-");
	EXPECT_SHOWS(OPEN, "3");
	EXPECT_SHOWS(LATENCY, "-");

	v[REQUESTS] += 30;
	v[BUSY] += 100 * NSEC_PER_MSEC;
	v[SENT] += 50000;
	v[OPEN] = (uint64_t)-2;
	v[NSTATS + 1] += 98;
	v[NSTATS + 5] += 2; /* 6 and 7 */
	give(2000, v);
	EXPECT_SHOWS(REQUESTS, "15");
	EXPECT_SHOWS(BUSY, "5.0");
	EXPECT_SHOWS(SENT, "25.0k");
	EXPECT_SHOWS(OPEN, "-2");
	EXPECT_SHOWS(OTHER, "-");
	EXPECT_SHOWS(LATENCY, "7ns");

	v[NSTATS + 8]++;
	v[OPEN] = 12;
	give(2050, v); /* too soon for rates, not for values */
	EXPECT_SHOWS(REQUESTS, "15");
	EXPECT_SHOWS(LATENCY, "7ns");
	EXPECT_SHOWS(OPEN, "12");
	give(2200, v);
	EXPECT_SHOWS(REQUESTS, "0");
	EXPECT_SHOWS(LATENCY, "inf");
	give(3200, v);
	EXPECT_SHOWS(LATENCY, "-"); /* nothing was observed */
	v[NSTATS + 1] = 0;
	v[REQUESTS] = 0;
	give(4200, v);
	EXPECT_SHOWS(REQUESTS, "-");
	EXPECT_SHOWS(LATENCY, "-");
	top_model_free(model);
}

TAP_MAIN
