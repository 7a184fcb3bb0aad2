/* SPDX-License-Identifier: MIT */
/*
 * Polls a design's tree while it is updated and flushed, and checks what each read says.
 *
 * Readers poll, each its own owner, without a pause. Then (no times are taken of that) each of them
 * updates its owner's leaf before each read, and reads the root in turn with the owner: with two CPUs
 * one flusher would seldom meet another one otherwise that has something to flush. All the while one
 * thread updates all leaves on all slots, and one flushes the root LIVE_FLUSHES_S times a second. Who
 * updates keeps books: how many updates of an owner have begun, how many are done.
 *
 * Luck decides how soon a design is seen to tear: so who lacks whole or fresh reads can be given more of
 * the second part, until that was seen some times.
 *
 * A read must give at least what was done before it began (else it is stale), as much in each counter
 * of the set (torn), no less than the same reader's last one (backwards), and at most what had begun
 * when it was over (excess). At the end, at rest and flushed, each owner and the root must have what
 * was done (lost).
 */
#ifndef FRESHET_BENCH_DESIGNS_LIVE_H
#define FRESHET_BENCH_DESIGNS_LIVE_H

#include "designs_tree.h"
#include "tails.h"

#define LIVE_MAX_READERS 8u
#define LIVE_FLUSHES_S   300u /* or as many as there can be */

struct live {
	struct tails own;    /* of reads of owners */
	uint64_t own_ns;     /* while those were taken */
	uint64_t own_cpu_ns; /* CPU time of all readers in that time */
	uint64_t checked;    /* reads, of owners and the root */
	uint64_t stale, torn, torn_max_skew, backwards, excess;
	uint64_t lost; /* updates more or less, of all owners and the root */
	uint64_t updates, flushes;
};

/* How long owners are polled (longer if hardly a read ended), and the root in turn with them. */
struct live_times {
	uint64_t own_ns, root_ns;
	uint64_t
		most_ns; /* of the latter: until what the design lacks was seen LIVE_ENOUGH times */
};
#define LIVE_ENOUGH 10u

/* A tree that was not updated before. 0 or -errno. */
int live_run(struct designs_tree *t, unsigned readers, const struct live_times *times,
	     struct live *ret);

#endif
