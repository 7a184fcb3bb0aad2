/* SPDX-License-Identifier: MIT */
/*
 * Fresh reads of a tree with cells: a bank's totals, and what the cells of the groups below have
 * beyond them. The protocol and why it is right: cells.h; checked by tests/model.
 *
 * Cost: a group that never had a child is one group's cells. Of any other the dirty bits of all
 * groups are looked at (one word for 64 groups, per used CPU slot and epoch), then the cells of those
 * that are dirty and lie below it.
 */
#include "core/fresh.h"

#include <errno.h>
#include <string.h>

#include "core/cells.h"
#include "core/words.h"

uint32_t fresh_groups(const struct freshet_view *v)
{
	/* Pairs with create, which stores it before the group's first update. */
	uint32_t used = load_acquire(&v->cells.control->used_groups);

	return used < v->max_groups ? used : v->max_groups;
}

void fresh_life(const struct freshet_view *v, uint32_t d, struct fresh_life *ret)
{
	const struct seg_life *s = cells_life(&v->cells, d);

	/* Pairs with begin_life() in engine/groups.c: the rest is this generation's, or is changing. */
	ret->generation = load_acquire(&s->generation);
	ret->depth = load_relaxed(&s->depth);
	ret->parent = load_relaxed(&s->parent);
	ret->born = load_relaxed(&s->born);
	if (ret->depth > FRESHET_MAX_DEPTH) { /* damage; it is used as an index all the same */
		ret->generation = 0;
		ret->depth = 0;
	}
}

/* Subtracts the bank's own numbers of d. false: they are those of another group, or it was removed. */
static bool subtract_own(const struct freshet_view *v, const struct bank *b, uint32_t d,
			 const struct fresh_life *life, uint32_t first, uint32_t count,
			 uint64_t *sum)
{
	const struct seg_row *row;

	if (b->pass < life->born)
		return true; /* the bank does not know it: all is new */
	if (d >= b->nslots)
		return false;
	row = bank_row(v, b, d);
	if (load_relaxed(&row->generation) != life->generation)
		return false; /* removed: the bank's totals have it */
#ifndef PLANT_OWN_KEPT /* for tests/conform, which must notice it */
	for (uint32_t i = 0; i < count; i++)
		sum[i] -= load_relaxed(&row->value[v->words + first + i]);
#endif
	return true;
}

static bool sum_cells(const struct freshet_view *v, struct cells_range range, uint32_t d,
		      uint32_t first, uint32_t count, uint64_t *sum)
{
	const struct cells *c = &v->cells;
	uint32_t i = first < v->nstats ? v->part_of[first] : 0;

	for (; count; i++) {
		const struct seg_part *p = &c->parts[i];
		uint32_t skip, n;

		if (first >= p->first + p->count)
			continue;
		skip = first - p->first;
		n = p->count - skip < count ? p->count - skip : count;
		if (!cells_sum(c, range, d, p, skip, n, sum))
			return false;
		first += n;
		count -= n;
		sum += n;
	}
	return true;
}

int fresh_difference(const struct freshet_view *v, const struct bank *b, struct cells_range range,
		     uint32_t d, uint32_t first, uint32_t count, uint64_t *sum,
		     struct fresh_life *life)
{
	uint64_t difference[FRESH_CHUNK];

	if (life->generation == 0)
		return 0;
	for (uint32_t i = 0; i < count; i++)
		difference[i] = 0;
	if (!subtract_own(v, b, d, life, first, count, difference)) {
		life->generation = 0;
		return 0;
	}
	if (!sum_cells(v, range, d, first, count, difference))
		return -EAGAIN;
	/* Pairs with begin_life(): whose cells were seen zeroed, its generation is seen to change. */
	fence_acquire();
	if (load_relaxed(&cells_life(&v->cells, d)->generation) != life->generation) {
		life->generation = 0;
		return 0;
	}
	for (uint32_t i = 0; i < count; i++)
		sum[i] += difference[i];
	return 0;
}

