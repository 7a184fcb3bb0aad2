/* SPDX-License-Identifier: MIT */
/* How long a reader waits while a flusher is stopped. */
#ifndef FRESHET_BENCH_DESIGNS_STOP_H
#define FRESHET_BENCH_DESIGNS_STOP_H

#include "designs_tree.h"

/*
 * A thread flushes the root again and again; at a random moment inside a flush it stops for park_ns,
 * up to `parks` times, or until somebody has waited as long. longest_ns: the longest read of an owner,
 * by a thread on another CPU, that overlapped with such a stop. Leaves are updated meanwhile.
 * -ETIMEDOUT: it could not be stopped inside a flush. Needs two CPUs.
 */
int stop_run(struct designs_tree *t, uint64_t park_ns, unsigned parks, uint64_t *longest_ns);

#endif
