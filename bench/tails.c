/* SPDX-License-Identifier: MIT */
/* Implements tails.h. */
#include "tails.h"

#include <freshet/freshet.h>
#include <math.h>

#include "base/clock.h"
#include "stats.h"

/* Up to 2^40 ns. */
static const struct freshet_histogram shape = {
	.precision = 5, .lowest = 0, .highest = 40, .buckets = TAILS_BUCKETS
};
static uint64_t empty_ns;

void tails_begin(void)
{
	static struct stats pairs;

	_Static_assert(TAILS_BUCKETS == ((40 - 0 - 5 + 1) << 5) + 1, "freshet_buckets(5, 0, 40)");
	pairs.count = 0;
	for (int i = 0; i < 1001; i++) {
		uint64_t begin = clock_ns();

		stats_add(&pairs, (double)(clock_ns() - begin));
	}
	empty_ns = (uint64_t)stats_median(&pairs);
}

uint64_t tails_empty(void)
{
	return empty_ns;
}

void tails_add(struct tails *t, uint64_t ns)
{
	ns = ns > empty_ns ? ns - empty_ns : 0;
	t->bucket[freshet_bucket_of(5, 0, TAILS_BUCKETS - 1, ns)]++;
	t->count++;
	t->max = ns > t->max ? ns : t->max;
}

void tails_merge(struct tails *to, const struct tails *from)
{
	for (unsigned i = 0; i < TAILS_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
	to->count += from->count;
	to->max = from->max > to->max ? from->max : to->max;
}

double tails_quantile(const struct tails *t, double q)
{
	return t->count ? (double)freshet_quantile(&shape, t->bucket, q) : (double)NAN;
}
