/* SPDX-License-Identifier: MIT */
/*
 * Reads groups and checks what comes out against the books and against what came out before.
 *
 * Of every number: at least what was done when the read began (Fresh), at most what was begun when
 * it ended (Exact), equal within a set (Whole), not less than the same function said before
 * (Monotone), and said at all (Unblocked, or Exact where readers may wait). Busy, of which every
 * decrease follows its increase, is never below 0 (Whole).
 */
#include <errno.h>
#include <string.h>

#include "conform/world.h"

typedef unsigned long long ull;

void reader_init(struct reader_thread *r, unsigned number, void *reader)
{
	*r = (struct reader_thread){ .number = number,
				     .reader = reader,
				     .random = world->seed * 31 + number + 1 };
}

struct bounds {
	uint64_t count[KINDS];
};

static struct bounds done_bounds(unsigned fixed)
{
	struct bounds b = { 0 };

	for (unsigned i = 0; i < SEATS; i++)
		for (unsigned k = 0; k < KINDS; k++)
			/* Pairs with end() in updater.c: what was done can be read. */
			b.count[k] += load_acquire(&world->account[fixed][i].done[k]);
	return b;
}

static struct bounds begun_bounds(unsigned fixed)
{
	struct bounds b = { 0 };

	/* After the read; pairs with the release of the updates themselves. */
	fence_acquire();
	for (unsigned i = 0; i < SEATS; i++)
		for (unsigned k = 0; k < KINDS; k++)
			b.count[k] += load_relaxed(&world->account[fixed][i].begun[k]);
	return b;
}

void done_of(unsigned fixed, uint64_t *ops, uint64_t *sets)
{
	struct bounds b = done_bounds(fixed);

	*ops = b.count[OPS];
	*sets = b.count[SETS];
}

static void check_bounds(struct tally *t, const char *what, unsigned place, const struct numbers *n,
			 const struct bounds *low, const struct bounds *high)
{
	check(t, FRESH, n->ops >= low->count[OPS] && n->set[0] >= low->count[SETS],
	      "%s of place %u: ops %lld, set %lld less than were done", what, place,
	      (long long)(low->count[OPS] - n->ops), (long long)(low->count[SETS] - n->set[0]));
	if (high)
		check(t, EXACT, n->ops <= high->count[OPS] && n->set[0] <= high->count[SETS],
		      "%s of place %u: ops %lld, set %lld more than were begun", what, place,
		      (long long)(n->ops - high->count[OPS]),
		      (long long)(n->set[0] - high->count[SETS]));
}

static void check_alone(struct tally *t, const char *what, unsigned place, const struct numbers *n,
			struct numbers *last)
{
	check(t, WHOLE,
	      n->set[0] == n->set[1] && n->set[0] == n->set[2] && n->busy >= 0 && n->apart == 0,
	      "%s of place %u: set %llu %llu %llu, busy %lld, others apart by %llx", what, place,
	      (ull)n->set[0], (ull)n->set[1], (ull)n->set[2], (long long)n->busy, (ull)n->apart);
	check(t, MONOTONE, n->ops >= last->ops && n->set[0] >= last->set[0],
	      "%s of place %u: ops %llu after %llu, set %llu after %llu", what, place, (ull)n->ops,
	      (ull)last->ops, (ull)n->set[0], (ull)last->set[0]);
	*last = *n;
}

static bool finished(struct tally *t, const char *what, unsigned place, int e)
{
	store_relaxed(&t->reads, t->reads + 1);
	return check(t, to_finish(), e == 0, "%s of place %u: %s", what, place, strerror(-e));
}

static void read_fixed(struct reader_thread *r, unsigned place)
{
	struct tally *t = &world->tally[r->number];
	struct bounds low = done_bounds(place), high;
	struct numbers n;
	int e = design->read(r->reader, world->fixed[place], &n);

	if (!finished(t, "read", place, e))
		return;
	high = begun_bounds(place);
	check_bounds(t, "read", place, &n, &low, &high);
	check_alone(t, "read", place, &n, &r->last[place]);
}

