/* SPDX-License-Identifier: MIT */
/*
 * What updates, flushes and polling beside them cost in a design's tree, in short turns. The caller
 * runs on the first CPU. 0 or -errno.
 */
#ifndef FRESHET_BENCH_DESIGNS_RUN_H
#define FRESHET_BENCH_DESIGNS_RUN_H

#include "designs_tree.h"
#include "stats.h"
#include "tails.h"

#define RUN_MAX_THREADS 8u
#define RUN_BATCH       256u /* updates in a row on a slot */

/*
 * ns for an update in one turn: each thread, at real-time priority and spread over the CPUs, enters a
 * slot below the number of CPUs again and again and times a batch there, after an untimed round over
 * the leaves. Median of a thread's batches, mean of the threads.
 */
int run_updates(struct designs_tree *t, unsigned threads, double *ns);

/* All is updated on all slots, and then the root is flushed. cpu_us: CPU time of that. hold_us: the
 * longest time the lock was held meanwhile; NAN: there is none that holds readers up. */
int run_flush(struct designs_tree *t, double *cpu_us, double *hold_us);

/*
 * Updates for a microsecond by one thread on one slot in `ns`, while that many threads on other CPUs
 * poll without a pause, each an owner. It updates all leaves in turn, or those of owners that the first
 * of them does not poll.
 */
int run_polled(struct designs_tree *t, unsigned pollers, bool others, uint64_t ns, double *per_us);

/* Reads of an owner by one thread, which also updates it and another one, while that one is polled
 * without a pause (pollers 1) or not (0). */
int run_other(struct designs_tree *t, unsigned pollers, uint64_t ns, struct tails *reads);

#endif
