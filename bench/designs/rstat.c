/* SPDX-License-Identifier: MIT */
/* Implements rstat.h. */
#include "designs/rstat.h"

#include <sched.h>

#define LINE         128u
#define ROUND(n, to) (((n) + (to)-1) / (to) * (to))

struct layout {
	size_t cell, slot, group;           /* sizes */
	size_t slots, groups, cells, bytes; /* offsets, and all of it */
};

static struct layout layout_of(const struct design_shape *s)
{
	/* Two words of each counter, in a cell and in a group. */
	const size_t words = 2 * sizeof(uint64_t) * DESIGN_FAMILIES * s->set_size;
	struct layout l;

	l.cell = ROUND(sizeof(struct rstat_cell) + words, 64);
	/* Not a multiple of the page: a group's cells would all meet in one set of a cache. */
	l.slot = ROUND(l.cell * s->groups, 4096) + LINE;
	l.group = ROUND(sizeof(struct rstat_group) + words, 64);
	l.slots = ROUND(sizeof(struct rstat), LINE);
	l.groups = l.slots + s->slots * sizeof(struct rstat_slot);
	l.cells = ROUND(l.groups + l.group * s->groups, 4096);
	l.bytes = ROUND(l.cells + l.slot * s->slots, 4096);
	return l;
}

size_t rstat_size(const struct design_shape *shape)
{
	return layout_of(shape).bytes;
}

int rstat_open(const struct design_shape *shape, void *memory, unsigned how, struct rstat **ret)
{
	const struct layout l = layout_of(shape);
	struct rstat *r = memory;

	if (shape->set_size < 1 || shape->set_size > DESIGN_MAX_SET || shape->groups < 1 ||
	    shape->slots < 1)
		return -EINVAL;
	r->shape = *shape;
	r->trees = how & RSTAT_TREES ? DESIGN_FAMILIES : 1;
	r->how = how;
	r->cell_size = l.cell;
	r->slot_size = l.slot;
	r->group_size = l.group;
	r->slots = (void *)((char *)memory + l.slots);
	r->groups = (char *)memory + l.groups;
	r->cells = (char *)memory + l.cells;
	rstat_group(r, 0)->parent = RSTAT_NONE;
	rstat_group(r, 0)->generation = rstat_group(r, 0)->former = 1;
	*ret = r;
	return 0;
}

void rstat_close(void *tree)
{
	(void)tree; /* all of it lies in the caller's memory */
}

static uint64_t ref_of(const struct rstat *r, uint32_t index)
{
	return (uint64_t)rstat_group(r, index)->generation << 32 | index;
}

uint64_t rstat_root(void *tree)
{
	return ref_of(tree, 0);
}

/* ---- slots and pins ---- */

static bool take_turn(uint32_t *turn)
{
	uint32_t now = load_relaxed(turn);

	/* Sees what the last holder did; pairs with the release in give_turn(). */
	if (now % 2 || !cas_seq_cst(turn, &now, now + 1))
		return false;
	/* Before groups are looked at; pairs with rstat_remove() and wait_turn(). */
	fence_seq_cst();
	return true;
}

static void give_turn(uint32_t *turn)
{
	store_release(turn, load_relaxed(turn) + 1);
}

/* Until who has it now has left; pairs with both. */
static void wait_turn(const uint32_t *turn)
{
	const uint32_t now = load_seq_cst(turn);

	for (unsigned tries = 0; now % 2 && load_acquire(turn) == now; tries++)
		spin_wait(tries);
}

unsigned rstat_enter(void *tree, unsigned wanted)
{
	struct rstat *r = tree;

	for (;; sched_yield())
		for (unsigned i = 0; i < r->shape.slots; i++) {
			unsigned slot = (wanted + i) % r->shape.slots;

			if (take_turn(&r->slots[slot].turn))
				return slot;
		}
}

void rstat_leave(void *tree, unsigned slot)
{
	struct rstat *r = tree;

	give_turn(&r->slots[slot].turn);
}

unsigned rstat_pin(struct rstat *r)
{
	static _Thread_local unsigned last;

	for (;; sched_yield())
		for (unsigned i = 0; i < RSTAT_PINS; i++) {
			unsigned pin = (last + i) % RSTAT_PINS;

			if (take_turn(&r->pin[pin].turn))
				return last = pin;
		}
}

void rstat_unpin(struct rstat *r, unsigned pin)
{
	give_turn(&r->pin[pin].turn);
}

/* Returns when all who might still use a group that was removed before have left. */
static void wait_for_users(const struct rstat *r)
{
	for (unsigned i = 0; i < r->shape.slots; i++)
		wait_turn(&r->slots[i].turn);
	for (unsigned i = 0; i < RSTAT_PINS; i++)
		wait_turn(&r->pin[i].turn);
}