static uint64_t count_of(uint64_t word, uint64_t incarnation, bool *moved)
{
	if (word >> 32 == incarnation)
		return (uint32_t)word;
	if (word >> 32 > incarnation)
		*moved = true;
	return 0;
}

static void read_leaf(struct reader_thread *r, unsigned leaf)
{
	struct tally *t = &world->tally[r->number];
	struct bounds low = { 0 }, high = { 0 };
	const struct leaf_account *a = world->leaf_account[leaf];
	const unsigned place = FIXED + leaf;
	uint64_t incarnation;
	bool moved = false;
	struct numbers n;
	struct group g;
	int e;

	if (!leaf_load(leaf, &incarnation, &g))
		return;
	for (unsigned i = 0; i < SEATS; i++)
		for (unsigned k = 0; k < SEEN; k++)
			/* Pairs with end() in updater.c. */
			low.count[k] += count_of(load_acquire(&a[i].done[k]), incarnation, &moved);
	e = design->read(r->reader, g.ref, &n);
	if (e == -ENOENT && load_acquire(&world->leaf[leaf].incarnation) != incarnation)
		return;
	if (!finished(t, "read", place, e))
		return;
	fence_acquire();
	for (unsigned i = 0; i < SEATS; i++)
		for (unsigned k = 0; k < SEEN; k++)
			high.count[k] +=
				count_of(load_relaxed(&a[i].begun[k]), incarnation, &moved);
	if (r->incarnation[place] != incarnation)
		memset(&r->last[place], 0, sizeof(r->last[place]));
	r->incarnation[place] = incarnation;
	check_bounds(t, "read", place, &n, &low, moved ? NULL : &high);
	check_alone(t, "read", place, &n, &r->last[place]);
}

static void read_flushed(struct reader_thread *r, unsigned place)
{
	struct tally *t = &world->tally[r->number];
	struct bounds high;
	struct numbers n;
	int e = design->read_flushed(r->reader, world->fixed[place], &n);

	if (!finished(t, "read_flushed", place, e))
		return;
	high = begun_bounds(place);
	check(t, EXACT, n.ops <= high.count[OPS] && n.set[0] <= high.count[SETS],
	      "read_flushed of place %u: ops %lld, set %lld more than were begun", place,
	      (long long)(n.ops - high.count[OPS]), (long long)(n.set[0] - high.count[SETS]));
	check_alone(t, "read_flushed", place, &n, &r->last_flushed[place]);
}

static void check_distribution(struct reader_thread *r, const char *what, unsigned place,
			       const struct distribution *d, const struct bounds *low,
			       const struct bounds *high)
{
	struct tally *t = &world->tally[r->number];
	uint64_t n = 0;
	bool back = false;

	for (unsigned i = 0; i < BUCKETS; i++)
		n += d->bucket[i];
	check(t, FRESH, n >= low->count[SEEN],
	      "%s of place %u: %lld observations less than were done", what, place,
	      (long long)(low->count[SEEN] - n));
	check(t, EXACT, n <= high->count[SEEN],
	      "%s of place %u: %lld observations more than were begun", what, place,
	      (long long)(n - high->count[SEEN]));
	if (what[0] != 'd')
		return; /* another function: no comparison with the last */
	for (unsigned i = 0; i < BUCKETS; i++)
		back |= d->bucket[i] < r->last_distribution[place].bucket[i];
	back |= d->sum < r->last_distribution[place].sum;
	check(t, MONOTONE, !back, "%s of place %u", what, place);
	r->last_distribution[place] = *d;
}

static void read_distribution(struct reader_thread *r, unsigned place)
{
	struct bounds low = done_bounds(place), high;
	struct distribution d;
	int e = design->read_distribution(r->reader, world->fixed[place], &d);

	if (!finished(&world->tally[r->number], "distribution", place, e))
		return;
	high = begun_bounds(place);
	check_distribution(r, "distribution", place, &d, &low, &high);
}

