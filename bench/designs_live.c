/* SPDX-License-Identifier: MIT */
/* Implements designs_live.h. One run at a time. */
#include "designs_live.h"

#include <string.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "procs.h"

#define FEW_READS  100u
#define LONGER     4u /* times the time that was given */
#define LOOK_PAUSE (5 * NSEC_PER_MSEC)

enum part { STARTING, POLLING_OWN, POLLING_ROOT, STOPPED };

/* Of one thread, which alone writes it: updates of an owner, or of all. */
struct book {
	_Alignas(64) uint64_t begun;
	uint64_t done;
};

struct reader {
	_Alignas(128) unsigned number, owner;
	struct book book;            /* of its own updates */
	uint64_t timed, stale, torn; /* reads; others look at them */
	struct live found;
	uint64_t last[2]; /* of the owner, of the root */
	int error;
};

static struct {
	struct designs_tree *tree;
	struct book owner[DESIGNS_MAX_OWNERS], root; /* the updater's */
	struct reader reader[LIVE_MAX_READERS];
	unsigned readers;
	pthread_t thread[2 + LIVE_MAX_READERS];
	int updater_error, flusher_error;
	uint64_t flushes;
	unsigned started; /* threads that are at it */
	int part;
} live;

/* ---- the books ---- */

static void begin(struct book *b)
{
	store_relaxed(&b->begun, b->begun + 1);
}

static void end(struct book *b)
{
	store_release(&b->done, b->done + 1); /* after the update; pairs with sum_done() */
}

static bool counts(const struct reader *r, bool root, unsigned owner)
{
	return root || r->owner == owner;
}

static uint64_t sum_done(bool root, unsigned owner)
{
	/* Pairs with end(). */
	uint64_t sum = load_acquire(root ? &live.root.done : &live.owner[owner].done);

	for (const struct reader *r = live.reader; r < live.reader + live.readers; r++)
		if (counts(r, root, owner))
			sum += load_acquire(&r->book.done); /* the same */
	return sum;
}

static uint64_t sum_begun(bool root, unsigned owner)
{
	uint64_t sum = load_relaxed(root ? &live.root.begun : &live.owner[owner].begun);

	for (const struct reader *r = live.reader; r < live.reader + live.readers; r++)
		if (counts(r, root, owner))
			sum += load_relaxed(&r->book.begun);
	return sum;
}

/* ---- the updater ---- */

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
	const uint64_t group = root ? t->root : t->owner[me->owner];
	uint64_t values[DESIGN_MAX_SET] = { 0 }, done = sum_done(root, me->owner), from, ns;

	from = clock_ns();
	me->error = t->design->read(t->tree, group, DESIGNS_POLLED, values);
	ns = clock_ns() - from;
	fence_acquire(); /* what was read had begun; pairs with those before updates */
	if (timed) {
		tails_add(&me->found.own, ns);
		store_relaxed(&me->timed, me->timed + 1);
	}
	check(&me->found, range_of(values, t->shape.set_size), done, sum_begun(root, me->owner),
	      &me->last[root]);
	store_relaxed(&me->stale, me->found.stale);
	store_relaxed(&me->torn, me->found.torn);
}

