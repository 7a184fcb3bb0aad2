/* SPDX-License-Identifier: MIT */
/* Implements designs_live.h. One run at a time. */
#include "designs_live.h"

#include <string.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "procs.h"

enum part { STARTING, POLLING_OWN, POLLING_ROOT, STOPPED };

/* Of an owner, written by the updater alone. */
struct book {
	_Alignas(64) uint64_t begun;
	uint64_t done;
};

struct reader {
	_Alignas(128) unsigned owner;
	struct live found;
	uint64_t last[2]; /* of the owner, of the root */
	int error;
};

static struct {
	struct designs_tree *tree;
	struct book owner[DESIGNS_MAX_OWNERS], root;
	struct reader reader[LIVE_MAX_READERS];
	pthread_t thread[2 + LIVE_MAX_READERS];
	int updater_error, flusher_error;
	uint64_t flushes;
	unsigned started; /* threads that are at it */
	int part;
} live;

/* ---- the updater ---- */

static void begin(struct book *b)
{
	store_relaxed(&b->begun, b->begun + 1);
}

static void end(struct book *b)
{
	store_release(&b->done, b->done + 1); /* after the update; pairs with read_one() */
}

static int update_all_on(struct designs_tree *t, unsigned wanted)
{
	const unsigned slot = t->design->enter(t->tree, wanted);
	int err = 0;

	for (unsigned i = 0; i < t->owners && !err; i++) {
		begin(&live.owner[i]);
		begin(&live.root);
		fence_release(); /* before the update is seen; pairs with read_one() */
		err = designs_tree_update(t, slot, i, DESIGNS_POLLED);
		if (!err) {
			end(&live.owner[i]);
			end(&live.root);
			err = designs_tree_update(t, slot, i, DESIGNS_BESIDE);
		}
	}
	t->design->leave(t->tree, slot);
	return err;
}

static void *update(void *arg)
{
	struct designs_tree *t = live.tree;

	__atomic_fetch_add(&live.started, 1, __ATOMIC_RELAXED);
	for (unsigned turns = 0; !live.updater_error && load_relaxed(&live.part) != STOPPED;
	     turns++)
		live.updater_error = update_all_on(t, turns % t->shape.slots);
	return arg;
}

/* ---- the flusher ---- */

static void *flush(void *arg)
{
	struct designs_tree *t = live.tree;

	__atomic_fetch_add(&live.started, 1, __ATOMIC_RELAXED);
	while (!live.flusher_error && load_relaxed(&live.part) != STOPPED) {
		live.flusher_error = t->design->flush(t->tree, t->root, DESIGNS_POLLED);
		live.flushes++;
		procs_sleep(NSEC_PER_SEC / LIVE_FLUSHES_S);
	}
	return arg;
}

/* ---- readers ---- */

struct range {
	uint64_t least, most;
};

static struct range range_of(const uint64_t *values, unsigned count)
{
	struct range r = { values[0], values[0] };

	for (unsigned i = 1; i < count; i++) {
		r.least = values[i] < r.least ? values[i] : r.least;
		r.most = values[i] > r.most ? values[i] : r.most;
	}
	return r;
}

static void check(struct live *found, struct range r, uint64_t done, uint64_t begun, uint64_t *last)
{
	found->checked++;
	found->stale += r.least < done;
	found->excess += r.most > begun;
	found->torn += r.least != r.most;
	if (r.most - r.least > found->torn_max_skew)
		found->torn_max_skew = r.most - r.least;
	found->backwards += r.least < *last;
	*last = r.least;
}

static void read_one(struct reader *me, bool root, bool timed)
{
	struct designs_tree *t = live.tree;
	const struct book *book = root ? &live.root : &live.owner[me->owner];
	const uint64_t group = root ? t->root : t->owner[me->owner];
	uint64_t values[DESIGN_MAX_SET] = { 0 }, done, from, ns;

	done = load_acquire(&book->done); /* pairs with end() */
	from = clock_ns();
	me->error = t->design->read(t->tree, group, DESIGNS_POLLED, values);
	ns = clock_ns() - from;
	fence_acquire(); /* what was read had begun; pairs with update_all_on() */
	if (timed)
		tails_add(&me->found.own, ns);
	check(&me->found, range_of(values, t->shape.set_size), done, load_relaxed(&book->begun),
	      &me->last[root]);
}

