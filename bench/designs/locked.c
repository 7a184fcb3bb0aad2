/* SPDX-License-Identifier: MIT */
/* Implements locked.h. */
#include "designs/locked.h"

int locked_open(const struct design_shape *shape, void *memory, unsigned how, unsigned step,
		void **ret)
{
	struct rstat *r;
	int err = rstat_open(shape, memory, how, &r);

	if (err)
		return err;
	r->step = step;
	*ret = r;
	return 0;
}

static void flush_slot(struct rstat *r, unsigned tree, unsigned slot, uint32_t group)
{
	uint32_t *seq = &r->sequence[tree].seq, now = load_relaxed(seq);

	if (!(r->how & RSTAT_SEQUENCE)) {
		rstat_flush_slot(r, tree, slot, group);
		return;
	}
	store_relaxed(seq, now + 1);
	fence_release(); /* pairs with the acquire fence of who reads under the sequence */
	rstat_flush_slot(r, tree, slot, group);
	store_release(seq, now + 2); /* pairs with the load of who reads under the sequence */
}

/* Under the tree's lock, which is dropped in between. */
static void flush_slots(struct rstat *r, unsigned tree, uint32_t group)
{
	for (unsigned slot = 0; slot < r->shape.slots; slot++) {
		if (r->step && slot && slot % r->step == 0)
			spin_break(&r->lock[tree]);
		flush_slot(r, tree, slot, group);
	}
}

static void flush_removed(struct rstat *r, uint32_t group, unsigned tree)
{
	spin_lock(&r->lock[tree]);
	flush_slots(r, tree, group);
	spin_unlock(&r->lock[tree]);
}

int locked_remove(void *tree, uint64_t group)
{
	return rstat_remove(tree, group, flush_removed);
}

/* values: NULL, or where to put the totals. */
static int flush_and_read(struct rstat *r, uint64_t ref, unsigned family, bool flush,
			  uint64_t *values)
{
	const unsigned pin = rstat_pin(r), tree = rstat_tree_of(r, family);
	const uint32_t group = rstat_index(r, ref);

	if (group != RSTAT_NONE) {
		spin_lock(&r->lock[tree]);
		if (flush)
			flush_slots(r, tree, group);
		if (flush && values && r->step)
			spin_break(&r->lock[tree]);
		if (values)
			rstat_copy_total(r, group, family, values);
		spin_unlock(&r->lock[tree]);
	}
	rstat_unpin(r, pin);
	return group == RSTAT_NONE ? -ENOENT : 0;
}

int locked_flush(void *tree, uint64_t group, unsigned family)
{
	return flush_and_read(tree, group, family, true, NULL);
}

int locked_read(void *tree, uint64_t group, unsigned family, uint64_t *values)
{
	return flush_and_read(tree, group, family, true, values);
}

int locked_read_total(void *tree, uint64_t group, unsigned family, uint64_t *values)
{
	return flush_and_read(tree, group, family, false, values);
}

uint64_t locked_longest_hold(void *tree)
{
	struct rstat *r = tree;
	uint64_t longest = 0;

	for (unsigned i = 0; i < r->trees; i++) {
		uint64_t ns = spin_longest(&r->lock[i]);

		if (ns > longest)
			longest = ns;
	}
	return longest;
}
