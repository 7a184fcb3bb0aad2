/* SPDX-License-Identifier: MIT */
/* A small hand-made snapshot for the tests of views. */
#ifndef FRESHET_TEST_VIEW_TREE_H
#define FRESHET_TEST_VIEW_TREE_H

#include <freshet/freshet.h>

enum { USAGE, PERIODS, CURRENT, TREND, NSTATS };

static const struct freshet_stat stats[NSTATS] = {
	[USAGE] = { "cpu", "usage", "usage_usec", "Time \"used\", \\ and\nmore.", FRESHET_COUNTER,
		    FRESHET_NANOSECONDS, 0 },
	[PERIODS] = { "cpu", "periods", "nr_periods", "Periods.", FRESHET_COUNTER, FRESHET_COUNT,
		      0 },
	[CURRENT] = { "memory", "current", "memory.current", "Bytes.", FRESHET_GAUGE, FRESHET_BYTES,
		      1 },
	[TREND] = { "memory", "trend", "trend", "Goes both ways.", FRESHET_GAUGE, FRESHET_COUNT,
		    1 },
};

#define BIT(column) (1ull << (column))

/* /, /a, /a/"\<newline>, /a/<ff>, /a/<ff>/x, /a/<fe>, /b */
static const uint64_t values[][NSTATS] = {
	{ 5000000000, 0, 0, 0 }, { 1500000000, 7, 4096, (uint64_t)-3 },
	{ 1, 0, 0, 0 },          { 2000, 0, 0, 0 },
	{ 3000, 0, 0, 0 },       { 4000, 0, 0, 0 },
	{ 0, 0, 0, 0 },
};

static const struct freshet_entry entries[] = {
	{ { 0, 1 }, 1, 0, 7, 0, "", values[0], BIT(USAGE) },
	{ { 1, 1 },
	  10,
	  0,
	  5,
	  1,
	  "a",
	  values[1],
	  BIT(USAGE) | BIT(PERIODS) | BIT(CURRENT) | BIT(TREND) },
	{ { 2, 1 }, 11, 1, 1, 2, "\"\\\n", values[2], BIT(USAGE) },
	{ { 3, 1 }, 12, 1, 2, 2, "\xff", values[3], BIT(USAGE) },
	{ { 4, 1 }, 13, 3, 1, 3, "x", values[4], BIT(USAGE) },
	{ { 5, 1 }, 14, 1, 1, 2, "\xfe", values[5], BIT(USAGE) },
	{ { 6, 1 }, 20, 0, 1, 1, "b", values[6], 0 },
};

/* The same with a histogram behind the columns: linear up to 3, then two buckets a power of two. */
#define HISTOGRAM                                                                               \
	{                                                                                       \
		"cpu", "delay", "delay_usec", "Waits.", FRESHET_NANOSECONDS, 1, 2, 5, 7, NSTATS \
	}

/* below 4, 8, 12, 16, 24, 32, the rest; the sum: 1 of 7, 2 of 10, 1 of 31, 3 of 1000 */
static const uint64_t observed[NSTATS + 8] = { [USAGE] = 5, [NSTATS] = 0, 1, 2, 0, 0, 1, 3, 3058 };
static const uint64_t unobserved[NSTATS + 8] = { 0 };

static const struct freshet_entry program_entries[] = {
	{ { 0, 1 }, 1, 0, 3, 0, "", observed, BIT(USAGE) },
	{ { 1, 1 }, 2, 0, 1, 1, "a", observed, BIT(USAGE) },
	{ { 2, 1 }, 3, 0, 1, 1, "\xff", unobserved, BIT(USAGE) },
};

/* A chain of names of 255 bytes, as long again as a path can be, and then /b: entries of `chain`. */
#define CHAIN 32u
#define FITS  15u /* names that a path has room for */

static inline void chain_make(struct freshet_entry *chain)
{
	static char name[FRESHET_NAME_MAX + 1];

	for (uint32_t i = 0; i < FRESHET_NAME_MAX; i++)
		name[i] = 'n';
	for (uint32_t i = 0; i <= CHAIN; i++)
		chain[i] = (struct freshet_entry){ { i, 1 },      i + 1,     i ? i - 1 : 0,
						   CHAIN + 1 - i, i,         i ? name : "",
						   values[0],     BIT(USAGE) };
	chain[0].size++;
	chain[CHAIN + 1] = (struct freshet_entry){ { CHAIN + 1, 1 }, CHAIN + 2, 0, 1, 1, "b",
						   values[0],        BIT(USAGE) };
}

/* How often `needle` is in the n bytes of text. */
static inline unsigned times_in(const char *text, size_t n, const char *needle, size_t len)
{
	unsigned times = 0;

	for (size_t i = 0; i + len <= n; i++)
		times += __builtin_memcmp(text + i, needle, len) == 0;
	return times;
}

#endif
