/* SPDX-License-Identifier: MIT */
/*
 * freshet: the engine of this repository, as a program uses it: freshet_open() with two sets (or, of
 * set size 1, two counters), freshet_add_set(), freshet_read(), freshet_flush(); on restartable
 * sequences ("rseq") and on C11 atomics ("fallback"). A group's number is the address of its handle,
 * as a program has a handle in its own object; handles stay until close().
 *
 * Slots. With rseq the kernel says which CPU slot a thread is on, and there are no more of them than
 * CPUs (a design of the kernel needs one for each CPU there could be). So that flushes and reads have
 * as many cells to look at as those of other designs, slots beyond the rseq ones are fallback slots:
 * who enters one of these updates there, by the fallback's code; who enters another one makes the
 * inline sequence, and nothing but that, wherever the thread runs. What an update costs on rseq is thus
 * update_many() on a slot below the number of CPUs: with some 2 ns more than `freshet-bench update` has
 * it, for a handle that is looked up for each update instead of being kept in registers. On the fallback,
 * all slots are fallback slots.
 * enter() is a wish and not a lock: an update finds itself another slot when it meets one in use. For
 * that there are, as in any tree, some more than are asked for.
 *
 * Flush. freshet_flush() is one of the whole tree, and threads share it. It sleeps, before it begins,
 * until four times the last one's CPU time have passed: to know how long one takes, let that much time
 * pass before it, or take the thread's CPU time. No read needs it.
 *
 * A group can be FRESHET_MAX_DEPTH levels below the root (-ELOOP). update() gives -EAGAIN when nothing
 * was counted as all fallback slots are in use.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "designs/all.h"
#include "engine/tree.h"

/* Fallback slots beyond those asked for: what a tree has by itself. */
#define SPARE_RSEQ     8u
#define SPARE_FALLBACK 64u

/* Never changes, so that who still has the number of a removed one does no harm. */
struct group {
	_Alignas(64) struct freshet_handle handle;
	struct group *next;
};

struct design_tree {
	struct freshet_tree *tree;
	const struct freshet_view *view;
	struct design_shape shape;
	unsigned rseq_slots;
	struct group *groups; /* all that ever were */
	uint64_t root, names;
};

static const struct freshet_handle *handle_of(uint64_t group)
{
	return &((const struct group *)(uintptr_t)group)->handle;
}

/* ---- open and close ---- */

