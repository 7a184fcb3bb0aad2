/* SPDX-License-Identifier: MIT */
/*
 * A program's tree, as its own process has it.
 *
 * Two halves. Updates (update.c) read `hot`, `tags` and the owners, and write cells, dirty bits and
 * the used_... words; they take no lock. Everything else (create, remove, flush, publication) runs
 * under `lock`, and is the only writer of `nodes`, rows, banks, lives, tags and the selector.
 *
 * Invariants
 *   - tags[slot] is the tag of the group that lives in the slot, 0 if none does: generation <<
 *     TAG_SHIFT. The selector stays below 1 << TAG_SHIFT, so that no two groups of one slot ever
 *     have a stamp in common.
 *   - Every slot that a handle was given for has its cells' memory reserved on all CPU slots.
 *   - `flipped` says that the selector was raised, and what the epoch before it left is not in a
 *     bank yet: a flush that failed in between goes on from there.
 */
#ifndef FRESHET_TREE_H
#define FRESHET_TREE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <freshet/freshet.h>

#include "base/atomics.h"
#include "base/rseq.h"
#include "core/cells.h"
#include "core/writer.h"
#include "engine/schema.h"

#define TAG_SHIFT   40
#define FIRST_EPOCH 4u /* so that no stamp is 0, and epochs have predecessors */
#define NO_NODE     UINT32_MAX

/* A group, by slot. Links are slots or NO_NODE. */
struct node {
	uint64_t id;
	char *name; /* NULL: no group here */
	uint32_t generation;
	uint32_t parent, first_child, last_child, next, previous;
	uint32_t children; /* that live */
	uint16_t depth;
	bool dead;     /* removed, but not out of the rows yet */
	uint64_t died; /* the selector when it was removed: only until the next flip may it be updated */
};

struct freshet_tree {
	struct freshet_hot *hot; /* a page of its own, wiped in a forked child */
	struct schema schema;
	bool rseq;
	struct rseq_place place;

	/* Shared memory, writable. */
	struct cells cells; /* (its pointers are for reading) */
	struct seg_control *control;
	char *lives, *dirty, *owners, *cell_memory;

	uint64_t *tags;
	struct freshet_view *view;
	struct writer *writer;

	pthread_mutex_t lock;
	struct node *nodes;
	void *names; /* tree of nodes by parent and name: tsearch(3) */
	struct writer_node *order; /* for writer_shape() */
	uint32_t *scratch;         /* by slot: its position in order */
	uint32_t ndead;
	uint64_t next_id;
	uint32_t *carried; /* groups of which an update was under way in the last flush */
	uint32_t ncarried;
	uint64_t *own; /* words, for flush_group(): too many for some threads' stacks */
	bool shape_changed;
	bool flipped;
	_Alignas(8) uint64_t flushes; /* flips; atomic: read without the lock */
	uint64_t not_before_ns; /* the next publication */
	uint64_t work_began_ns; /* for this one, CPU time of its thread */

	struct freshet_tree *next, **link; /* list of trees, fork.c */
};

/* Whether this is a forked child of the process that opened the tree. */
static inline bool tree_is_childs(const struct freshet_tree *t)
{
	return load_relaxed(&t->hot->selector) == 0;
}

/* fork.c: trees that a forked child must let go of. Registered while forks are held up. */
void fork_hold(void);
void fork_let(void);
void fork_register(struct freshet_tree *t);
void fork_unregister(struct freshet_tree *t);

/* publish.c. All under the lock. */
/* Sleeps until a publication may begin, without the lock: what was looked at before can have changed. */
void publish_turn(struct freshet_tree *t);
/* Waits for what is left of that, with the lock; returns now. Called by the thread that will publish. */
uint64_t publish_wait(struct freshet_tree *t);
/* Publishes the rows, and the tree's shape if it has changed. began: what publish_wait() gave. */
void publish(struct freshet_tree *t, uint64_t began);

/* flush.c, under the lock. 0 or -errno; on failure everything is as good as before. */
int flush_locked(struct freshet_tree *t);
/* Whether the last flush may have missed an update of the group, because it was under way. */
bool flush_is_carried(const struct freshet_tree *t, uint32_t slot);

/* A group's numbers as of now, and what they are more than before, into all rows they belong to.
 * false: an update was in its way all the while; nothing is changed. */
bool flush_group(struct freshet_tree *t, uint32_t slot);

/* groups.c, under the lock, in the flush that ends an epoch: lets go of removed groups that no update
 * is under way for any more. */
void groups_bury(struct freshet_tree *t, uint64_t epoch);

/* update.c: for flush, the group that a fallback slot is held for, + 1; 0: the slot is free. */
uint32_t *owner_at(const struct freshet_tree *t, uint32_t fallback);

/* update.c: for bench/designs, which spreads updates over slots. This thread's next update on a fallback
 * slot tries that one first. */
void update_prefer(uint32_t fallback);
/* freshet_add() of a counter, n[0], or freshet_add_set(), on a fallback slot in any case. Arguments are
 * not checked. */
int update_on_fallback(const struct freshet_handle *h, unsigned first, unsigned count,
		       const int64_t *n);

/* groups.c: the root. 0 or -errno. */
int groups_make_root(struct freshet_tree *t);
void groups_free(struct freshet_tree *t);

#endif
