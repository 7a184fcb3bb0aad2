/* SPDX-License-Identifier: MIT */
/*
 * Implements barriers_other() of barriers.h. What a call does to a running thread is seen by that
 * thread, which looks at the clock without a pause: where it stood still there is a gap. So it does not
 * matter how fast the thread is beside one that runs on the same core.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>

#include "barriers.h"
#include "base/atomics.h"
#include "base/clock.h"
#include "base/rseq.h"
#include "procs.h"

#define TURN_NS (5 * NSEC_PER_MSEC)
#define WAIT_NS (2 * NSEC_PER_MSEC) /* until the other thread does what it should */
#define GAP_NS  300u /* between two looks at the clock, which take some ten ns: an interruption */

struct other {
	enum barriers_side side;
	unsigned stop;
	uint64_t calls; /* of the barrier */
	int error;
};

static void *other_thread(void *arg)
{
	struct other *o = arg;

	procs_realtime(1);
	while (!load_relaxed(&o->stop)) {
		if (o->side == SIDE_ASLEEP) {
			procs_sleep(TURN_NS);
		} else if (o->side == SIDE_INTERRUPTED) {
			int err = rseq_barrier();

			if (err)
				store_relaxed(&o->error, err);
			store_relaxed(&o->calls, o->calls + 1);
		}
	}
	return NULL;
}

static int time_calls(double *ns)
{
	const uint64_t begin = clock_ns();
	uint64_t now = begin;
	unsigned calls = 0;

	for (; now - begin < TURN_NS; now = clock_ns(), calls++) {
		int err = rseq_barrier();

		if (err)
			return err;
	}
	*ns = (double)(now - begin) / calls;
	return 0;
}

static int time_gaps(struct other *o, double *ns)
{
	const uint64_t calls = load_relaxed(&o->calls), begin = clock_ns();
	uint64_t last = begin, lost = 0;

	while (last - begin < TURN_NS) {
		uint64_t now = clock_ns();

		if (now - last > GAP_NS)
			lost += now - last;
		last = now;
	}
	*ns = (double)lost / (double)(load_relaxed(&o->calls) - calls);
	return load_relaxed(&o->error);
}

int barriers_other(enum barriers_side side, double *ns)
{
	struct other o = { .side = side };
	pthread_t thread;
	int err;

	if (procs_first_cpu() == procs_last_cpu())
		return -ENODEV;
	err = procs_thread(&thread, procs_last_cpu(), other_thread, &o);
	if (err)
		return err;
	procs_sleep(WAIT_NS);
	err = side == SIDE_INTERRUPTED ? time_gaps(&o, ns) : time_calls(ns);
	store_relaxed(&o.stop, 1);
	pthread_join(thread, NULL);
	return err;
}