static void *poll(void *arg)
{
	struct reader *me = arg;
	bool root = false;
	int part;

	__atomic_fetch_add(&live.started, 1, __ATOMIC_RELAXED);
	while (!me->error && (part = load_relaxed(&live.part)) != STOPPED) {
		root = part == POLLING_ROOT && !root;
		read_one(me, root, part == POLLING_OWN);
	}
	return NULL;
}

/* ---- all of them ---- */

/* 0 or -errno. threads: how many there are then, updater and flusher first. */
static int start(unsigned readers, unsigned *threads)
{
	int err = procs_thread(&live.thread[0], procs_first_cpu(), update, NULL);

	*threads = !err;
	if (!err)
		err = procs_thread(&live.thread[1], procs_first_cpu(), flush, NULL);
	*threads += !err;
	for (unsigned i = 0; i < readers && !err; i++) {
		live.reader[i].owner = i % live.tree->owners;
		err = procs_thread(&live.thread[2 + i], procs_nth_cpu(1 + i), poll,
				   &live.reader[i]);
		*threads += !err;
	}
	return err;
}

static void sleep_in(enum part part, uint64_t ns)
{
	store_relaxed(&live.part, part);
	procs_sleep(ns);
}

/* Returns the first error of a thread. */
static int stop(unsigned threads, struct live *ret)
{
	int err;

	store_relaxed(&live.part, STOPPED);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(live.thread[i], NULL);
	err = live.updater_error ? live.updater_error : live.flusher_error;
	for (unsigned i = 0; i + 2 < threads; i++) {
		const struct live *found = &live.reader[i].found;

		err = err ? err : live.reader[i].error;
		tails_merge(&ret->own, &found->own);
		ret->checked += found->checked;
		ret->stale += found->stale;
		ret->torn += found->torn;
		if (found->torn_max_skew > ret->torn_max_skew)
			ret->torn_max_skew = found->torn_max_skew;
		ret->backwards += found->backwards;
		ret->excess += found->excess;
	}
	ret->updates = live.root.done;
	ret->flushes = live.flushes;
	return err;
}

/* How far the counter that is farthest off is from what it must be. */
static int add_lost(uint64_t group, uint64_t done, uint64_t *lost)
{
	struct designs_tree *t = live.tree;
	uint64_t values[DESIGN_MAX_SET] = { 0 }, most = 0;
	int err = t->design->read(t->tree, group, DESIGNS_POLLED, values);

	for (unsigned i = 0; i < t->shape.set_size; i++) {
		uint64_t off = values[i] > done ? values[i] - done : done - values[i];

		most = off > most ? off : most;
	}
	*lost += most;
	return err;
}

static int count_lost(uint64_t *lost)
{
	struct designs_tree *t = live.tree;
	int err = t->design->flush(t->tree, t->root, DESIGNS_POLLED);

	if (!err)
		err = add_lost(t->root, live.root.done, lost);
	for (unsigned i = 0; i < t->owners && !err; i++)
		err = add_lost(t->owner[i], live.owner[i].done, lost);
	return err;
}

int live_run(struct designs_tree *t, unsigned readers, uint64_t own_ns, uint64_t root_ns,
	     struct live *ret)
{
	unsigned threads;
	int err = 0, threads_error;

	memset(&live, 0, sizeof(live));
	memset(ret, 0, sizeof(*ret));
	live.tree = t;
	for (unsigned slot = 0; slot < t->shape.slots && !err; slot++)
		err = update_all_on(t, slot); /* touches all memory */
	if (err)
		return err;
	err = start(readers, &threads);
	while (!err && load_relaxed(&live.started) < threads)
		procs_sleep(50 * NSEC_PER_USEC);
	if (!err) {
		const uint64_t from = clock_ns();

		sleep_in(POLLING_OWN, own_ns);
		ret->own_ns = clock_ns() - from;
		sleep_in(POLLING_ROOT, root_ns);
	}
	threads_error = stop(threads, ret);
	err = err ? err : threads_error;
	return err ? err : count_lost(&ret->lost);
}
