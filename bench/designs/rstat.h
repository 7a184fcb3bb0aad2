/* SPDX-License-Identifier: MIT */
/*
 * What the kernel's designs have in common (kernel/cgroup/rstat.c, Linux 6.1 to 7.3): a cell for each
 * group and CPU slot, with what its counters are ("now") and what of it was flushed ("last"); totals
 * of each group, and what of them went to its parent ("sent"); and on each slot a tree of the groups
 * updated since their last flush. A design adds who may flush and read when.
 *
 * Update: add to the cell; unless the group is on the slot's updated tree, put it there with all its
 * ancestors. Flush of a group, slot by slot: take its subtree off the slot's updated tree, and of each
 * group taken, children first, add now - last to its total, and total - sent to its parent's.
 *
 * Two things differ from the kernel, so that what is torn or stale is the design's doing:
 *   - A cell has a seqcount on 64-bit machines, too. The kernel's is a no-op there.
 *   - Between adding and asking whether the group is on the tree already stands a full fence, which
 *     pairs with the one between taking off and reading. Without it an update can be missed until
 *     the slot's next one ("temporary inaccuracies, which is fine", css_rstat_updated()).
 * RSTAT_AS_KERNEL leaves both out.
 * A slot's lock is held while a subtree is taken off it, as since 6.8; until then it was held while that
 * was flushed, too. RSTAT_LOCKLESS has none, where the kernel's flushers still take it, unopposed.
 *
 * How the tree is marked: under a lock of the slot's (until 6.16), or RSTAT_LOCKLESS, on a list that
 * the flusher turns into the tree (6.17). One tree for both families, or RSTAT_TREES, one for each
 * (6.16).
 *
 * Invariants
 *   - `now` and the marks are written by who has entered the slot; `last`, totals, `sent` and (but for
 *     marks) the updated tree by who has the design's lock, if it has one.
 *   - Who is on an updated tree has its parent there.
 *   - A group's memory gets another owner only after all who had entered a slot or rstat_pin() when it
 *     was removed have left.
 */
#ifndef FRESHET_BENCH_RSTAT_H
#define FRESHET_BENCH_RSTAT_H

#include <errno.h>

#include "base/atomics.h"
#include "designs/design.h"
#include "designs/spin.h"

#define RSTAT_NONE UINT32_MAX
#define RSTAT_END  UINT32_MAX /* of a list whose links are index + 1; 0: on no list */
#define RSTAT_PINS 64u

enum rstat_how {
	RSTAT_AS_KERNEL = 1 << 0, /* no seqcount, no fence */
	RSTAT_LOCKLESS = 1 << 1,
	RSTAT_NO_FENCE = 1 << 2,
	RSTAT_TREES = 1 << 3,    /* a tree for each family */
	RSTAT_SEQUENCE = 1 << 4, /* rstat.sequence is odd while totals change (locked.c) */
};

/* A group on the updated tree of a slot. */
struct rstat_node {
	uint32_t next;     /* sibling; 0: not on the tree. Read by updates without the lock */
	uint32_t children; /* first one; 0: none */
	uint32_t flush;    /* of a list that its flusher has */
	uint32_t mark;     /* RSTAT_LOCKLESS: next in the slot's list; 0: not on it */
};

struct rstat_cell {
	uint32_t seq; /* odd while it changes */
	uint32_t pad;
	struct rstat_node node[DESIGN_FAMILIES]; /* by tree */
	uint64_t word[];                         /* now, then last, of each family */
};

struct rstat_group {
	uint32_t generation; /* 0: no group */
	uint32_t parent;     /* index, or RSTAT_NONE */
	uint32_t children;
	uint32_t former; /* the last generation it had */
	uint64_t word[]; /* totals, then sent, of each family */
};

struct rstat_slot {
	_Alignas(128) uint32_t turn;       /* odd: entered */
	struct spin lock[DESIGN_FAMILIES]; /* of the updated tree */
	uint32_t marked[DESIGN_FAMILIES];  /* RSTAT_LOCKLESS: index + 1 of the first */
};

