/* SPDX-License-Identifier: MIT */
/* Implements pollers.h. */
#include "pollers.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "loops.h"
#include "procs.h"

struct poller {
	_Alignas(128) uint64_t reads;
	int error;
	unsigned number;
	pthread_t thread;
};

static struct {
	struct poller poller[POLLERS_MAX];
	const struct contender *contender;
	enum poll poll;
	unsigned count;
	uint64_t begin_ns;
	int stop;
} p;

static void sleep_until(uint64_t ns)
{
	const struct timespec ts = { (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static void *poll_cell(void *arg)
{
	struct poller *me = arg;
	const uint64_t interval = NSEC_PER_SEC / POLL_RATE;
	uint64_t next = p.begin_ns + me->number * interval;
	unsigned cell = p.poll == POLL_OTHER_FLAT ? 1 + me->number % (LOOPS_CELLS - 1) : 0;

	while (!me->error && !load_relaxed(&p.stop)) {
		if (p.poll == POLL_OWN_5K) {
			sleep_until(next);
			next += p.count * interval;
		}
		me->error = p.contender->read(p.contender->cells[0], cell);
		store_relaxed(&me->reads, me->reads + 1);
	}
	return NULL;
}

static uint64_t reads(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < p.count; i++)
		sum += load_relaxed(&p.poller[i].reads);
	return sum;
}

int pollers_start(const struct contender *c, enum poll poll, unsigned count)
{
	int err = 0;

	p.contender = c;
	p.poll = poll;
	p.stop = 0;
	p.count = count;
	p.begin_ns = clock_ns();
	for (unsigned i = 0; i < count && !err; i++) {
		p.poller[i] = (struct poller){ .number = i };
		err = procs_thread(&p.poller[i].thread, procs_last_cpu(), poll_cell, &p.poller[i]);
		if (err)
			p.count = i; /* none of the others looks at it before it is stopped */
	}
	if (err) {
		pollers_stop(NULL);
		return err;
	}
	while (!reads())
		procs_sleep(50 * NSEC_PER_USEC);
	return 0;
}

int pollers_stop(double *reads_s)
{
	uint64_t ns = clock_ns() - p.begin_ns;
	int err = 0;

	if (reads_s)
		*reads_s = (double)reads() * NSEC_PER_SEC / (double)ns;
	store_relaxed(&p.stop, 1);
	for (unsigned i = 0; i < p.count; i++) {
		pthread_join(p.poller[i].thread, NULL);
		if (!err)
			err = p.poller[i].error;
	}
	return err;
}
