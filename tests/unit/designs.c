/* SPDX-License-Identifier: MIT */
/*
 * Every design of bench/designs: its arithmetic against a model, with one thread; its errors; and a
 * short storm of threads, in which it must keep what it promises. (tests/conform checks promises
 * thoroughly, and that what a design lacks can be seen.)
 */
#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "designs/design.h"

#define GROUPS  24u
#define SLOTS   5u
#define STEPS   4000u
#define STORM   (80 * NSEC_PER_MSEC)
#define TURNS   16u /* of each thread at the least, on a machine that is too busy */
#define THREADS 2u  /* that update, and as many that read */

struct opened {
	const struct bench_design *d;
	struct design_shape shape;
	void *tree, *memory;
	size_t size;
};

/* Ours flushes the whole tree, and its slots are not exclusive. */
static bool of_the_kernel(const struct bench_design *d)
{
	return d->size;
}

static bool open_design(const struct bench_design *d, unsigned slots, unsigned set_size,
			struct opened *o)
{
	int err;

	*o = (struct opened){ .d = d, .shape = { GROUPS, slots, set_size } };
	if (d->size) {
		o->size = d->size(&o->shape);
		o->memory = mmap(NULL, o->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				 -1, 0);
		if (o->memory == MAP_FAILED)
			abort();
	}
	err = d->open(&o->shape, o->memory, &o->tree);
	if (!err)
		return true;
	EXPECT(err == -EOPNOTSUPP, "%s: %d", d->name, err);
	if (o->memory)
		munmap(o->memory, o->size);
	return false;
}

static void close_design(struct opened *o)
{
	o->d->close(o->tree);
	if (o->memory)
		munmap(o->memory, o->size);
}

static int update(const struct opened *o, unsigned slot, uint64_t group, unsigned family,
		  uint64_t n)
{
	const unsigned entered = o->d->enter(o->tree, slot);
	const int err = o->d->update(o->tree, entered, group, family, n);

	EXPECT(entered < o->shape.slots);
	o->d->leave(o->tree, entered);
	return err;
}

static bool all_are(const struct opened *o, const uint64_t *values, uint64_t n)
{
	for (unsigned i = 0; i < o->shape.set_size; i++)
		if (values[i] != n)
			return false;
	return true;
}

/* What a poll says when nobody updates. */
static uint64_t value_of(const struct opened *o, uint64_t group, unsigned family)
{
	uint64_t values[DESIGN_MAX_SET];
	int err = 0;

	if (!(o->d->promises & DESIGN_FRESH))
		err = o->d->flush(o->tree, group, family);
	if (!err)
		err = o->d->read(o->tree, group, family, values);
	if (!EXPECT(!err, "%s: %d", o->d->name, err))
		return UINT64_MAX;
	EXPECT(all_are(o, values, values[0]), "%s", o->d->name);
	return values[0];
}

static uint64_t total_of(const struct opened *o, uint64_t group, unsigned family)
{
	uint64_t values[DESIGN_MAX_SET];
	int err = o->d->read_total(o->tree, group, family, values);

	if (!EXPECT(!err, "%s: %d", o->d->name, err))
		return UINT64_MAX;
	EXPECT(all_are(o, values, values[0]), "%s", o->d->name);
	return values[0];
}

#define EXPECT_VALUE(o, value, n)                                                                \
	do {                                                                                     \
		const uint64_t is = (value), should = (n);                                       \
		EXPECT(is == should, "%s: %llu, not %llu", (o)->d->name, (unsigned long long)is, \
		       (unsigned long long)should);                                              \
	} while (0)

static uint64_t new_group(const struct opened *o, uint64_t parent)
{
	uint64_t ret = 0;
	int err = o->d->create(o->tree, parent, &ret);

	EXPECT(!err && ret, "%s: %d", o->d->name, err);
	return ret;
}

/* ---- one thread ---- */

/* What the design should count. Place 0 is the root; parents have lower places. */
struct model {
	uint64_t ref[GROUPS]; /* 0: no group */
	unsigned parent[GROUPS];
	uint64_t own[GROUPS][DESIGN_FAMILIES]; /* with that of removed children */
};

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 16;
}

static bool has_children(const struct model *m, unsigned place)
{
	for (unsigned i = 1; i < GROUPS; i++)
		if (m->ref[i] && m->parent[i] == place)
			return true;
	return false;
}

static uint64_t should_be(const struct model *m, unsigned place, unsigned family)
{
	uint64_t sum[GROUPS];

	for (unsigned i = 0; i < GROUPS; i++)
		sum[i] = m->ref[i] ? m->own[i][family] : 0;
	for (unsigned i = GROUPS - 1; i > place; i--)
		if (m->ref[i])
			sum[m->parent[i]] += sum[i];
	return sum[place];
}

