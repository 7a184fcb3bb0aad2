/* SPDX-License-Identifier: MIT */
/*
 * What the designs with a lock over all slots, rstat.lock, have in common: flushing under it, dropping
 * it every rstat.step slots; reading under it; removal.
 *
 * Whoever flushes or reads is pinned, as the kernel's reader holds a reference to its cgroup: so where
 * the lock is dropped, the group can be removed, but its place is not given away.
 */
#ifndef FRESHET_BENCH_DESIGNS_LOCKED_H
#define FRESHET_BENCH_DESIGNS_LOCKED_H

#include "designs/rstat.h"

int locked_open(const struct design_shape *shape, void *memory, unsigned how, unsigned step,
		void **ret);
int locked_remove(void *tree, uint64_t group);
int locked_flush(void *tree, uint64_t group, unsigned family);
int locked_read(void *tree, uint64_t group, unsigned family, uint64_t *values);
int locked_read_total(void *tree, uint64_t group, unsigned family, uint64_t *values);
/* The longer one of the trees' locks. */
uint64_t locked_longest_hold(void *tree);

/* Defines NAME_open(), NAME_update() and NAME_update_many(). */
#define LOCKED_DESIGN(name, how, step)                                                     \
	static int name##_open(const struct design_shape *shape, void *memory, void **ret) \
	{                                                                                  \
		return locked_open(shape, memory, how, step, ret);                         \
	}                                                                                  \
	RSTAT_UPDATES(name, how)

/* The functions of struct bench_design; those of a reader may be others. */
#define LOCKED_FUNCTIONS(name, read_function, total_function)                                      \
	RSTAT_FUNCTIONS(name), .size = rstat_size, .remove = locked_remove, .flush = locked_flush, \
			       .read = read_function, .read_total = total_function,                \
			       .longest_hold = locked_longest_hold

#endif
