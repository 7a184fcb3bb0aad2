/* SPDX-License-Identifier: MIT */
/*
 * Times of single calls, of which the tail matters: log-linear buckets, 3 % wide. What it takes to
 * ask the clock twice is taken off.
 */
#ifndef FRESHET_BENCH_TAILS_H
#define FRESHET_BENCH_TAILS_H

#include <stdint.h>

#define TAILS_BUCKETS 1153u

struct tails {
	uint64_t bucket[TAILS_BUCKETS];
	uint64_t count, max;
};

/* Measures what the clock takes; before the others. */
void tails_begin(void);
uint64_t tails_empty(void); /* that, ns */

void tails_add(struct tails *t, uint64_t ns);
void tails_merge(struct tails *to, const struct tails *from);

/* ns, the upper bound of the bucket; NAN of no samples. */
double tails_quantile(const struct tails *t, double q);

#endif
