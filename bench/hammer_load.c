/* SPDX-License-Identifier: MIT */
/*
 * Implements hammer_load.h. Each process counts in its own place in shared memory; who measures looks
 * there and stops nobody. Processes are spread over the CPUs and stay there, since the scheduler's
 * moving them is the largest noise of all; the two of a pair share one, so that each hand-over is a
 * switch.
 */
#include "hammer_load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "procs.h"

#define MAX_RUNNERS 8u
#define MAX_PAIRS   4u

#define UNIT_WORDS    2048u /* 16 KiB: half a level 1 cache */
#define BURST_UNITS   50u   /* some 200 us */
#define BURST_PAUSE   (300 * NSEC_PER_USEC)
#define SLEEP_NS      (100 * NSEC_PER_MSEC)
#define SLEEPER_WORDS 64u
#define ACCOUNT_HANDS 32u

/* Written by one process, with plain values of its own. */
struct worker {
	_Alignas(128) uint64_t units;
	uint64_t switches, sys_ns;
};

struct hammer_load {
	struct worker *worker; /* shared */
	pid_t *pid;
	unsigned count, capacity;
};

struct job {
	struct worker *self;
	const char *cgroup;
	int in, out; /* of a pair */
	unsigned number;
};

static uint64_t words[UNIT_WORDS];

static void work(unsigned count)
{
	uint64_t x = count;

	for (unsigned i = 0; i < count; i++) {
		x = x * 0x9e3779b97f4a7c15u + words[i];
		words[i] = x;
	}
}

static void unit(struct worker *w)
{
	work(UNIT_WORDS);
	store_relaxed(&w->units, w->units + 1);
}

static void account(struct worker *w)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	store_relaxed(&w->switches, (uint64_t)(u.ru_nvcsw + u.ru_nivcsw));
	store_relaxed(&w->sys_ns, (uint64_t)u.ru_stime.tv_sec * NSEC_PER_SEC +
					  (uint64_t)u.ru_stime.tv_usec * 1000);
}

/* These never return: they are killed. */

static void run_sleeper(const struct job *j)
{
	procs_sleep(j->number * 7919u % 1000u * (SLEEP_NS / 1000)); /* not all at once */
	for (;;) {
		procs_sleep(SLEEP_NS);
		work(SLEEPER_WORDS);
		account(j->self);
	}
}

static void run_runner(const struct job *j)
{
	for (;;) {
		for (unsigned i = 0; i < BURST_UNITS; i++)
			unit(j->self);
		account(j->self);
		procs_sleep(BURST_PAUSE);
	}
}

static void run_half(const struct job *j)
{
	char hand = 0;

	for (unsigned i = 0;; i++) {
		if (read(j->in, &hand, 1) != 1)
			_exit(1);
		unit(j->self);
		if (write(j->out, &hand, 1) != 1)
			_exit(1);
		if (i % ACCOUNT_HANDS == 0)
			account(j->self);
	}
}

/* 0 or -errno. */
static int start(struct hammer_load *l, struct job j, void (*run)(const struct job *), unsigned cpu)
{
	pid_t pid = procs_fork_into(j.cgroup);

	j.self = &l->worker[l->count];
	j.number = l->count;
	if (pid == 0) {
		procs_pin(0, procs_nth_cpu(cpu));
		run(&j);
	}
	if (pid < 0)
		return -errno;
	l->pid[l->count++] = pid;
	return 0;
}

static int start_pair(struct hammer_load *l, const char *cgroup, unsigned cpu)
{
	struct job a = { .cgroup = cgroup }, b = a;
	int to[2], back[2], err;

	if (pipe2(to, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(back, O_CLOEXEC) < 0) {
		err = -errno;
		close(to[0]);
		close(to[1]);
		return err;
	}
	a.out = to[1], b.in = to[0];
	b.out = back[1], a.in = back[0];
	err = write(back[1], "", 1) == 1 ? 0 : -errno; /* the first hand */
	if (!err)
		err = start(l, a, run_half, cpu);
	if (!err)
		err = start(l, b, run_half, cpu);
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(back[i]);
	}
	return err;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Number i of so many places that lie apart, from the end of the tree, where the leaves are. */
static const char *place(const struct cgroups *c, unsigned i, unsigned of)
{
	return c->path[c->count - 1 - i * c->count / of];
}

static int start_all(struct hammer_load *l, const struct cgroups *c)
{
	unsigned runners = least(MAX_RUNNERS, c->count / 2);
	unsigned pairs = least(MAX_PAIRS, c->count / 2);
	int err = 0;

	for (unsigned i = 0; i < c->count && !err; i++)
		err = start(l, (struct job){ .cgroup = c->path[i] }, run_sleeper, i);
	for (unsigned i = 0; i < runners && !err; i++)
		err = start(l, (struct job){ .cgroup = place(c, i, runners + pairs) }, run_runner,
			    i);
	for (unsigned i = 0; i < pairs && !err; i++)
		err = start_pair(l, place(c, runners + i, runners + pairs), i);
	return err;
}

int hammer_load_start(struct hammer_load **ret, const struct cgroups *c)
{
	struct hammer_load *l = calloc(1, sizeof(*l));
	unsigned capacity = c->count + MAX_RUNNERS + 2 * MAX_PAIRS;
	int err = -ENOMEM;

	if (!l)
		goto fail;
	l->capacity = capacity;
	l->pid = calloc(capacity, sizeof(*l->pid));
	l->worker = mmap(NULL, capacity * sizeof(*l->worker), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l->worker == MAP_FAILED)
		l->worker = NULL;
	if (l->pid && l->worker)
		err = start_all(l, c);
	if (!err) {
		*ret = l;
		return 0;
	}
fail:
	fprintf(stderr, "freshet-bench: no processes in the cgroups: %s\n", strerror(-err));
	hammer_load_stop(l);
	return -1;
}

void hammer_load_sum(const struct hammer_load *l, struct hammer_load_sum *ret)
{
	*ret = (struct hammer_load_sum){ 0 };
	for (unsigned i = 0; i < l->count; i++) {
		ret->units += load_relaxed(&l->worker[i].units);
		ret->switches += load_relaxed(&l->worker[i].switches);
		ret->sys_ns += load_relaxed(&l->worker[i].sys_ns);
	}
}

void hammer_load_stop(struct hammer_load *l)
{
	if (!l)
		return;
	procs_kill_all(l->pid, l->count);
	if (l->worker)
		munmap(l->worker, l->capacity * sizeof(*l->worker));
	free(l->pid);
	free(l);
}
