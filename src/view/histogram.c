/* SPDX-License-Identifier: MIT */
/* Implements histogram.h. */
#include "view/histogram.h"

void histogram_summary(const struct freshet_histogram *h, const uint64_t *words,
		       struct histogram_summary *ret)
{
	*ret = (struct histogram_summary){ .sum = words[h->buckets] };
	for (unsigned i = 0; i < h->buckets; i++) {
		ret->count += words[i];
		if (words[i])
			ret->max = freshet_bucket_upper(h, i);
	}
	if (!ret->count)
		return;
	ret->mean = (double)ret->sum / (double)ret->count;
	ret->p50 = freshet_quantile(h, words, 0.5);
	ret->p90 = freshet_quantile(h, words, 0.9);
	ret->p99 = freshet_quantile(h, words, 0.99);
}

void histogram_bounds(const struct freshet_histogram *h, struct histogram_bounds *ret)
{
	struct freshet_histogram coarse = *h;
	unsigned all, step, bucket = 0;

	for (;;) {
		coarse.buckets =
			(uint16_t)freshet_buckets(coarse.precision, coarse.lowest, coarse.highest);
		all = coarse.buckets ? coarse.buckets - 1u : 0;
		if (all <= HISTOGRAM_BOUNDS_MAX || coarse.precision == 0)
			break;
		coarse.precision--;
	}
	step = all / HISTOGRAM_BOUNDS_MAX + (all % HISTOGRAM_BOUNDS_MAX != 0);
	ret->count = 0;
	/* so that the highest one is among them */
	for (unsigned i = step ? (all - 1) % step : 0; i < all; i += step) {
		uint64_t upper = freshet_bucket_upper(&coarse, i);

		while (bucket < h->buckets && freshet_bucket_upper(h, bucket) <= upper)
			bucket++;
		ret->bound[ret->count].end = bucket;
		ret->bound[ret->count++].upper = upper;
	}
}
