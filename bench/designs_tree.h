/* SPDX-License-Identifier: MIT */
/*
 * The tree that a design (designs/design.h) is measured with: root, some teams, owners, and below each
 * owner one leaf, which is what updates go to. Owners are what is polled.
 *
 * Family 0 is polled. Family 1 is updated as well and never polled: a design that flushes all families
 * at once has it to do, too.
 */
#ifndef FRESHET_BENCH_DESIGNS_TREE_H
#define FRESHET_BENCH_DESIGNS_TREE_H

#include <pthread.h>

#include "designs/design.h"

#define DESIGNS_MAX_OWNERS 300u
#define DESIGNS_POLLED     0u
#define DESIGNS_BESIDE     1u

struct designs_tree {
	const struct bench_design *design;
	struct design_shape shape;
	void *memory;
	size_t bytes;
	void *tree;
	unsigned owners;
	uint64_t root, owner[DESIGNS_MAX_OWNERS], leaf[DESIGNS_MAX_OWNERS];
};

/* 0 or -errno; -EOPNOTSUPP: this machine cannot run the design. After an error nothing is open. */
int designs_tree_open(struct designs_tree *t, const struct bench_design *design, unsigned owners,
		      unsigned slots, unsigned set_size);
void designs_tree_close(struct designs_tree *t);

/* Updates the owner's leaf; again if nothing was counted (-EAGAIN). 0 or -errno. */
int designs_tree_update(struct designs_tree *t, unsigned slot, unsigned owner, unsigned family);

/* Updates each leaf once on each slot, both families, from two threads. 0 or -errno. */
int designs_tree_touch(struct designs_tree *t);

/* As procs_thread(), on CPU number `index` counted from the last one: a thread beside the one that
 * measures on the first. */
int designs_thread_beside(pthread_t *ret, unsigned index, void *(*run)(void *), void *arg);

#endif