/* ---- groups ---- */

static void clear_words(uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		store_relaxed(&words[i], 0);
}

/* Under shape_lock, of a group that nobody has: but for readers who validate by the generation. */
static void clear(struct rstat *r, uint32_t index)
{
	const size_t words = 2 * (size_t)DESIGN_FAMILIES * r->shape.set_size;

	/* Whoever reads a cleared word also sees that the former generation is over; pairs with the
	 * fence of such readers. */
	fence_release();
	clear_words(rstat_group(r, index)->word, words);
	for (unsigned slot = 0; slot < r->shape.slots; slot++)
		clear_words(rstat_cell(r, slot, index)->word, words);
}

int rstat_create(void *tree, uint64_t parent, uint64_t *ret)
{
	struct rstat *r = tree;
	uint32_t above, i = 1;
	int err = -ENOSPC;

	spin_lock(&r->shape_lock);
	above = rstat_index(r, parent);
	while (i < r->shape.groups && rstat_group(r, i)->generation)
		i++;
	if (above == RSTAT_NONE) {
		err = -ENOENT;
	} else if (i < r->shape.groups) {
		struct rstat_group *g = rstat_group(r, i);

		clear(r, i);
		g->parent = above;
		g->children = 0;
		rstat_group(r, above)->children++;
		g->former++;
		store_relaxed(&g->generation, g->former);
		*ret = ref_of(r, i);
		err = 0;
	}
	spin_unlock(&r->shape_lock);
	return err;
}

int rstat_remove(struct rstat *r, uint64_t group,
		 void (*flush)(struct rstat *r, uint32_t group, unsigned tree))
{
	struct rstat_group *g;
	uint32_t index;
	int err = 0;

	spin_lock(&r->shape_lock);
	index = rstat_index(r, group);
	g = index == RSTAT_NONE ? NULL : rstat_group(r, index);
	if (!g) {
		err = -ENOENT;
	} else if (g->children || g->parent == RSTAT_NONE) {
		err = -EBUSY;
	} else {
		store_seq_cst(&g->generation, 0); /* pairs with who enters and then looks at it */
		wait_for_users(r);
		for (unsigned tree = 0; tree < r->trees; tree++)
			flush(r, index, tree);
		wait_for_users(r); /* whoever had taken it off a tree */
		rstat_group(r, g->parent)->children--;
	}
	spin_unlock(&r->shape_lock);
	return err;
}

/* ---- the updated trees ---- */

void rstat_link(struct rstat *r, unsigned tree, unsigned slot, uint32_t group)
{
	for (;;) {
		const uint32_t above = rstat_group(r, group)->parent;
		struct rstat_node *node = &rstat_cell(r, slot, group)->node[tree], *parent;

		if (node->next)
			return;
		if (above == RSTAT_NONE) {
			store_relaxed(&node->next, RSTAT_END);
			return;
		}
		parent = &rstat_cell(r, slot, above)->node[tree];
		store_relaxed(&node->next, parent->children ? parent->children : RSTAT_END);
		parent->children = group + 1;
		group = above;
	}
}

/* Makes the slot's list of marked groups part of its tree. */
static void link_marked(struct rstat *r, unsigned tree, unsigned slot)
{
	/* Pairs with rstat_mark_lockless(). */
	uint32_t at = __atomic_exchange_n(&r->slots[slot].marked[tree], 0, __ATOMIC_SEQ_CST);

	while (at && at != RSTAT_END) {
		struct rstat_node *node = &rstat_cell(r, slot, at - 1)->node[tree];
		const uint32_t next = load_relaxed(&node->mark);

		rstat_link(r, tree, slot, at - 1);
		/* From here on an update marks it again; what was added before is read after the
		 * fence in rstat_take(). */
		store_release(&node->mark, 0);
		at = next;
	}
}

static void unlink_from_parent(struct rstat *r, unsigned tree, unsigned slot, uint32_t group)
{
	const uint32_t above = rstat_group(r, group)->parent;
	const struct rstat_node *node = &rstat_cell(r, slot, group)->node[tree];
	const uint32_t next = node->next == RSTAT_END ? 0 : node->next;
	struct rstat_node *at;

	if (above == RSTAT_NONE)
		return;
	at = &rstat_cell(r, slot, above)->node[tree];
	if (at->children == group + 1) {
		at->children = next;
		return;
	}
	for (at = &rstat_cell(r, slot, at->children - 1)->node[tree]; at->next != group + 1;)
		at = &rstat_cell(r, slot, at->next - 1)->node[tree];
	store_relaxed(&at->next, node->next);
}

