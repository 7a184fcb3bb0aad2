/* SPDX-License-Identifier: MIT */
/* The daemon's own metrics: what its passes cost and what became of them, and the process. */
#ifndef FRESHET_OWN_H
#define FRESHET_OWN_H

#include <pthread.h>
#include <stdint.h>

#include "base/buf.h"
#include "source/collector.h"
#include "view/openmetrics.h"

#define OWN_BUCKETS 14u

struct own {
	pthread_mutex_t lock; /* the passes' thread writes, the server's reads */
	const char *source;
	struct collector_stats stats;
	uint64_t on_demand;
	uint64_t bucket[OWN_BUCKETS + 1]; /* the last one: above all bounds */
	uint64_t sum_ns;
};

void own_init(struct own *o, const char *source);
void own_destroy(struct own *o);

/* A pass has ended; took_ns: its duration, if it was published, else 0. */
void own_pass(struct own *o, const struct collector_stats *stats, uint64_t took_ns, int on_demand);

/* Whole families; see metrics_family(). */
void own_render(struct own *o, struct buf *out, enum metrics_format format);

#endif
