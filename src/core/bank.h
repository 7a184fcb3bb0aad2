/* SPDX-License-Identifier: MIT */
/*
 * One pass of a segment as a reader walks it.
 *
 * Use: bank_load(); read by the functions below; bank_whole(). Until bank_whole() has said yes, all
 * that was read may be torn, an error included: then start again. When it says yes, an error stands.
 * bank_read() is that loop.
 *
 * Invariant: nothing read from the segment is used as an index or a bound before it was checked
 * against `struct freshet_view` or against a checked field of `struct bank`, and it is read once.
 *
 * Ordering: bank_load()'s acquire pairs with the release store in writer_publish(): what was stored
 * before the pass was published is seen. bank_whole()'s acquire fence pairs with the release fence
 * behind that store: who sees a word of the pass that overwrites this bank sees the generation that
 * was published before it.
 */
#ifndef FRESHET_BANK_H
#define FRESHET_BANK_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/atomics.h"
#include "core/segment.h"
#include "core/view.h"
#include "core/words.h"

struct bank {
	const struct seg_order *order;
	const char *rows;
	uint64_t pass;
	uint64_t begin_ns;
	uint64_t end_ns;
	uint64_t topology;
	uint64_t epoch;
	uint32_t ngroups; /* <= nslots <= max_groups */
	uint32_t nslots;
};

/* The last published pass. 0 or -EIO. */
static inline int bank_load(const struct freshet_view *v, struct bank *b)
{
	uint64_t pass = load_acquire(&v->header->generation);
	const char *p = v->banks + (pass & (v->nbanks - 1)) * v->bank_stride;
	const struct seg_bank *s = (const void *)p;

	b->order = (const void *)(p + SEG_ORDER_OFFSET);
	b->rows = p + v->rows_offset;
	b->pass = pass;
	b->begin_ns = load_relaxed(&s->begin_ns);
	b->end_ns = load_relaxed(&s->end_ns);
	b->topology = load_relaxed(&s->topology);
	b->epoch = load_relaxed(&s->epoch);
	b->ngroups = load_relaxed(&s->ngroups);
	b->nslots = load_relaxed(&s->nslots);
	if (load_relaxed(&s->generation) != pass || b->nslots > v->max_groups ||
	    b->ngroups > b->nslots)
		return -EIO;
	return 0;
}

/* Whether everything read since bank_load() belongs to that pass. */
static inline bool bank_whole(const struct freshet_view *v, const struct bank *b)
{
#ifdef PLANT_NO_RECHECK /* for the race test, which must notice it */
	return true;
#endif
	fence_acquire();
	return load_relaxed(&v->header->generation) - b->pass <= v->nbanks - 2;
}

/* Runs fn on passes until its result stands, or FRESHET_MAX_TRIES times: -EAGAIN. fn's own -EAGAIN (a
 * set that was always rewritten) is tried again, too. */
typedef int bank_fn(const struct freshet_view *v, const struct bank *b, void *arg);

static inline int bank_read(const struct freshet_view *v, bank_fn *fn, void *arg)
{
	for (unsigned i = 0; i < FRESHET_MAX_TRIES; i++) {
		struct bank b;
		int r = bank_load(v, &b);

		if (r == 0)
			r = fn(v, &b, arg);
		if (bank_whole(v, &b) && r != -EAGAIN)
			return r;
	}
	return -EAGAIN;
}

/* Entry i < ngroups. Afterwards slot < nslots, parent < i (root: 0), 1 <= size <= ngroups - i. */
static inline int bank_order(const struct bank *b, uint32_t i, struct seg_order *ret)
{
	const struct seg_order *s = &b->order[i];

	ret->slot = load_relaxed(&s->slot);
	ret->parent = load_relaxed(&s->parent);
	ret->size = load_relaxed(&s->size);
	ret->depth = load_relaxed(&s->depth);
	if (ret->slot >= b->nslots || ret->size == 0 || ret->size > b->ngroups - i ||
	    (i ? ret->parent >= i : ret->parent != 0))
		return -EIO;
	return 0;
}

/* Row of a slot < nslots. */
static inline const struct seg_row *bank_row(const struct freshet_view *v, const struct bank *b,
					     uint32_t slot)
{
	return (const void *)(b->rows + (size_t)slot * v->row_stride);
}

static inline struct freshet_group bank_group(const struct freshet_view *v, const struct bank *b,
					      uint32_t slot)
{
	struct freshet_group g = { slot, load_relaxed(&bank_row(v, b, slot)->generation) };

	return g;
}

/* Makes the values of absent columns 0, and bits of columns that there are not. */
static inline uint64_t bank_present(uint64_t present, uint64_t *values, unsigned count)
{
	uint64_t all = count < 64 ? (1ull << count) - 1 : UINT64_MAX;

	present &= all;
	if (present != all)
		for (unsigned i = 0; i < count; i++)
			if (!(present >> i & 1))
				values[i] = 0;
	return present;
}

/* Entry of a group in order[], and what stands there. 0, -ENOENT or -EIO. */
static inline int bank_entry(const struct freshet_view *v, const struct bank *b,
			     struct freshet_group g, uint32_t *ret, struct seg_order *ret_order)
{
	const struct seg_row *row;

	if (g.generation == 0 || g.slot >= b->nslots)
		return -ENOENT;
	row = bank_row(v, b, g.slot);
	if (load_relaxed(&row->generation) != g.generation)
		return -ENOENT;
	*ret = load_relaxed(&row->position);
	if (*ret >= b->ngroups || bank_order(b, *ret, ret_order) || ret_order->slot != g.slot)
		return -EIO;
	return 0;
}

struct bank_name {
	_Alignas(8) char s[FRESHET_NAME_MAX + 1]; /* NUL-terminated */
	uint32_t len;
};

/* 0 or -EIO. */
static inline int bank_name(const struct freshet_view *v, struct freshet_group g, bool root,
			    struct bank_name *ret)
{
	const struct seg_group *s = (const void *)(v->groups + (size_t)g.slot * v->group_stride);
	uint32_t n = load_relaxed(&s->name_len);

	if (g.generation == 0 || load_relaxed(&s->generation) != g.generation ||
	    n > FRESHET_NAME_MAX)
		return -EIO;
	words_load(ret->s, s->name, n / 8 + 1);
	if (ret->s[n] || !seg_name_good(ret->s, n, root))
		return -EIO;
	ret->len = n;
	return 0;
}

static inline uint64_t bank_id(const struct freshet_view *v, uint32_t slot)
{
	const struct seg_group *s = (const void *)(v->groups + (size_t)slot * v->group_stride);

	return load_relaxed(&s->id);
}

#endif