/* Children are taken after their parent, and so come before it in the list. */
static uint32_t take_subtree(struct rstat *r, unsigned tree, unsigned slot, uint32_t group)
{
	uint32_t list = RSTAT_NONE, open = group;

	rstat_cell(r, slot, group)->node[tree].flush = RSTAT_NONE;
	while (open != RSTAT_NONE) {
		const uint32_t taken = open;
		struct rstat_node *node = &rstat_cell(r, slot, taken)->node[tree];
		uint32_t child = node->children;

		open = node->flush;
		node->flush = list;
		list = taken;
		while (child && child != RSTAT_END) {
			struct rstat_node *below = &rstat_cell(r, slot, child - 1)->node[tree];

			below->flush = open;
			open = child - 1;
			child = below->next;
		}
		node->children = 0;
		store_relaxed(&node->next, 0);
	}
	return list;
}

uint32_t rstat_detach(struct rstat *r, unsigned tree, unsigned slot, uint32_t group)
{
	if (r->how & RSTAT_LOCKLESS)
		link_marked(r, tree, slot);
	if (!rstat_cell(r, slot, group)->node[tree].next)
		return RSTAT_NONE;
	unlink_from_parent(r, tree, slot, group);
	return take_subtree(r, tree, slot, group);
}

uint32_t rstat_take(struct rstat *r, unsigned tree, unsigned slot, uint32_t group)
{
	struct spin *lock = r->how & RSTAT_LOCKLESS ? NULL : &r->slots[slot].lock[tree];
	uint32_t list;

	if (lock)
		spin_lock(lock);
	list = rstat_detach(r, tree, slot, group);
	if (lock)
		spin_unlock(lock);
	/* Pairs with the one in rstat_update(): who found its group still on the tree has added
	 * what is read from here on. */
	fence_seq_cst();
	return list;
}

/* ---- cells and totals ---- */

void rstat_cell_read(const struct rstat *r, struct rstat_cell *c, unsigned family, uint64_t *values)
{
	const uint64_t *now = rstat_now(r, c, family);
	uint32_t seq;

	if (r->how & RSTAT_AS_KERNEL) {
		for (unsigned i = 0; i < r->shape.set_size; i++)
			values[i] = now[i];
		return;
	}
	for (unsigned tries = 0;; spin_wait(tries++)) {
		seq = load_acquire(&c->seq); /* pairs with the release in rstat_update() */
		if (seq % 2)
			continue;
		for (unsigned i = 0; i < r->shape.set_size; i++)
			values[i] = load_relaxed(&now[i]);
		fence_acquire(); /* pairs with the release fence there */
		if (load_relaxed(&c->seq) == seq)
			return;
	}
}

static void flush_cell(struct rstat *r, unsigned slot, uint32_t group, unsigned family)
{
	struct rstat_cell *c = rstat_cell(r, slot, group);
	struct rstat_group *g = rstat_group(r, group);
	struct rstat_group *above = g->parent == RSTAT_NONE ? NULL : rstat_group(r, g->parent);
	uint64_t *last = rstat_last(r, c, family), *total = rstat_total(r, g, family);
	uint64_t *sent = rstat_sent(r, g, family), now[DESIGN_MAX_SET];

	rstat_cell_read(r, c, family, now);
	for (unsigned i = 0; i < r->shape.set_size; i++) {
		store_relaxed(&total[i], total[i] + now[i] - last[i]);
#ifdef PLANT_READ_TWICE /* for tests/conform, which must notice it */
		last[i] = load_relaxed(&rstat_now(r, c, family)[i]);
#else
		last[i] = now[i];
#endif
		if (above) {
			uint64_t *up = rstat_total(r, above, family);

			store_relaxed(&up[i], up[i] + total[i] - sent[i]);
			sent[i] = total[i];
		}
	}
}

void rstat_flush_slot(struct rstat *r, unsigned tree, unsigned slot, uint32_t group)
{
	uint32_t at = rstat_take(r, tree, slot, group);

	for (; at != RSTAT_NONE; at = rstat_next(r, tree, slot, at))
		for (unsigned family = 0; family < DESIGN_FAMILIES; family++)
			if (rstat_tree_of(r, family) == tree)
				flush_cell(r, slot, at, family);
}

void rstat_copy_total(const struct rstat *r, uint32_t group, unsigned family, uint64_t *values)
{
	const uint64_t *total = rstat_total(r, rstat_group(r, group), family);

	for (unsigned i = 0; i < r->shape.set_size; i++)
		values[i] = load_relaxed(&total[i]);
}
