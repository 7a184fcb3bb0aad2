/* SPDX-License-Identifier: MIT */
/* What the bench `designs` says below its rows: which bars were met, who was best at what, how it was
 * measured. */
#ifndef FRESHET_BENCH_DESIGNS_SUMMARY_H
#define FRESHET_BENCH_DESIGNS_SUMMARY_H

#include "designs_live.h"

#define DESIGNS_MAX     16u
#define SUMMARY_METRICS 6u

struct config {
	unsigned threads, owners, slots, set_size;
};

/* Of one design in one configuration. NAN: could not be had, or was not measured. */
struct outcome {
	struct live live;
	double update_ns, update_spread, flush_us, hold_us, blocked_ms;
	double slowdown_pct, others_slowdown_pct;
	double other_p99, other_alone_p99; /* ns */
};

double outcome_reads_per_s(const struct outcome *o);

/* Of one design. */
struct designs_entry {
	const struct bench_design *design;
	double loc, races, tsan_off, tsan_on;
	int races_error;
	/* Over all configurations, by summary_add(). */
	struct {
		uint64_t stale, torn, torn_max_skew, backwards, lost, excess, reads, updates;
		double most_blocked_ms;         /* NAN: not measured */
		unsigned best[SUMMARY_METRICS]; /* configurations */
	} sum;
};

/* outcome[i] is entry[i]'s, in one configuration. */
void summary_add(struct designs_entry *entry, const struct outcome *outcome, unsigned count);
void summary_report(const struct designs_entry *entry, unsigned count);

#endif