static void model_step(const struct opened *o, struct model *m, uint64_t *random)
{
	const unsigned what = random_next(random) % 16, place = random_next(random) % GROUPS;
	const unsigned family = random_next(random) % DESIGN_FAMILIES;
	const unsigned parent = place ? random_next(random) % place : 0;
	const uint64_t n = random_next(random) % 1000;
	const uint64_t ref = m->ref[place];
	int err;

	if (!ref) {
		if (!m->ref[parent])
			return;
		m->ref[place] = new_group(o, m->ref[parent]);
		m->parent[place] = parent;
		memset(m->own[place], 0, sizeof(m->own[place]));
		EXPECT_VALUE(o, value_of(o, m->ref[place], family), 0);
	} else if (what < 8) {
		EXPECT(!update(o, n % SLOTS, ref, family, n), "%s", o->d->name);
		m->own[place][family] += n;
	} else if (what < 10) {
		EXPECT(!o->d->flush(o->tree, ref, family), "%s", o->d->name);
		EXPECT_VALUE(o, total_of(o, ref, family), should_be(m, place, family));
	} else if (what < 13) {
		EXPECT_VALUE(o, value_of(o, ref, family), should_be(m, place, family));
	} else if (what < 15) {
		EXPECT(total_of(o, ref, family) <= should_be(m, place, family), "%s", o->d->name);
	} else {
		err = o->d->remove(o->tree, ref);
		if (!place || has_children(m, place)) {
			EXPECT(err == -EBUSY, "%s: %d", o->d->name, err);
			return;
		}
		EXPECT(!err, "%s: %d", o->d->name, err);
		m->ref[place] = 0;
		for (unsigned i = 0; i < DESIGN_FAMILIES; i++)
			m->own[m->parent[place]][i] += m->own[place][i];
	}
}

TEST(as_the_model_counts)
{
	static const unsigned sizes[] = { 1, 3, DESIGN_MAX_SET };
	struct opened o;

	for (unsigned i = 0; bench_designs[i]; i++)
		for (unsigned s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
			struct model m = { 0 };
			uint64_t random = 88172645463325252u + s;

			if (!open_design(bench_designs[i], SLOTS, sizes[s], &o))
				continue;
			m.ref[0] = o.d->root(o.tree);
			for (unsigned step = 0; step < STEPS; step++)
				model_step(&o, &m, &random);
			for (unsigned place = 0; place < GROUPS; place++)
				for (unsigned f = 0; m.ref[place] && f < DESIGN_FAMILIES; f++)
					EXPECT_VALUE(&o, value_of(&o, m.ref[place], f),
						     should_be(&m, place, f));
			close_design(&o);
		}
}

TEST(many_updates)
{
	struct opened o;

	for (unsigned i = 0; bench_designs[i]; i++) {
		uint64_t group[3], root;
		unsigned slot;

		if (!open_design(bench_designs[i], SLOTS, 3, &o))
			continue;
		root = o.d->root(o.tree);
		for (unsigned g = 0; g < 3; g++)
			group[g] = new_group(&o, root);
		slot = o.d->enter(o.tree, 1);
		o.d->update_many(o.tree, slot, group, 3, 1, 100);
		o.d->leave(o.tree, slot);
		EXPECT_VALUE(&o, value_of(&o, group[0], 1), 34);
		EXPECT_VALUE(&o, value_of(&o, group[2], 1), 33);
		EXPECT_VALUE(&o, value_of(&o, root, 1), 100);
		EXPECT_VALUE(&o, value_of(&o, root, 0), 0);
		close_design(&o);
	}
}

TEST(errors)
{
	struct opened o;

	for (unsigned i = 0; bench_designs[i]; i++) {
		const struct bench_design *d = bench_designs[i];
		uint64_t root, group, below, extra, values[DESIGN_MAX_SET];
		unsigned made = 1;
		int err;

		if (!open_design(d, SLOTS, 2, &o))
			continue;
		root = d->root(o.tree);
		group = new_group(&o, root);
		below = new_group(&o, group);
		EXPECT_EQ(d->remove(o.tree, root), -EBUSY);
		EXPECT_EQ(d->remove(o.tree, group), -EBUSY);
		EXPECT_EQ(update(&o, 0, below, 0, 7), 0);
		EXPECT_EQ(d->remove(o.tree, below), 0);
		EXPECT_EQ(d->remove(o.tree, below), -ENOENT);
		EXPECT_EQ(update(&o, 0, below, 0, 1), -ENOENT);
		EXPECT_EQ(d->flush(o.tree, below, 0), -ENOENT);
		EXPECT_EQ(d->read(o.tree, below, 0, values), -ENOENT);
		EXPECT_EQ(d->read_total(o.tree, below, 0, values), -ENOENT);
		EXPECT_EQ(d->create(o.tree, below, &extra), -ENOENT);
		EXPECT_VALUE(&o, value_of(&o, group, 0), 7);
		EXPECT_VALUE(&o, value_of(&o, root, 0), 7);
		while (!(err = d->create(o.tree, root, &extra)) && made < 2 * GROUPS) {
			EXPECT(extra != below && extra != group);
			EXPECT_VALUE(&o, value_of(&o, extra, 0), 0);
			made++;
		}
		EXPECT(err == -ENOSPC && made == GROUPS - 1, "%s: %d after %u", d->name, err, made);
		close_design(&o);
	}
}