struct seen {
	struct reader_thread *r;
	unsigned count;
	unsigned fixed; /* bits: was in the snapshot */
	struct bounds low[FIXED];
	struct numbers n[FIXED];
	struct distribution d[FIXED];
	struct {
		uint64_t ref, ops, sets, below_ops, below_sets;
	} group[MAX_GROUPS];
};

static void see(void *arg, uint64_t ref, uint64_t parent_ref, const struct numbers *n,
		const struct distribution *d)
{
	struct seen *s = arg;
	struct tally *t = &world->tally[s->r->number];

	check(t, WHOLE, n->set[0] == n->set[1] && n->set[0] == n->set[2] && n->busy >= 0,
	      "snapshot: set %llu %llu %llu, busy %lld", (ull)n->set[0], (ull)n->set[1],
	      (ull)n->set[2], (long long)n->busy);
	for (unsigned i = 0; i < FIXED; i++) {
		if (world->fixed[i] != ref)
			continue;
		s->fixed |= 1u << i;
		s->n[i] = *n;
		s->d[i] = *d;
	}
	/* Parents come first, and the last is the likeliest. */
	for (unsigned i = s->count; parent_ref && i-- > 0;) {
		if (s->group[i].ref != parent_ref)
			continue;
		s->group[i].below_ops += n->ops;
		s->group[i].below_sets += n->set[0];
		break;
	}
	if (s->count < MAX_GROUPS) {
		s->group[s->count].ref = ref;
		s->group[s->count].ops = n->ops;
		s->group[s->count].sets = n->set[0];
		s->group[s->count].below_ops = s->group[s->count].below_sets = 0;
		s->count++;
	}
}

static void take_snapshot(struct reader_thread *r)
{
	struct tally *t = &world->tally[r->number];
	static _Thread_local struct seen s;
	struct bounds high;
	int e;

	s.r = r;
	s.count = s.fixed = 0;
	for (unsigned i = 0; i < FIXED; i++)
		s.low[i] = done_bounds(i);
	e = design->snapshot(r->reader, see, &s);
	if (!finished(t, "snapshot", 0, e))
		return;
	check(t, EXACT, s.fixed == (1u << FIXED) - 1, "snapshot: groups %x of %x", s.fixed,
	      (1u << FIXED) - 1);
	for (unsigned i = 0; i < FIXED; i++) {
		if (!(s.fixed >> i & 1))
			continue;
		high = begun_bounds(i);
		check_bounds(t, "snapshot", i, &s.n[i], &s.low[i], &high);
		check_alone(t, "snapshot", i, &s.n[i], &r->last_snapshot[i]);
		check_distribution(r, "snapshot", i, &s.d[i], &s.low[i], &high);
	}
	/* A group counts at least what those below it do, which are in the same snapshot. */
	for (unsigned i = 0; i < s.count; i++)
		check(t, WHOLE,
		      s.group[i].ops >= s.group[i].below_ops &&
			      s.group[i].sets >= s.group[i].below_sets,
		      "snapshot: group %u counts %llu, those below it %llu", i, (ull)s.group[i].ops,
		      (ull)s.group[i].below_ops);
}

void reader_step(struct reader_thread *r)
{
	uint64_t x = next_random(&r->random);
	unsigned what = x % 128, which = (unsigned)(x >> 32);

	if (what == 0 && design->snapshot)
		take_snapshot(r);
	else if (what < 6 && design->read_distribution)
		read_distribution(r, which % FIXED);
	else if (what < 16)
		read_flushed(r, which % FIXED);
	else if (what < 64)
		read_leaf(r, which % LEAVES);
	else if (what < 80)
		read_fixed(r, 0);
	else
		read_fixed(r, which % FIXED);
}

static struct account rest_of(unsigned fixed)
{
	struct account all = { 0 };