struct fresh_read {
	struct freshet_group group;
	uint32_t first, count;
	uint64_t *values;
	struct freshet_moment moment;
};

/* The bank's totals of a group, or 0 if it is younger than the bank. */
static int load_totals(const struct freshet_view *v, const struct bank *b,
		       const struct fresh_life *life, struct fresh_read *f)
{
	const struct seg_row *row = bank_row(v, b, f->group.slot);

	if (f->group.slot < b->nslots && load_relaxed(&row->generation) == f->group.generation) {
		words_load(f->values, &row->value[f->first], f->count);
		return 0;
	}
	if (life->generation != f->group.generation || b->pass >= life->born)
		return -ENOENT;
	memset(f->values, 0, 8 * (size_t)f->count);
	return 0;
}

static int read_fresh(const struct freshet_view *v, const struct bank *b, void *arg)
{
	struct fresh_read *f = arg;
	const uint32_t groups = fresh_groups(v);
	struct cells_range range = cells_range(&v->cells);
	struct fresh_life life, below;
	int r;

	if (f->group.generation == 0 || f->group.slot >= groups)
		return -ENOENT;
	fresh_life(v, f->group.slot, &life);
	r = load_totals(v, b, &life, f);
	if (r)
		return r;
	f->moment = (struct freshet_moment){ b->pass, b->begin_ns, b->end_ns };
	if (!life.parent)
		return fresh_difference(v, b, range, f->group.slot, f->first, f->count, f->values,
					&life);
	for (uint32_t i = 0; i * 64 < groups; i++) {
		uint64_t bits = cells_dirty(&v->cells, range, b->epoch, i);

		for (; bits; bits &= bits - 1) {
			uint32_t d = i * 64 + (uint32_t)__builtin_ctzll(bits);

			if (d >= groups)
				break;
			fresh_life(v, d, &below);
			if (below.depth < life.depth ||
			    fresh_ancestor(v, d, life.depth) != f->group.slot)
				continue;
			r = fresh_difference(v, b, range, d, f->first, f->count, f->values,
					     &below);
			if (r)
				return r;
		}
	}
	return 0;
}

int freshet_read(const struct freshet_view *v, struct freshet_group group, unsigned first,
		 unsigned count, uint64_t *values, uint64_t *present, struct freshet_moment *moment)
{
	struct fresh_read f = {
		.group = group, .first = first, .count = count, .values = values
	};
	int r;

	if (!v->live)
		return freshet_read_total(v, group, first, count, values, present, moment);
	if (first >= v->nstats || count > v->nstats - first)
		return -EINVAL;
	r = bank_read(v, read_fresh, &f);
	if (r)
		return r;
	*present = count < 64 ? (1ull << count) - 1 : UINT64_MAX;
	if (moment)
		*moment = f.moment;
	return 0;
}

int freshet_read_histogram(const struct freshet_view *v, struct freshet_group group,
			   unsigned histogram, uint64_t *buckets, uint64_t *sum)
{
	const struct freshet_histogram *h;
	uint64_t last;
	int r = 0;

	if (histogram >= v->nhistograms)
		return -EINVAL;
	h = &v->histograms[histogram];
	/* In pieces, each whole in itself: the numbers of a histogram are not Whole anyway. */
	for (uint32_t done = 0; r == 0 && done < h->buckets; done += FRESH_CHUNK) {
		struct fresh_read f = { .group = group, .first = h->word + done,
					.values = buckets + done };

		f.count = h->buckets - done < FRESH_CHUNK ? h->buckets - done : FRESH_CHUNK;
		r = bank_read(v, read_fresh, &f);
	}
	if (r == 0 && sum) {
		struct fresh_read f = { .group = group, .first = h->word + h->buckets,
					.count = 1, .values = &last };

		r = bank_read(v, read_fresh, &f);
		if (r == 0)
			*sum = last;
	}
	return r;
}
