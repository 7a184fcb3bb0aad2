/* SPDX-License-Identifier: MIT */
/* Bounds of a histogram's log-linear buckets, and quantiles. freshet_bucket_of() in inline.h is the
 * other direction. Pure. */
#include <freshet/freshet.h>

unsigned freshet_buckets(unsigned precision, unsigned lowest, unsigned highest)
{
	if (precision > 6 || highest > 63 || lowest >= highest ||
	    highest - lowest < precision + 1)
		return 0;
	return ((highest - lowest - precision + 1) << precision) + 1;
}

uint64_t freshet_bucket_upper(const struct freshet_histogram *h, unsigned i)
{
	uint64_t next = i + 1, linear = 1ull << h->precision;
	unsigned shift = 0;

	if (i + 1 >= h->buckets)
		return UINT64_MAX;
	/* The first value of the next bucket, less one. */
	if (next >= linear) {
		shift = (unsigned)(next >> h->precision) - 1;
		next = linear + (next & (linear - 1));
	}
	return (next << shift << h->lowest) - 1;
}

uint64_t freshet_quantile(const struct freshet_histogram *h, const uint64_t *buckets, double q)
{
	uint64_t total = 0, below = 0;

	for (unsigned i = 0; i < h->buckets; i++)
		total += buckets[i];
	if (total == 0)
		return 0;
	for (unsigned i = 0; i < h->buckets; i++) {
		below += buckets[i];
		if (buckets[i] && (double)below >= q * (double)total)
			return freshet_bucket_upper(h, i);
	}
	return UINT64_MAX;
}
