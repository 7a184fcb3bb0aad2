/* SPDX-License-Identifier: MIT */
/* What views show of a histogram: a summary, and bounds few enough for Prometheus. Pure. */
#ifndef FRESHET_VIEW_HISTOGRAM_H
#define FRESHET_VIEW_HISTOGRAM_H

#include <stdint.h>

#include <freshet/freshet.h>

/* In the histogram's own unit. Quantiles and max are upper bounds of buckets: UINT64_MAX for the last
 * one, which has none. All 0 where nothing was observed. */
struct histogram_summary {
	uint64_t count;
	uint64_t sum;
	double mean;
	uint64_t p50, p90, p99;
	uint64_t max;
};

/* words: the buckets, then the sum. */
void histogram_summary(const struct freshet_histogram *h, const uint64_t *words,
		       struct histogram_summary *ret);

/*
 * Finite bounds under which /metrics counts observations. A histogram may have some thousand buckets,
 * and each is a line for each group; 32 keep a histogram of any width at the size that people give
 * theirs. They are those of the same log-linear scheme at the highest precision, of the histogram's
 * own or lower, that has so few; where even single powers of two are more, every second one. As each
 * is also a bound of a bucket, what is counted is exact; and as they depend on the histogram's
 * definition alone, they stay the same from scrape to scrape, and are the same for all groups.
 */
#define HISTOGRAM_BOUNDS_MAX 32u

struct histogram_bounds {
	unsigned count;
	struct {
		unsigned end;   /* buckets 0 .. end-1 are at or below the bound */
		uint64_t upper; /* the bound */
	} bound[HISTOGRAM_BOUNDS_MAX];
};

void histogram_bounds(const struct freshet_histogram *h, struct histogram_bounds *ret);

#endif
