/* SPDX-License-Identifier: MIT */
/*
 * Implements workers.h. The second worker sleeps at a barrier between jobs. Before a job begins both
 * spin until both are there, having warmed up.
 */
#include "workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "procs.h"

#define CHUNK_NS (20 * NSEC_PER_USEC) /* between two looks at the clock */

static struct {
	pthread_t second;
	pthread_barrier_t gate; /* passed before and after each job of both */
	bool started, ending;
	const struct contender *contender;
	unsigned cells, threads;
	uint64_t ns;
	unsigned ready; /* threads that have warmed up */
	double result[WORKERS];
} w;

static void run(unsigned thread)
{
	const struct contender *c = w.contender;
	void (*loop)(void *, uint64_t, uint64_t) = w.cells == 1 ? c->one : c->many;
	uint64_t at = 0, chunk = 32, from, begin, now;

	if (c->enter)
		c->enter();
	do {
		chunk *= 2;
		begin = clock_ns();
		loop(c->cells[thread], at, chunk);
		at += chunk;
	} while (clock_ns() - begin < CHUNK_NS);
	__atomic_fetch_add(&w.ready, 1, __ATOMIC_RELAXED);
	while (load_relaxed(&w.ready) < w.threads)
		;
	from = at;
	begin = clock_ns();
	do {
		loop(c->cells[thread], at, chunk);
		at += chunk;
		now = clock_ns();
	} while (now - begin < w.ns);
	w.result[thread] = (double)(now - begin) / (double)(at - from);
	if (c->leave)
		c->leave();
}

static void *second(void *unused)
{
	procs_realtime(1);
	for (;;) {
		pthread_barrier_wait(&w.gate);
		if (w.ending)
			return unused;
		run(1);
		pthread_barrier_wait(&w.gate);
	}
}

int workers_begin(void)
{
	int err;

	procs_pin(0, procs_first_cpu());
	procs_realtime(1);
	if (procs_first_cpu() == procs_last_cpu())
		return 1;
	err = pthread_barrier_init(&w.gate, NULL, WORKERS);
	if (err)
		return -err;
	err = procs_thread(&w.second, procs_last_cpu(), second, NULL);
	if (err) {
		pthread_barrier_destroy(&w.gate);
		return err;
	}
	w.started = true;
	return WORKERS;
}

void workers_end(void)
{
	if (w.started) {
		w.ending = true;
		pthread_barrier_wait(&w.gate);
		pthread_join(w.second, NULL);
		pthread_barrier_destroy(&w.gate);
		w.started = w.ending = false;
	}
	procs_realtime(0);
	procs_unpin();
}

double workers_measure(const struct contender *c, unsigned threads, unsigned cells, uint64_t ns)
{
	w.contender = c;
	w.cells = cells;
	w.threads = threads;
	w.ns = ns;
	w.ready = 0;
	if (threads == 1) {
		run(0);
		return w.result[0];
	}
	pthread_barrier_wait(&w.gate);
	run(0);
	pthread_barrier_wait(&w.gate);
	return (w.result[0] + w.result[1]) / 2;
}