struct rstat {
	struct design_shape shape;
	unsigned trees; /* one for all families, or one for each */
	unsigned how;
	unsigned step; /* of slots, after which a flush drops the lock; 0: it does not (locked.c) */
	size_t cell_size, slot_size, group_size;
	char *cells, *groups;
	struct rstat_slot *slots;
	struct {
		_Alignas(128) uint32_t turn;
	} pin[RSTAT_PINS];
	struct spin shape_lock;            /* of creation and removal; outside `lock` */
	struct spin lock[DESIGN_FAMILIES]; /* the design's own: rstat_lock, by tree */
	struct {
		_Alignas(128) uint32_t seq;
	} sequence[DESIGN_FAMILIES]; /* by tree */
};

size_t rstat_size(const struct design_shape *shape);
int rstat_open(const struct design_shape *shape, void *memory, unsigned how, struct rstat **ret);
void rstat_close(void *tree);
uint64_t rstat_root(void *tree);
int rstat_create(void *tree, uint64_t parent, uint64_t *ret);

/* Removal, but for the last flush of the group, which `flush` does when nobody updates it any more. */
int rstat_remove(struct rstat *r, uint64_t group,
		 void (*flush)(struct rstat *r, uint32_t group, unsigned tree));

unsigned rstat_enter(void *tree, unsigned wanted);
void rstat_leave(void *tree, unsigned slot);

/* Keeps groups from being given away that are used without the lock. May block. */
unsigned rstat_pin(struct rstat *r);
void rstat_unpin(struct rstat *r, unsigned pin);

static inline unsigned rstat_tree_of(const struct rstat *r, unsigned family)
{
	return r->trees > 1 ? family : 0;
}

static inline struct rstat_cell *rstat_cell(const struct rstat *r, unsigned slot, uint32_t group)
{
	return (void *)(r->cells + slot * r->slot_size + group * r->cell_size);
}

static inline uint64_t *rstat_now(const struct rstat *r, struct rstat_cell *c, unsigned family)
{
	return c->word + family * r->shape.set_size;
}

static inline uint64_t *rstat_last(const struct rstat *r, struct rstat_cell *c, unsigned family)
{
	return c->word + (DESIGN_FAMILIES + family) * r->shape.set_size;
}

static inline struct rstat_group *rstat_group(const struct rstat *r, uint32_t group)
{
	return (void *)(r->groups + group * r->group_size);
}

static inline uint64_t *rstat_total(const struct rstat *r, struct rstat_group *g, unsigned family)
{
	return g->word + family * r->shape.set_size;
}

static inline uint64_t *rstat_sent(const struct rstat *r, struct rstat_group *g, unsigned family)
{
	return g->word + (DESIGN_FAMILIES + family) * r->shape.set_size;
}

/* A group's index if it lives, or RSTAT_NONE. */
static inline uint32_t rstat_index(const struct rstat *r, uint64_t ref)
{
	uint32_t index = (uint32_t)ref;

	if (index >= r->shape.groups ||
	    load_relaxed(&rstat_group(r, index)->generation) != (uint32_t)(ref >> 32))
		return RSTAT_NONE;
	return index;
}

/* Puts the group on the slot's updated tree, with its ancestors. */
void rstat_link(struct rstat *r, unsigned tree, unsigned slot, uint32_t group);

/*
 * Takes the group's subtree off the slot's updated tree; a list by node.flush, children before their
 * parents, or RSTAT_NONE. Under the slot's lock; with RSTAT_LOCKLESS that of the design is enough.
 */
uint32_t rstat_detach(struct rstat *r, unsigned tree, unsigned slot, uint32_t group);
/* The same under the design's lock. Afterwards the cells can be read: an update that found its group
 * on the tree is seen. */
uint32_t rstat_take(struct rstat *r, unsigned tree, unsigned slot, uint32_t group);
static inline uint32_t rstat_next(const struct rstat *r, unsigned tree, unsigned slot,
				  uint32_t group)
{
	return rstat_cell(r, slot, group)->node[tree].flush;
}

