/* SPDX-License-Identifier: MIT */
/* Summaries of samples. */
#ifndef FRESHET_BENCH_STATS_H
#define FRESHET_BENCH_STATS_H

#include <stddef.h>

struct stats {
	double sample[4096];
	size_t count;
};

/* Beyond the room of sample[], the sample is dropped. */
void stats_add(struct stats *s, double sample);

/* Sorts. 0 of no samples. */
double stats_median(struct stats *s);

/* Sorts. Of `part` of the samples it is the upper bound, 0 <= part <= 1. 0 of no samples. */
double stats_quantile(struct stats *s, double part);

/* 0 of no samples. */
double stats_min(const struct stats *s);

/* The distance of the quartiles, in per cent of the median. */
double stats_spread(struct stats *s);

#endif
