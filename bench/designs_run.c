/* SPDX-License-Identifier: MIT */
/* Implements designs_run.h. One run at a time. */
#include "designs_run.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "procs.h"

#define TURN_BATCHES 48u
#define POLLED_OWNER 0u /* of the first poller */
#define OTHER_OWNER  1u

/* ---- updates ---- */

struct updater {
	struct designs_tree *tree;
	unsigned slot;
	pthread_t thread;
	struct stats batch;
};

static void *update_batches(void *arg)
{
	struct updater *me = arg;
	struct designs_tree *t = me->tree;
	const struct bench_design *d = t->design;

	procs_realtime(1);
	for (unsigned i = 0; i < TURN_BATCHES; i++) {
		const unsigned slot = d->enter(t->tree, me->slot);
		uint64_t from, ns;

		d->update_many(t->tree, slot, t->leaf, t->owners, DESIGNS_POLLED, t->owners);
		from = clock_ns();
		d->update_many(t->tree, slot, t->leaf, t->owners, DESIGNS_POLLED, RUN_BATCH);
		ns = clock_ns() - from;
		d->leave(t->tree, slot);
		ns = ns > tails_empty() ? ns - tails_empty() : 0;
		stats_add(&me->batch, (double)ns / RUN_BATCH);
	}
	return NULL;
}

int run_updates(struct designs_tree *t, unsigned threads, double *ns)
{
	static struct updater updater[RUN_MAX_THREADS];
	unsigned started = 0;
	double sum = 0;
	int err = 0;

	for (unsigned i = 0; i < threads && !err; i++) {
		updater[i] = (struct updater){ .tree = t };
		updater[i].slot = i % procs_cpus() % t->shape.slots;
		err = procs_thread(&updater[i].thread, procs_nth_cpu(1 + i), update_batches,
				   &updater[i]);
		started += !err;
	}
	for (unsigned i = 0; i < started; i++) {
		pthread_join(updater[i].thread, NULL);
		sum += stats_median(&updater[i].batch);
	}
	*ns = sum / threads;
	return err;
}

/* ---- flushes ---- */

static double thread_cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

int run_flush(struct designs_tree *t, double *cpu_us, double *hold_us)
{
	const struct bench_design *d = t->design;
	double from, clock;
	int err = designs_tree_touch(t);

	*hold_us = (double)NAN;
	if (err)
		return err;
	if (d->longest_hold)
		d->longest_hold(t->tree);
	clock = thread_cpu_us();
	from = thread_cpu_us();
	err = d->flush(t->tree, t->root, DESIGNS_POLLED);
	*cpu_us = thread_cpu_us() - from - (from - clock);
	if (d->longest_hold)
		*hold_us = (double)d->longest_hold(t->tree) / 1e3;
	return err;
}

/* ---- beside pollers ---- */

struct poller {
	_Alignas(128) struct designs_tree *tree;
	unsigned owner;
	bool realtime;
	pthread_t thread;
	uint64_t reads;
	int error;
	int stop;
};

static struct poller poller[RUN_MAX_THREADS];

static void *poll(void *arg)
{
	struct poller *me = arg;
	struct designs_tree *t = me->tree;
	uint64_t values[DESIGN_MAX_SET];

	if (me->realtime)
		procs_realtime(1);
	while (!me->error && !load_relaxed(&me->stop)) {
		me->error = t->design->read(t->tree, t->owner[me->owner], DESIGNS_POLLED, values);
		store_relaxed(&me->reads, me->reads + 1);
	}
	return NULL;
}

static int stop_polling(unsigned pollers)
{
	int err = 0;

	for (unsigned i = 0; i < pollers; i++)
		store_relaxed(&poller[i].stop, 1);
	for (unsigned i = 0; i < pollers; i++) {
		pthread_join(poller[i].thread, NULL);
		err = err ? err : poller[i].error;
	}
	return err;
}

static int start_polling(struct designs_tree *t, unsigned pollers)
{
	int err = 0;

	for (unsigned i = 0; i < pollers && !err; i++) {
		poller[i] = (struct poller){ .tree = t,
					     .owner = (POLLED_OWNER + i) % t->owners,
					     .realtime = pollers == 1 };
		err = designs_thread_beside(&poller[i].thread, i, poll, &poller[i]);
		if (err)
			stop_polling(i);
	}
	while (!err && pollers && !load_relaxed(&poller[0].reads))
		procs_sleep(20 * NSEC_PER_USEC);
	return err;
}

int run_polled(struct designs_tree *t, unsigned pollers, bool others, uint64_t ns, double *per_us)
{
	const struct bench_design *d = t->design;
	const unsigned first = others ? POLLED_OWNER + 1 : 0;
	uint64_t from, now, batches = 0;
	int err = start_polling(t, pollers);

	if (err)
		return err;
	from = now = clock_ns();
	while (now - from < ns) {
		const unsigned slot = d->enter(t->tree, 0);

		d->update_many(t->tree, slot, t->leaf + first, t->owners - first, DESIGNS_POLLED,
			       RUN_BATCH);
		d->leave(t->tree, slot);
		batches++;
		now = clock_ns();
	}
	*per_us = (double)(batches * RUN_BATCH) * 1e3 / (double)(now - from);
	return stop_polling(pollers);
}

int run_other(struct designs_tree *t, unsigned pollers, uint64_t ns, struct tails *reads)
{
	const struct bench_design *d = t->design;
	const uint64_t leaves[] = { t->leaf[POLLED_OWNER], t->leaf[OTHER_OWNER] };
	uint64_t values[DESIGN_MAX_SET], begin = clock_ns(), from = begin;
	int err = start_polling(t, pollers), read_error = 0;

	if (err)
		return err;
	while (!read_error && from - begin < ns) {
		const unsigned slot = d->enter(t->tree, 0);

		d->update_many(t->tree, slot, leaves, 2, DESIGNS_POLLED, 2);
		d->leave(t->tree, slot);
		from = clock_ns();
		read_error = d->read(t->tree, t->owner[OTHER_OWNER], DESIGNS_POLLED, values);
		tails_add(reads, clock_ns() - from);
	}
	err = stop_polling(pollers);
	return read_error ? read_error : err;
}