static int keep_group(struct design_tree *t, const struct freshet_handle *h, uint64_t *ret)
{
	struct group *g = aligned_alloc(_Alignof(struct group), sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->handle = *h;
	g->next = load_relaxed(&t->groups);
	while (!cas_seq_cst(&t->groups, &g->next, g)) /* for close_tree() alone, which is alone */
		;
	*ret = (uintptr_t)g;
	return 0;
}

static void close_tree(void *tree)
{
	struct design_tree *t = tree;
	struct group *g;

	freshet_close(t->tree);
	while ((g = t->groups)) {
		t->groups = g->next;
		free(g);
	}
	free(t);
}

static int open_engine(struct design_tree *t, enum freshet_backend backend)
{
	static const char *const families[DESIGN_FAMILIES] = { "first", "second" };
	static const char *const names[DESIGN_MAX_SET] = { "a", "b", "c", "d", "e", "f", "g", "h",
							   "i", "j", "k", "l", "m", "n", "o", "p" };
	struct freshet_stat stats[DESIGN_FAMILIES * DESIGN_MAX_SET];
	const struct freshet_schema schema = { .size = sizeof(schema),
					       .stats = stats,
					       .nstats = DESIGN_FAMILIES * t->shape.set_size };
	const struct freshet_options options = {
		.size = sizeof(options),
		.producer = "freshet-bench",
		.max_groups = t->shape.groups,
		.fallback_slots =
			t->shape.slots + (backend == FRESHET_RSEQ ? SPARE_RSEQ : SPARE_FALLBACK),
		.backend = backend,
	};
	struct freshet_handle root;
	int err;

	for (unsigned i = 0; i < schema.nstats; i++)
		stats[i] = (struct freshet_stat){
			.family = families[i / t->shape.set_size],
			.name = names[i % t->shape.set_size],
			.help = "Updates.",
			.kind = FRESHET_COUNTER,
			.set = t->shape.set_size > 1 ? 1 + i / t->shape.set_size : 0,
		};
	err = freshet_open(NULL, &schema, &options, &t->tree);
	if (err)
		return err;
	t->view = freshet_view_of(t->tree);
	t->rseq_slots = t->tree->cells.rseq_slots;
	root = freshet_tree_root(t->tree);
	return keep_group(t, &root, &t->root);
}

static int open_tree(const struct design_shape *shape, enum freshet_backend backend, void **ret)
{
	struct design_tree *t;
	int err;

	if (shape->set_size < 1 || shape->set_size > DESIGN_MAX_SET || shape->groups < 1 ||
	    shape->slots < 1)
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->shape = *shape;
	err = open_engine(t, backend);
	if (err)
		close_tree(t);
	else
		*ret = t;
	return err;
}

static int open_rseq(const struct design_shape *shape, void *memory, void **ret)
{
	return open_tree(shape, FRESHET_RSEQ, ret);
}

static int open_fallback(const struct design_shape *shape, void *memory, void **ret)
{
	return open_tree(shape, FRESHET_FALLBACK, ret);
}

/* ---- groups ---- */

static uint64_t root_of(void *tree)
{
	const struct design_tree *t = tree;

	return t->root;
}

static int create(void *tree, uint64_t parent, uint64_t *ret)
{
	struct design_tree *t = tree;
	struct freshet_handle h;
	char name[32];
	int err;

	snprintf(name, sizeof(name), "%llu",
		 (unsigned long long)__atomic_fetch_add(&t->names, 1, __ATOMIC_RELAXED));
	/* When all places are taken, it flushes until those of removed groups are free. */
	err = freshet_create(t->tree, handle_of(parent), name, 0, &h);
	if (err)
		return err;
	err = keep_group(t, &h, ret);
	if (err)
		freshet_remove(t->tree, &h, 0);
	return err;
}

static int remove_group(void *tree, uint64_t group)
{
	const struct design_tree *t = tree;
	int err = freshet_remove(t->tree, handle_of(group), 0);

	return err == -ENOTEMPTY ? -EBUSY : err;
}

/* ---- updates ---- */

static unsigned enter(void *tree, unsigned wanted)
{
	const struct design_tree *t = tree;
	const unsigned slot = wanted % t->shape.slots;

	if (slot >= t->rseq_slots)
		update_prefer(slot - t->rseq_slots);
	return slot;
}

static void leave(void *tree, unsigned slot)
{
}

static const int64_t ones[DESIGN_MAX_SET] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

/* count: a constant, where it is to be fast. */
static inline __attribute__((always_inline)) int add(const struct freshet_handle *h, unsigned first,
						     unsigned count, const int64_t *n)
{
	return count == 1 ? freshet_add(h, first, n[0]) : freshet_add_set(h, first, count, n);
}

/* Whether updates on the slot are the library's inline functions; see the head. */
static bool is_inline(const struct design_tree *t, unsigned slot)
{
	return slot < t->rseq_slots || t->rseq_slots == 0;
}

static int update(void *tree, unsigned slot, uint64_t group, unsigned family, uint64_t n)
{
	const struct design_tree *t = tree;
	const unsigned count = t->shape.set_size;
	int64_t amounts[DESIGN_MAX_SET];

	for (unsigned i = 0; i < count; i++)
		amounts[i] = (int64_t)n;
	if (is_inline(t, slot))
		return add(handle_of(group), family * count, count, amounts);
	return update_on_fallback(handle_of(group), family * count, count, amounts);
}

/* -EAGAIN: see the head. */
#define MANY(call)                                                              \
	do {                                                                    \
		for (unsigned at = 0; updates > 0; updates--) {                 \
			const struct freshet_handle *h = handle_of(groups[at]); \
                                                                                \
			while ((call) == -EAGAIN)                               \
				;                                               \
			at = at + 1 < ngroups ? at + 1 : 0;                     \
		}                                                               \
	} while (0)

static void update_many(void *tree, unsigned slot, const uint64_t *groups, unsigned ngroups,
			unsigned family, uint64_t updates)
{
	const struct design_tree *t = tree;
	const unsigned count = t->shape.set_size, first = family * count;

	if (!is_inline(t, slot))
		MANY(update_on_fallback(h, first, count, ones));
	else if (count == 1)
		MANY(add(h, first, 1, ones));
	else if (count == 3)
		MANY(add(h, first, 3, ones));
	else if (count == 16)
		MANY(add(h, first, 16, ones));
	else
		MANY(add(h, first, count, ones));
}

/* ---- flush and reads ---- */

static int read_total(void *tree, uint64_t group, unsigned family, uint64_t *values)
{
	const struct design_tree *t = tree;
	uint64_t present;

	return freshet_read_total(t->view, handle_of(group)->group, family * t->shape.set_size,
				  t->shape.set_size, values, &present, NULL);
}

static int read_group(void *tree, uint64_t group, unsigned family, uint64_t *values)
{
	const struct design_tree *t = tree;
	uint64_t present;

	return freshet_read(t->view, handle_of(group)->group, family * t->shape.set_size,
			    t->shape.set_size, values, &present, NULL);
}

static int flush(void *tree, uint64_t group, unsigned family)
{
	const struct design_tree *t = tree;
	uint64_t values[DESIGN_MAX_SET];
	int err = freshet_flush(t->tree);

	return err ? err : read_total(tree, group, family, values); /* whether it is there */
}

#define FUNCTIONS                                                                       \
	.promises = DESIGN_EXACT | DESIGN_FRESH | DESIGN_WHOLE | DESIGN_MONOTONE |      \
		    DESIGN_UNBLOCKED | DESIGN_QUIET,                                    \
	.close = close_tree, .root = root_of, .create = create, .remove = remove_group, \
	.enter = enter, .leave = leave, .update = update, .update_many = update_many,   \
	.flush = flush, .read = read_group, .read_total = read_total

const struct bench_design design_freshet = {
	.name = "freshet",
	.backend = "rseq",
	.models = "this library: cells by CPU, readers add what was not flushed",
	.open = open_rseq,
	FUNCTIONS
};

const struct bench_design design_freshet_fallback = {
	.name = "freshet-fallback",
	.backend = "fallback",
	.models = "the same on C11 atomics, without restartable sequences",
	.open = open_fallback,
	FUNCTIONS
};
