/* SPDX-License-Identifier: MIT */
/*
 * atomic: "cgroup/rstat: change cgroup_base_stat to atomic", which was proposed in 2025 and not merged.
 * The totals are atomics and there is no lock over all CPUs: flushers walk the CPUs side by side. Each
 * takes the updated subtree off a CPU's tree under that CPU's own lock, for a moment, and then adds on,
 * counter by counter. So a reader can see one counter with an update and the next one without (not
 * Whole); and one who finds nothing on the updated trees, because somebody else has just taken it off,
 * reads while that one is still adding (not Fresh): 1,0,0 in the thought experiment that was answered.
 *
 * Nothing is added twice, nor is anything lost:
 *   - `last` and `sent` are only raised, by compare-exchange, and who raised them adds the difference.
 *     So totals never go back, either.
 *   - Who took a subtree off has the list of it for itself, as its groups can be taken again meanwhile.
 *   - When somebody else took the parent off between our taking and our adding, then that one may have
 *     sent the parent's total on without what we added. So we put it back on the updated tree. (Marks
 *     and the updated tree are as in Linux 6.17: no update waits for a flusher.)
 *
 * Whoever uses a group is pinned, and removal waits for them.
 *
 * Source: the second version of the patch (Wlodarczyk, June 2025), and the thread on it.
 */
#include "designs/all.h"
#include "designs/rstat.h"

#define HOW (RSTAT_TREES | RSTAT_LOCKLESS)

/* ---- lists ---- */

/* Behind what all designs have: a list of groups for each pin, on lines of its own. */
static size_t list_length(const struct design_shape *shape)
{
	return (shape->groups + 31) / 32 * 32;
}

static size_t size(const struct design_shape *shape)
{
	return rstat_size(shape) + RSTAT_PINS * list_length(shape) * sizeof(uint32_t);
}

static uint32_t *list_of(struct rstat *r, unsigned pin)
{
	return (uint32_t *)((char *)r + rstat_size(&r->shape)) + pin * list_length(&r->shape);
}

static unsigned take(struct rstat *r, unsigned tree, unsigned slot, uint32_t group, uint32_t *list)
{
	struct spin *lock = &r->slots[slot].lock[tree];
	unsigned count = 0;

	spin_lock(lock);
	for (uint32_t at = rstat_detach(r, tree, slot, group); at != RSTAT_NONE;
	     at = rstat_next(r, tree, slot, at))
		list[count++] = at;
	spin_unlock(lock);
	/* Pairs with the fences in rstat_update() and keep_parent(): who found the group still on the
	 * tree has added what is read from here on. */
	fence_seq_cst();
	return count;
}

/* ---- flush ---- */

/* By how much it was raised. The order is that of all raises and adds, as below. */
static uint64_t raise_to(uint64_t *at, uint64_t to)
{
	uint64_t old = load_relaxed(at);

	while ((int64_t)(to - old) > 0)
		if (cas_seq_cst(at, &old, to)) /* pairs with itself in other flushers */
			return to - old;
	return 0;
}

static void add(uint64_t *to, uint64_t n)
{
	/* Before `sent` is raised; pairs with the load of others who raise it. */
	if (n)
		__atomic_fetch_add(to, n, __ATOMIC_SEQ_CST);
}

static void flush_cell(struct rstat *r, unsigned slot, uint32_t group, unsigned family)
{
	struct rstat_cell *c = rstat_cell(r, slot, group);
	struct rstat_group *g = rstat_group(r, group);
	uint64_t *last = rstat_last(r, c, family), *total = rstat_total(r, g, family);
	uint64_t *sent = rstat_sent(r, g, family), *up = NULL, now[DESIGN_MAX_SET];

	if (g->parent != RSTAT_NONE)
		up = rstat_total(r, rstat_group(r, g->parent), family);
	rstat_cell_read(r, c, family, now);
	for (unsigned i = 0; i < r->shape.set_size; i++) {
		add(&total[i], raise_to(&last[i], now[i]));
		if (up)
			add(&up[i], raise_to(&sent[i], load_seq_cst(&total[i]))); /* see add() */
	}
}