static void update_own(struct reader *me)
{
	struct designs_tree *t = live.tree;
	const unsigned wanted = (unsigned)(me->number + me->found.checked) % t->shape.slots;
	const unsigned slot = t->design->enter(t->tree, wanted);

	begin(&me->book);
	fence_release(); /* before the update is seen; pairs with read_one() */
	me->error = designs_tree_update(t, slot, me->owner, DESIGNS_POLLED);
	if (!me->error)
		end(&me->book);
	t->design->leave(t->tree, slot);
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void *poll(void *arg)
{
	struct reader *me = arg;
	int part = STARTING, last;
	bool root = false;
	uint64_t cpu = 0;

	__atomic_fetch_add(&live.started, 1, __ATOMIC_RELAXED);
	while (!me->error && part != STOPPED) {
		last = part;
		part = load_relaxed(&live.part);
		if (part != last && part == POLLING_OWN)
			cpu = thread_cpu_ns();
		if (part != last && last == POLLING_OWN)
			me->found.own_cpu_ns = thread_cpu_ns() - cpu;
		root = part == POLLING_ROOT && !root;
		if (part == POLLING_ROOT)
			update_own(me);
		if (!me->error)
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

static uint64_t timed_reads(unsigned readers)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < readers; i++)
		sum += load_relaxed(&live.reader[i].timed);
	return sum;
}

/* Some reads at least, or a 99th percentile would say nothing; longer than that nobody waits. */
static void poll_owners(unsigned readers, uint64_t ns)
{
	sleep_in(POLLING_OWN, ns);
	for (unsigned i = 0; i < LONGER && timed_reads(readers) < FEW_READS; i++)
		procs_sleep(ns);
}

static bool seen_enough(unsigned lacks, unsigned readers)
{
	uint64_t stale = 0, torn = 0;

	for (unsigned i = 0; i < readers; i++) {
		stale += load_relaxed(&live.reader[i].stale);
		torn += load_relaxed(&live.reader[i].torn);
	}
	return (!(lacks & DESIGN_FRESH) || stale >= LIVE_ENOUGH) &&
	       (!(lacks & DESIGN_WHOLE) || torn >= LIVE_ENOUGH);
}

static void poll_root(unsigned readers, const struct live_times *times)
{
	const uint64_t from = clock_ns();

	sleep_in(POLLING_ROOT, times->root_ns);
	while (clock_ns() - from < times->most_ns &&
	       !seen_enough(live.tree->design->lacks, readers))
		procs_sleep(LOOK_PAUSE);
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
		ret->own_cpu_ns += found->own_cpu_ns;
		ret->checked += found->checked;
		ret->stale += found->stale;
		ret->torn += found->torn;
		if (found->torn_max_skew > ret->torn_max_skew)
			ret->torn_max_skew = found->torn_max_skew;
		ret->backwards += found->backwards;
		ret->excess += found->excess;
	}
	ret->updates = sum_done(true, 0);
	ret->flushes = live.flushes;
	return err;
}

/* How far the counter that is farthest off is from what it must be. */
static int add_lost(bool root, unsigned owner, uint64_t *lost)
{
	struct designs_tree *t = live.tree;
	uint64_t values[DESIGN_MAX_SET] = { 0 }, done = sum_done(root, owner), most = 0;
	int err =
		t->design->read(t->tree, root ? t->root : t->owner[owner], DESIGNS_POLLED, values);

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
		err = add_lost(true, 0, lost);
	for (unsigned i = 0; i < t->owners && !err; i++)
		err = add_lost(false, i, lost);
	return err;
}

int live_run(struct designs_tree *t, unsigned readers, const struct live_times *times,
	     struct live *ret)
{
	unsigned threads;
	int err = 0, threads_error;

	memset(&live, 0, sizeof(live));
	memset(ret, 0, sizeof(*ret));
	live.tree = t;
	live.readers = readers;
	for (unsigned i = 0; i < readers; i++) {
		live.reader[i].number = i;
		live.reader[i].owner = i % t->owners;
	}
	for (unsigned slot = 0; slot < t->shape.slots && !err; slot++)
		err = update_all_on(t, slot); /* touches all memory */
	if (err)
		return err;
	err = start(readers, &threads);
	while (!err && load_relaxed(&live.started) < threads)
		procs_sleep(50 * NSEC_PER_USEC);
	if (!err) {
		const uint64_t from = clock_ns();

		poll_owners(readers, times->own_ns);
		ret->own_ns = clock_ns() - from;
		poll_root(readers, times);
	}
	threads_error = stop(threads, ret);
	err = err ? err : threads_error;
	return err ? err : count_lost(&ret->lost);
}
