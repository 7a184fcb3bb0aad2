/* SPDX-License-Identifier: MIT */
/*
 * Buckets: freshet_bucket_of() finds the one whose bounds, as freshet_bucket_upper() has them,
 * enclose the value; and quantiles. freshet_bucket_of() is written in two ways, and which one is
 * compiled hangs on __LZCNT__: meson.build makes both, without asking the compiler for the
 * instruction of that name, so that both run everywhere.
 */
#include "tap.h"

#include <string.h>

#include <freshet/freshet.h>

static struct freshet_histogram shape(unsigned precision, unsigned lowest, unsigned highest)
{
	return (struct freshet_histogram){
		.precision = (uint8_t)precision,
		.lowest = (uint8_t)lowest,
		.highest = (uint8_t)highest,
		.buckets = (uint16_t)freshet_buckets(precision, lowest, highest),
	};
}

/* Whether v's bucket encloses it. */
static int right(const struct freshet_histogram *h, uint64_t v)
{
	unsigned i = freshet_bucket_of(h->precision, h->lowest, h->buckets - 1u, v);

	return i < h->buckets && v <= freshet_bucket_upper(h, i) &&
	       (i == 0 || v > freshet_bucket_upper(h, i - 1));
}

#define RIGHT(h, v)                                                                 \
	EXPECT(right(h, v), "precision %u, 2^%u to 2^%u: %#llx in bucket %u of %u", \
	       (h)->precision, (h)->lowest, (h)->highest, (unsigned long long)(v),  \
	       freshet_bucket_of((h)->precision, (h)->lowest, (h)->buckets - 1u, v), (h)->buckets)

TEST(extremes_of_every_shape)
{
	unsigned shapes = 0;

	for (unsigned p = 0; p <= 6; p++) {
		for (unsigned low = 0; low <= 62; low++) {
			for (unsigned high = low + p + 1; high <= 63; high++) {
				struct freshet_histogram h = shape(p, low, high);

				shapes++;
				REQUIRE(h.buckets >= 2);
				for (unsigned k = 0; k < 64; k++) {
					RIGHT(&h, (1ull << k) - 1);
					RIGHT(&h, 1ull << k);
					RIGHT(&h, (1ull << k) + 1);
				}
				RIGHT(&h, UINT64_MAX);
				RIGHT(&h, UINT64_MAX - 1);
			}
		}
	}
	EXPECT_EQ(shapes, 63 * 64 / 2 + 62 * 63 / 2 + 61 * 62 / 2 + 60 * 61 / 2 + 59 * 60 / 2 +
				  58 * 59 / 2 + 57 * 58 / 2);
}

TEST(every_bound)
{
	for (unsigned p = 0; p <= 6; p++) {
		for (unsigned low = 0; low + p + 1 <= 63; low++) {
			struct freshet_histogram h = shape(p, low, 63);

			for (unsigned i = 0; i + 1 < h.buckets; i++) {
				uint64_t upper = freshet_bucket_upper(&h, i);

				RIGHT(&h, upper - 1);
				RIGHT(&h, upper);
				RIGHT(&h, upper + 1);
			}
		}
	}
}

TEST(random_values)
{
	unsigned short seed[3] = { 7, 8, 9 };

	for (int i = 0; i < 1000000; i++) {
		uint64_t v = (uint64_t)nrand48(seed) << 33 ^ (uint64_t)nrand48(seed) << 11 ^
			     (uint64_t)nrand48(seed);
		unsigned p = (unsigned)nrand48(seed) % 7, low = (unsigned)nrand48(seed) % (63 - p);
		struct freshet_histogram h = shape(p, low, 63);

		RIGHT(&h, v >> nrand48(seed) % 64);
	}
}

/* As the header promises: 2^lowest wide, or 1/2^precision of the lower bound. */
TEST(widths)
{
	for (unsigned p = 0; p <= 6; p++) {
		for (unsigned low = 0; low + p + 1 <= 63; low += 7) {
			struct freshet_histogram h = shape(p, low, 63);
			uint64_t lower = 0;

			for (unsigned i = 0; i + 1 < h.buckets; i++) {
				uint64_t upper = freshet_bucket_upper(&h, i), width;

				REQUIRE(upper >= lower, "bucket %u", i);
				width = upper + 1 - lower;
				EXPECT(width <= 1ull << low || width <= lower >> p,
				       "precision %u, from 2^%u: bucket %u, from %llu, width %llu",
				       p, low, i, (unsigned long long)lower,
				       (unsigned long long)width);
				lower = upper + 1;
			}
			EXPECT_EQ(lower, 1ull << 63);
			EXPECT(freshet_bucket_upper(&h, h.buckets - 1u) == UINT64_MAX);
		}
	}
}

TEST(number_of_buckets)
{
	EXPECT_EQ(freshet_buckets(0, 0, 1), 3); /* 0; 1; 2 and more */
	EXPECT_EQ(freshet_buckets(1, 0, 2), 5); /* 0; 1; 2; 3; 4 and more */
	EXPECT_EQ(freshet_buckets(3, 10, 33), 169);
	EXPECT_EQ(freshet_buckets(6, 0, 63), 3713);
	EXPECT_EQ(freshet_buckets(7, 0, 63), 0);
	EXPECT_EQ(freshet_buckets(0, 5, 5), 0);
	EXPECT_EQ(freshet_buckets(0, 6, 5), 0);
	EXPECT_EQ(freshet_buckets(2, 5, 7), 0);
	EXPECT_EQ(freshet_buckets(2, 5, 8), 9);
	EXPECT_EQ(freshet_buckets(0, 0, 64), 0);
	EXPECT_EQ(freshet_buckets(0, UINT32_MAX, 5), 0);
	EXPECT_EQ(freshet_buckets(UINT32_MAX, 0, 5), 0);
}

TEST(quantiles)
{
	struct freshet_histogram h = shape(1, 0, 4);
	uint64_t count[16] = { 0 };

	REQUIRE(h.buckets == 9); /* 0 1 2 3 4-5 6-7 8-11 12-15 16- */
	EXPECT_EQ(freshet_quantile(&h, count, 0.5), 0);
	count[4] = 1;
	EXPECT_EQ(freshet_quantile(&h, count, 0), 5);
	EXPECT_EQ(freshet_quantile(&h, count, 0.5), 5);
	EXPECT_EQ(freshet_quantile(&h, count, 1), 5);
	count[7] = 1;
	EXPECT_EQ(freshet_quantile(&h, count, 0.5), 5);
	EXPECT_EQ(freshet_quantile(&h, count, 0.51), 15);
	EXPECT_EQ(freshet_quantile(&h, count, 1), 15);
	count[0] = 98;
	EXPECT_EQ(freshet_quantile(&h, count, 0.98), 0);
	EXPECT_EQ(freshet_quantile(&h, count, 0.99), 5);
	count[8] = 100;
	EXPECT_EQ(freshet_quantile(&h, count, 0.5), 15);
	EXPECT(freshet_quantile(&h, count, 0.51) == UINT64_MAX);
	EXPECT(freshet_quantile(&h, count, 1) == UINT64_MAX);
}

TAP_MAIN