/* What was added to the parent of a group is sent on by a flush of that one. */
static void keep_parent(struct rstat *r, unsigned tree, unsigned slot, uint32_t group)
{
	const uint32_t above = rstat_group(r, group)->parent;
	struct spin *lock = &r->slots[slot].lock[tree];

	if (above == RSTAT_NONE)
		return;
	fence_seq_cst(); /* pairs with the one in take() */
	if (load_relaxed(&rstat_cell(r, slot, above)->node[tree].next))
		return;
	spin_lock(lock);
	rstat_link(r, tree, slot, above);
	spin_unlock(lock);
}

static void flush_pinned(struct rstat *r, unsigned pin, uint32_t group, unsigned family)
{
	const unsigned tree = rstat_tree_of(r, family);
	uint32_t *list = list_of(r, pin);

	for (unsigned slot = 0; slot < r->shape.slots; slot++) {
		const unsigned count = take(r, tree, slot, group, list);

		for (unsigned i = 0; i < count; i++)
			flush_cell(r, slot, list[i], family);
		if (count > 0)
			keep_parent(r, tree, slot, group);
	}
}

static void flush_removed(struct rstat *r, uint32_t group, unsigned tree)
{
	const unsigned pin = rstat_pin(r);

	flush_pinned(r, pin, group, tree);
	rstat_unpin(r, pin);
}

/* ---- the design's functions ---- */

static int atomic_open(const struct design_shape *shape, void *memory, void **ret)
{
	struct rstat *r;
	int err = rstat_open(shape, memory, HOW, &r);

	if (!err)
		*ret = r;
	return err;
}

static int remove_group(void *tree, uint64_t group)
{
	return rstat_remove(tree, group, flush_removed);
}

static int flush_and_read(struct rstat *r, uint64_t ref, unsigned family, bool flush,
			  uint64_t *values)
{
	const unsigned pin = rstat_pin(r);
	const uint32_t group = rstat_index(r, ref);

	if (group != RSTAT_NONE && flush)
		flush_pinned(r, pin, group, family);
	if (group != RSTAT_NONE && values)
		rstat_copy_total(r, group, family, values);
	rstat_unpin(r, pin);
	return group == RSTAT_NONE ? -ENOENT : 0;
}

static int flush_group(void *tree, uint64_t group, unsigned family)
{
	return flush_and_read(tree, group, family, true, NULL);
}

static int read_group(void *tree, uint64_t group, unsigned family, uint64_t *values)
{
	return flush_and_read(tree, group, family, true, values);
}

static int read_total(void *tree, uint64_t group, unsigned family, uint64_t *values)
{
	return flush_and_read(tree, group, family, false, values);
}

/* Of the slots' locks, which is all that a reader can wait for. */
static uint64_t longest_hold(void *tree)
{
	struct rstat *r = tree;
	uint64_t longest = 0;

	for (unsigned slot = 0; slot < r->shape.slots; slot++)
		for (unsigned family = 0; family < r->trees; family++) {
			uint64_t ns = spin_longest(&r->slots[slot].lock[family]);

			if (ns > longest)
				longest = ns;
		}
	return longest;
}

RSTAT_UPDATES(atomic, HOW)

const struct bench_design design_atomic = {
	.name = "atomic",
	.backend = "atomics",
	.models = "totals as atomics, no lock over all CPUs (proposed in 2025)",
	.promises = DESIGN_EXACT | DESIGN_MONOTONE,
	.lacks = DESIGN_FRESH | DESIGN_WHOLE | DESIGN_QUIET,
	RSTAT_FUNCTIONS(atomic),
	.size = size,
	.remove = remove_group,
	.flush = flush_group,
	.read = read_group,
	.read_total = read_total,
	.longest_hold = longest_hold
};
