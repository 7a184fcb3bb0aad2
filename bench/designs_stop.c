/* SPDX-License-Identifier: MIT */
/*
 * Implements designs_stop.h. One run at a time.
 *
 * The flusher sets a timer to a moment within the duration of a flush, and begins one. The timer's
 * signal comes to that thread alone; its handler sleeps if it has interrupted a flush. Between flushes
 * the thread pauses for as long as a flush sleeps by itself in Freshet (bench/designs/freshet.c), so
 * that it is not stopped in its sleep.
 *
 * All threads are at the same real-time priority, where that is allowed: one that was preempted inside
 * a lock would be waited for as long as one that was stopped. All of them pause, so that others run.
 */
#include "designs_stop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "procs.h"

#define READ_PAUSE    (20 * NSEC_PER_USEC)
#define UPDATE_PAUSE  (100 * NSEC_PER_USEC)
#define FLUSH_PAUSE   (200 * NSEC_PER_USEC)
#define TIMER_LATENCY (20 * NSEC_PER_USEC) /* or less, beyond what it was set to */
#define LONGEST_TRY   (2 * NSEC_PER_SEC)   /* until a flush is hit */
#define STOP_SIGNAL   SIGUSR1

static struct {
	struct designs_tree *tree;
	uint64_t park_ns;
	unsigned wanted, parks;
	/* Written in the handler and, of its thread, around a flush. */
	int inside;
	uint64_t parked; /* odd: stopped. Read by the reader */
	uint64_t longest_ns;
	int updater_error, flusher_error, reader_error;
	int stop;
} s;

static void park(int signal)
{
	const int saved = errno;

	if (load_relaxed(&s.inside)) {
		store_seq_cst(&s.parked, s.parked + 1); /* pairs with the reader's loads */
		procs_sleep(s.park_ns);
		store_seq_cst(&s.parked, s.parked + 1);
	}
	errno = saved;
}

static void *update(void *arg)
{
	struct designs_tree *t = s.tree;
	const struct bench_design *d = t->design;

	procs_realtime(1);
	for (unsigned turn = 0; !load_relaxed(&s.stop); turn++) {
		unsigned slot = d->enter(t->tree, turn % t->shape.slots);

		d->update_many(t->tree, slot, t->leaf, t->owners, DESIGNS_POLLED, t->owners);
		d->leave(t->tree, slot);
		procs_sleep(UPDATE_PAUSE);
	}
	return arg;
}

static void *read_owner(void *arg)
{
	struct designs_tree *t = s.tree;
	uint64_t values[DESIGN_MAX_SET];

	procs_realtime(1);
	while (!s.reader_error && !load_relaxed(&s.stop)) {
		uint64_t parked = load_seq_cst(&s.parked), from = clock_ns(), ns;

		s.reader_error = t->design->read(t->tree, t->owner[0], DESIGNS_POLLED, values);
		ns = clock_ns() - from;
		if ((parked % 2 || load_seq_cst(&s.parked) != parked) &&
		    ns > load_relaxed(&s.longest_ns))
			store_relaxed(&s.longest_ns, ns);
		procs_sleep(READ_PAUSE);
	}
	return arg;
}

/* One flush, with the timer set to a moment within the last one's duration, which it updates. */
static int flush_once(timer_t timer, unsigned *seed, uint64_t *flush_ns)
{
	static const struct itimerspec off;
	struct designs_tree *t = s.tree;
	const uint64_t parked = s.parked;
	const uint64_t delay = 1 + (uint64_t)rand_r(seed) % (*flush_ns + TIMER_LATENCY);
	const struct itimerspec in = { .it_value = { 0, (long)(delay % NSEC_PER_SEC) } };
	uint64_t from;
	int err;

	timer_settime(timer, 0, &in, NULL);
	from = clock_ns();
	store_relaxed(&s.inside, 1);
	err = t->design->flush(t->tree, t->root, DESIGNS_POLLED);
	store_relaxed(&s.inside, 0);
	if (load_relaxed(&s.parked) == parked)
		*flush_ns = clock_ns() - from;
	else
		s.parks++;
	timer_settime(timer, 0, &off, NULL);
	return err;
}

static void *flush(void *arg)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = STOP_SIGNAL };
	uint64_t flush_ns = NSEC_PER_MSEC, last = clock_ns();
	unsigned seed = 1;
	timer_t timer;

	event._sigev_un._tid = gettid();
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0) {
		s.flusher_error = -errno;
		return NULL;
	}
	procs_realtime(1);
	while (!s.flusher_error && s.parks < s.wanted &&
	       load_relaxed(&s.longest_ns) < s.park_ns / 10 * 9) {
		const unsigned parks = s.parks;

		procs_sleep(5 * flush_ns + FLUSH_PAUSE);
		s.flusher_error = flush_once(timer, &seed, &flush_ns);
		if (s.parks != parks)
			last = clock_ns();
		else if (clock_ns() - last > LONGEST_TRY)
			s.flusher_error = -ETIMEDOUT;
	}
	timer_delete(timer);
	return arg;
}

int stop_run(struct designs_tree *t, uint64_t park_ns, unsigned parks, uint64_t *longest_ns)
{
	const struct sigaction handler = { .sa_handler = park, .sa_flags = SA_RESTART };
	struct sigaction before;
	pthread_t updater, reader, flusher;
	int err;

	memset(&s, 0, sizeof(s));
	s.tree = t;
	s.park_ns = park_ns;
	s.wanted = parks;
	sigaction(STOP_SIGNAL, &handler, &before);
	err = procs_thread(&updater, procs_first_cpu(), update, NULL);
	if (err)
		goto out;
	err = designs_thread_beside(&reader, 0, read_owner, NULL);
	if (err)
		goto stop_updater;
	err = procs_thread(&flusher, procs_first_cpu(), flush, NULL);
	if (!err)
		pthread_join(flusher, NULL);
	store_relaxed(&s.stop, 1);
	pthread_join(reader, NULL);
stop_updater:
	store_relaxed(&s.stop, 1);
	pthread_join(updater, NULL);
out:
	sigaction(STOP_SIGNAL, &before, NULL);
	*longest_ns = s.longest_ns;
	err = err ? err : s.flusher_error ? s.flusher_error : s.reader_error;
	return err;
}