/* What a flush of one group brings up to date: it, what is below, and nothing else. */
TEST(flush_of_a_subtree)
{
	struct opened o;

	for (unsigned i = 0; bench_designs[i]; i++) {
		uint64_t root, top, one, other;

		if (!of_the_kernel(bench_designs[i]) ||
		    !open_design(bench_designs[i], SLOTS, 2, &o))
			continue;
		root = o.d->root(o.tree);
		top = new_group(&o, root);
		one = new_group(&o, top);
		other = new_group(&o, top);
		for (unsigned slot = 0; slot < SLOTS; slot++) {
			update(&o, slot, one, 0, 1);
			update(&o, slot, other, 0, 100);
		}
		EXPECT_EQ(o.d->flush(o.tree, one, 0), 0);
		EXPECT_VALUE(&o, total_of(&o, one, 0), SLOTS);
		EXPECT_VALUE(&o, total_of(&o, other, 0), 0);
		EXPECT_VALUE(&o, total_of(&o, root, 0), 0);
		EXPECT_EQ(o.d->flush(o.tree, top, 0), 0);
		EXPECT_VALUE(&o, total_of(&o, other, 0), 100 * SLOTS);
		EXPECT_VALUE(&o, total_of(&o, top, 0), 101 * SLOTS);
		EXPECT_EQ(o.d->flush(o.tree, root, 0), 0);
		EXPECT_VALUE(&o, total_of(&o, root, 0), 101 * SLOTS);
		close_design(&o);
	}
}

TEST(slots_are_exclusive)
{
	struct opened o;

	for (unsigned i = 0; bench_designs[i]; i++) {
		unsigned last;

		if (!of_the_kernel(bench_designs[i]) || !open_design(bench_designs[i], 3, 1, &o))
			continue;
		last = o.d->enter(o.tree, 2);
		EXPECT_EQ(last, 2);
		EXPECT_EQ(o.d->enter(o.tree, 2), 0);
		EXPECT_EQ(o.d->enter(o.tree, 2), 1);
		o.d->leave(o.tree, last);
		EXPECT_EQ(o.d->enter(o.tree, 0), 2);
		for (unsigned slot = 0; slot < 3; slot++)
			o.d->leave(o.tree, slot);
		close_design(&o);
	}
}

TEST(held_for)
{
	struct opened o;

	for (unsigned i = 0; bench_designs[i]; i++) {
		uint64_t root;

		if (!bench_designs[i]->longest_hold || !open_design(bench_designs[i], SLOTS, 1, &o))
			continue;
		root = o.d->root(o.tree);
		o.d->longest_hold(o.tree);
		o.d->flush(o.tree, root, 0);
		EXPECT(o.d->longest_hold(o.tree) > 0, "%s", o.d->name);
		EXPECT(o.d->longest_hold(o.tree) == 0, "%s", o.d->name);
		close_design(&o);
	}
}

/* ---- a storm ---- */

struct storm {
	struct opened o;
	uint64_t root, top, leaf, guest; /* guest comes and goes below top; else all for good */
	uint64_t until;                  /* ns */
	struct {
		_Alignas(128) uint64_t updates; /* of top's subtree that are done */
	} done[THREADS];
	uint64_t stale, torn, backwards, errors, reads;
};

struct storm_thread {
	struct storm *s;
	unsigned number;
};

static uint64_t storm_done(struct storm *s)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < THREADS; i++)
		sum += load_acquire(&s->done[i].updates); /* pairs with storm_update() */
	return sum;
}

