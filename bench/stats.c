/* SPDX-License-Identifier: MIT */
/* Implements stats.h. */
#include "stats.h"

#include <stdlib.h>

void stats_add(struct stats *s, double sample)
{
	if (s->count < sizeof(s->sample) / sizeof(s->sample[0]))
		s->sample[s->count++] = sample;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double stats_quantile(struct stats *s, double part)
{
	double at = part * (double)(s->count - 1);
	size_t i = (size_t)at;

	if (!s->count)
		return 0;
	qsort(s->sample, s->count, sizeof(s->sample[0]), compare);
	if (i + 1 >= s->count)
		return s->sample[s->count - 1];
	return s->sample[i] + (at - (double)i) * (s->sample[i + 1] - s->sample[i]);
}

double stats_median(struct stats *s)
{
	return stats_quantile(s, 0.5);
}

double stats_min(const struct stats *s)
{
	double min = s->count ? s->sample[0] : 0;

	for (size_t i = 1; i < s->count; i++)
		min = s->sample[i] < min ? s->sample[i] : min;
	return min;
}

double stats_spread(struct stats *s)
{
	double median = stats_median(s);

	return median > 0 ? (stats_quantile(s, 0.75) - stats_quantile(s, 0.25)) / median * 100 : 0;
}
