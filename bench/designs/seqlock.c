/* SPDX-License-Identifier: MIT */
/*
 * seqlock: flushes as in Linux 6.17 (subsystem_lock.c), with a sequence that is odd while the totals
 * change. Readers never take the lock: they copy the totals, and again if the sequence was odd or has
 * moved. They do not flush, so that what they see is as old as the last flush that somebody made; and
 * while a flusher is stopped in a write section, they wait for it. A read writes nothing.
 *
 * seqlock-fresh: the same, but the reader flushes first, for which it takes the lock after all.
 *
 * A removed group is noticed by its generation, which is looked at inside the sequence.
 *
 * Source: asked for by the maintainer ("try using seqlock") in answer to a patch that made the lock a
 * rwlock (Falcon, 2026).
 */
#include <string.h>

#include "designs/all.h"
#include "designs/locked.h"

LOCKED_DESIGN(seqlock, RSTAT_TREES | RSTAT_LOCKLESS | RSTAT_SEQUENCE, 1)

static int read_in_sequence(void *tree, uint64_t ref, unsigned family, uint64_t *values)
{
	const struct rstat *r = tree;
	const uint32_t *seq = &r->sequence[rstat_tree_of(r, family)].seq;
	uint64_t copy[DESIGN_MAX_SET];

	for (unsigned tries = 0;; spin_wait(tries++)) {
		/* Both pair with flush_slot() in locked.c. */
		const uint32_t before = load_acquire(seq);
		const uint32_t group = rstat_index(r, ref);

		if (group == RSTAT_NONE)
			return -ENOENT;
		if (before % 2)
			continue;
		rstat_copy_total(r, group, family, copy);
		fence_acquire(); /* and with clear() in rstat.c */
		if (load_relaxed(seq) == before && rstat_index(r, ref) == group)
			break;
	}
	memcpy(values, copy, r->shape.set_size * sizeof(*values));
	return 0;
}

static int read_flushing(void *tree, uint64_t group, unsigned family, uint64_t *values)
{
	int err = locked_flush(tree, group, family);

	return err ? err : read_in_sequence(tree, group, family, values);
}

const struct bench_design design_seqlock = {
	.name = "seqlock",
	.backend = "seqlock",
	.models = "readers take no lock and do not flush (asked for on the list in 2026)",
	.promises = DESIGN_EXACT | DESIGN_WHOLE | DESIGN_MONOTONE | DESIGN_QUIET,
	.lacks = DESIGN_FRESH | DESIGN_UNBLOCKED,
	LOCKED_FUNCTIONS(seqlock, read_in_sequence, read_in_sequence)
};

const struct bench_design design_seqlock_fresh = {
	.name = "seqlock-fresh",
	.backend = "seqlock",
	.models = "the same, and readers flush first",
	.promises = DESIGN_EXACT | DESIGN_FRESH | DESIGN_WHOLE | DESIGN_MONOTONE,
	.lacks = DESIGN_UNBLOCKED | DESIGN_QUIET,
	LOCKED_FUNCTIONS(seqlock, read_flushing, read_in_sequence)
};