static void *storm_update(void *arg)
{
	const struct storm_thread *me = arg;
	struct storm *s = me->s;
	const struct bench_design *d = s->o.d;
	uint64_t done = 0;

	for (unsigned turn = 0; turn < TURNS || clock_ns() < s->until; turn++) {
		const unsigned slot = d->enter(s->o.tree, turn + me->number);

		for (unsigned i = 0; i < 32; i++) {
			/* Pairs with storm_churn(). */
			uint64_t group = i % 2 ? load_acquire(&s->guest) : i % 4 ? s->leaf : s->top;
			int err = d->update(s->o.tree, slot, group, 0, 1);

			if (err && err != -ENOENT && err != -EAGAIN)
				__atomic_fetch_add(&s->errors, 1, __ATOMIC_RELAXED);
			if (!err)
				store_release(&s->done[me->number].updates,
					      ++done); /* storm_done() */
		}
		d->leave(s->o.tree, slot);
	}
	return NULL;
}

static void *storm_read(void *arg)
{
	const struct storm_thread *me = arg;
	struct storm *s = me->s;
	uint64_t before[2][DESIGN_MAX_SET] = { 0 }, values[DESIGN_MAX_SET];
	uint64_t stale = 0, torn = 0, backwards = 0, errors = 0, reads = 0;

	for (; reads < TURNS || clock_ns() < s->until; reads++) {
		const unsigned which = reads % 2;
		const uint64_t done = storm_done(s);

		if (s->o.d->read(s->o.tree, which ? s->top : s->root, 0, values))
			errors++;
		torn += !all_are(&s->o, values, values[0]);
		for (unsigned i = 0; i < s->o.shape.set_size; i++) {
			stale += values[i] < done;
			backwards += values[i] < before[which][i];
		}
		memcpy(before[which], values, sizeof(values));
	}
	__atomic_fetch_add(&s->stale, stale, __ATOMIC_RELAXED);
	__atomic_fetch_add(&s->torn, torn, __ATOMIC_RELAXED);
	__atomic_fetch_add(&s->backwards, backwards, __ATOMIC_RELAXED);
	__atomic_fetch_add(&s->errors, errors, __ATOMIC_RELAXED);
	__atomic_fetch_add(&s->reads, reads, __ATOMIC_RELAXED);
	return NULL;
}

/* Removes the guest and makes a new one; flushes. */
static void storm_churn(struct storm *s)
{
	while (clock_ns() < s->until) {
		const struct bench_design *d = s->o.d;
		uint64_t guest;

		if (d->flush(s->o.tree, s->root, 0) || d->remove(s->o.tree, s->guest) ||
		    d->create(s->o.tree, s->top, &guest))
			__atomic_fetch_add(&s->errors, 1, __ATOMIC_RELAXED);
		else
			store_release(&s->guest, guest); /* pairs with storm_update() */
	}
}

static void storm_of(const struct bench_design *d)
{
	static struct storm storm;
	struct storm *s = &storm;
	struct storm_thread arg[THREADS];
	pthread_t updater[THREADS], reader[THREADS];

	memset(s, 0, sizeof(*s));
	if (!open_design(d, 2, DESIGN_MAX_SET, &s->o))
		return;
	s->root = d->root(s->o.tree);
	s->top = new_group(&s->o, s->root);
	s->leaf = new_group(&s->o, s->top);
	s->guest = new_group(&s->o, s->top);
	s->until = clock_ns() + STORM;
	for (unsigned i = 0; i < THREADS; i++) {
		arg[i] = (struct storm_thread){ s, i };
		if (pthread_create(&updater[i], NULL, storm_update, &arg[i]) ||
		    pthread_create(&reader[i], NULL, storm_read, &arg[i]))
			abort();
	}
	storm_churn(s);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(updater[i], NULL);
		pthread_join(reader[i], NULL);
	}
	printf("# %s: %llu updates, %llu reads, stale %llu torn %llu backwards %llu\n", d->name,
	       (unsigned long long)storm_done(s), (unsigned long long)s->reads,
	       (unsigned long long)s->stale, (unsigned long long)s->torn,
	       (unsigned long long)s->backwards);
	EXPECT(!s->errors, "%s: %llu", d->name, (unsigned long long)s->errors);
	EXPECT(!(d->promises & DESIGN_FRESH) || !s->stale, "%s", d->name);
	EXPECT(!(d->promises & DESIGN_WHOLE) || !s->torn, "%s", d->name);
	EXPECT(!(d->promises & DESIGN_MONOTONE) || !s->backwards, "%s", d->name);
	if (d->promises & DESIGN_EXACT) {
		EXPECT_VALUE(&s->o, value_of(&s->o, s->root, 0), storm_done(s));
		EXPECT_VALUE(&s->o, value_of(&s->o, s->top, 0), storm_done(s));
	}
	close_design(&s->o);
}

TEST(storm)
{
	for (unsigned i = 0; bench_designs[i]; i++)
		storm_of(bench_designs[i]);
}

TAP_MAIN