	for (unsigned i = 0; i < SEATS; i++) {
		const struct account *a = &world->account[fixed][i];

		for (unsigned k = 0; k < KINDS; k++)
			all.done[k] += a->done[k];
		for (unsigned b = 0; b < BUCKETS; b++)
			all.bucket[b] += a->bucket[b];
		all.busy += a->busy;
		all.sum += a->sum;
		all.unsure += a->unsure;
	}
	return all;
}

static void check_rest(struct tally *t, const char *what, unsigned place, const struct account *a,
		       const struct numbers *n)
{
	check(t, EXACT,
	      n->ops == a->done[OPS] && n->set[0] == a->done[SETS] && n->set[1] == a->done[SETS] &&
		      n->set[2] == a->done[SETS] && n->busy == a->busy,
	      "at rest, %s of place %u: ops %llu of %llu, set %llu of %llu, busy %lld of %lld",
	      what, place, (ull)n->ops, (ull)a->done[OPS], (ull)n->set[0], (ull)a->done[SETS],
	      (long long)n->busy, (long long)a->busy);
}

static void check_rest_distribution(struct tally *t, const char *what, unsigned place,
				    const struct account *a, const struct distribution *d)
{
	check(t, EXACT,
	      d->sum - a->sum <= a->unsure && !memcmp(d->bucket, a->bucket, sizeof(d->bucket)),
	      "at rest, %s of place %u: sum %llu of %llu, first bucket %llu of %llu", what, place,
	      (ull)d->sum, (ull)a->sum, (ull)d->bucket[0], (ull)a->bucket[0]);
}

static void check_rest_leaf(struct reader_thread *r, unsigned leaf)
{
	struct tally *t = &world->tally[r->number];
	uint64_t incarnation, ops = 0, sets = 0;
	struct numbers n;
	struct group g;
	bool moved = false;

	if (!leaf_load(leaf, &incarnation, &g))
		return;
	for (unsigned i = 0; i < SEATS; i++) {
		const struct leaf_account *a = &world->leaf_account[leaf][i];

		ops += count_of(a->done[OPS], incarnation, &moved);
		sets += count_of(a->done[SETS], incarnation, &moved);
	}
	if (finished(t, "read", FIXED + leaf, design->read(r->reader, g.ref, &n)))
		check(t, EXACT, n.ops == ops && n.set[0] == sets,
		      "at rest, leaf %u: ops %llu of %llu, set %llu of %llu", leaf, (ull)n.ops,
		      (ull)ops, (ull)n.set[0], (ull)sets);
}

void reader_check_rest(struct reader_thread *r, bool flushed)
{
	struct tally *t = &world->tally[r->number];
	static _Thread_local struct seen s;

	s.r = r;
	s.count = s.fixed = 0;
	if (design->snapshot && finished(t, "snapshot", 0, design->snapshot(r->reader, see, &s)))
		check(t, EXACT, s.count == FIXED + CROWD + LEAVES, "%u groups in a snapshot",
		      s.count);
	for (unsigned i = 0; i < FIXED; i++) {
		struct account a = rest_of(i);
		struct distribution d;
		struct numbers n;

		if (finished(t, "read", i, design->read(r->reader, world->fixed[i], &n)))
			check_rest(t, "read", i, &a, &n);
		if (design->read_distribution &&
		    finished(t, "distribution", i,
			     design->read_distribution(r->reader, world->fixed[i], &d)))
			check_rest_distribution(t, "distribution", i, &a, &d);
		if (s.fixed >> i & 1) {
			check_rest(t, "snapshot", i, &a, &s.n[i]);
			check_rest_distribution(t, "snapshot", i, &a, &s.d[i]);
		}
		if (flushed && finished(t, "read_flushed", i,
					design->read_flushed(r->reader, world->fixed[i], &n)))
			check_rest(t, "read_flushed", i, &a, &n);
	}
	for (unsigned i = 0; i < LEAVES; i++)
		check_rest_leaf(r, i);
}