/* A copy of `now` that is whole. */
void rstat_cell_read(const struct rstat *r, struct rstat_cell *c, unsigned family,
		     uint64_t *values);

/* Flushes the group's subtree on one slot; under the lock. */
void rstat_flush_slot(struct rstat *r, unsigned tree, unsigned slot, uint32_t group);
/* The totals; under the lock, or validated afterwards. */
void rstat_copy_total(const struct rstat *r, uint32_t group, unsigned family, uint64_t *values);

/* ---- updates ---- */

static inline void rstat_mark_locked(struct rstat *r, unsigned tree, unsigned slot, uint32_t group)
{
	spin_lock(&r->slots[slot].lock[tree]);
	rstat_link(r, tree, slot, group);
	spin_unlock(&r->slots[slot].lock[tree]);
}

static inline void rstat_mark_lockless(struct rstat *r, unsigned tree, unsigned slot,
				       uint32_t group, struct rstat_node *node)
{
	uint32_t *head = &r->slots[slot].marked[tree], first = load_relaxed(head);

	do
		store_relaxed(&node->mark, first ? first : RSTAT_END);
	while (!cas_seq_cst(head, &first,
			    group + 1)); /* pairs with the exchange in link_marked() */
}

/* how: a constant. */
static inline __attribute__((always_inline)) int rstat_update(struct rstat *r, unsigned slot,
							      uint64_t ref, unsigned family,
							      uint64_t n, unsigned how)
{
	const uint32_t group = rstat_index(r, ref);
	const unsigned tree = how & RSTAT_TREES ? family : 0;
	struct rstat_cell *c;
	struct rstat_node *node;
	uint64_t *now;

	if (group == RSTAT_NONE)
		return -ENOENT;
	c = rstat_cell(r, slot, group);
	now = rstat_now(r, c, family);
	if (how & RSTAT_AS_KERNEL) {
		for (unsigned i = 0; i < r->shape.set_size; i++)
			now[i] += n;
	} else {
		const uint32_t seq = load_relaxed(&c->seq);

		store_relaxed(&c->seq, seq + 1);
		fence_release(); /* pairs with the acquire fence in rstat_cell_read() */
		for (unsigned i = 0; i < r->shape.set_size; i++)
			store_relaxed(&now[i], load_relaxed(&now[i]) + n);
		store_release(&c->seq, seq + 2); /* pairs with the load in rstat_cell_read() */
	}
	if (!(how & (RSTAT_AS_KERNEL | RSTAT_NO_FENCE)))
		fence_seq_cst(); /* pairs with the one in rstat_take() */
	node = &c->node[tree];
	if (how & RSTAT_LOCKLESS) {
		if (!load_relaxed(&node->mark))
			rstat_mark_lockless(r, tree, slot, group, node);
	} else if (!load_relaxed(&node->next)) {
		rstat_mark_locked(r, tree, slot, group);
	}
	return 0;
}

/* Defines NAME_update() and NAME_update_many(). */
#define RSTAT_UPDATES(name, how)                                                             \
	static int name##_update(void *tree, unsigned slot, uint64_t group, unsigned family, \
				 uint64_t n)                                                 \
	{                                                                                    \
		return rstat_update(tree, slot, group, family, n, how);                      \
	}                                                                                    \
	static void name##_update_many(void *tree, unsigned slot, const uint64_t *groups,    \
				       unsigned ngroups, unsigned family, uint64_t count)    \
	{                                                                                    \
		for (unsigned at = 0; count > 0; count--) {                                  \
			rstat_update(tree, slot, groups[at], family, 1, how);                \
			at = at + 1 < ngroups ? at + 1 : 0;                                  \
		}                                                                            \
	}

/* Those functions of struct bench_design that all of them have alike. */
#define RSTAT_FUNCTIONS(name)                                                                  \
	.open = name##_open, .close = rstat_close, .root = rstat_root, .create = rstat_create, \
	.enter = rstat_enter, .leave = rstat_leave, .update = name##_update,                   \
	.update_many = name##_update_many

#endif
