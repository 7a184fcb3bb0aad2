/* SPDX-License-Identifier: MIT */
/* What views make of histograms: summaries, and the bounds that /metrics shows. */
#include "view/histogram.h"

#include <string.h>

#include "tap.h"

static struct freshet_histogram made(unsigned precision, unsigned lowest, unsigned highest)
{
	return (struct freshet_histogram){ .precision = (uint8_t)precision,
					   .lowest = (uint8_t)lowest,
					   .highest = (uint8_t)highest,
					   .buckets = (uint16_t)freshet_buckets(precision, lowest,
										highest) };
}

TEST(summary)
{
	struct freshet_histogram h = made(2, 0, 10);
	uint64_t words[256] = { 0 };
	struct histogram_summary s;

	histogram_summary(&h, words, &s);
	EXPECT_EQ(s.count, 0);
	EXPECT_EQ(s.max, 0);
	/* 98 of value 3, one of 100 and one that is beyond */
	words[3] = 98;
	for (unsigned i = 0; i < h.buckets; i++)
		if (freshet_bucket_upper(&h, i) >= 100) {
			words[i] = 1;
			break;
		}
	words[h.buckets - 1] = 1;
	words[h.buckets] = 98 * 3 + 100 + 5000;
	histogram_summary(&h, words, &s);
	EXPECT_EQ(s.count, 100);
	EXPECT_EQ(s.sum, 5394);
	EXPECT(s.mean > 53.93 && s.mean < 53.95);
	EXPECT_EQ(s.p50, 3);
	EXPECT_EQ(s.p90, 3);
	EXPECT_EQ(s.p99, 111);
	EXPECT_EQ(s.max, UINT64_MAX);
}

/* Of every definition that there can be: few enough, rising, exact, and up to the last finite one. */
TEST(bounds_of_all_definitions)
{
	unsigned definitions = 0;

	for (unsigned p = 0; p <= 6; p++) {
		for (unsigned low = 0; low < 63; low++) {
			for (unsigned high = low + p + 1; high <= 63; high++) {
				struct freshet_histogram h = made(p, low, high);
				struct histogram_bounds b;
				uint64_t before = 0;

				histogram_bounds(&h, &b);
				definitions++;
				REQUIRE(b.count >= 1 && b.count <= HISTOGRAM_BOUNDS_MAX);
				for (unsigned i = 0; i < b.count; i++) {
					unsigned end = b.bound[i].end;

					REQUIRE(end >= 1 && end < h.buckets);
					/* what is at or below the bound is in those buckets, and
					 * nothing else is */
					REQUIRE(freshet_bucket_upper(&h, end - 1) ==
						b.bound[i].upper);
					REQUIRE(i == 0 || b.bound[i].upper > before);
					before = b.bound[i].upper;
				}
				REQUIRE(before == (1ull << high) - 1);
			}
		}
	}
	EXPECT(definitions > 10000);
}

/* A coarse one has all its own bounds, a fine one the powers of two. */
TEST(bounds_of_some)
{
	static const uint64_t wanted[] = { 0, 1, 2, 3, 5, 7, 11, 15 };
	struct freshet_histogram h = made(1, 0, 4);
	struct histogram_bounds b;

	histogram_bounds(&h, &b);
	EXPECT_EQ(b.count, 8);
	for (unsigned i = 0; i < 8; i++)
		EXPECT_EQ(b.bound[i].upper, wanted[i]);
	h = made(6, 10, 40);
	histogram_bounds(&h, &b);
	EXPECT_EQ(b.count, 31);
	for (unsigned i = 0; i < b.count; i++)
		EXPECT_EQ(b.bound[i].upper, (1ull << (10 + i)) - 1);
	h = made(0, 0, 63);
	histogram_bounds(&h, &b);
	EXPECT_EQ(b.count, 32);
	EXPECT_EQ(b.bound[1].upper - b.bound[0].upper, 6); /* every second one: 2^3 - 2^1 */
}

TAP_MAIN
