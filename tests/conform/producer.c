/* SPDX-License-Identifier: MIT */
/*
 * The updating process: updaters that come and go, a gardener that removes and makes leaves, a
 * flusher, a reader, and one that makes any of them stand still in the middle of whatever it does
 * (a signal handler that waits) until all others have got on: if somebody had to wait for it, that
 * would never end. The process itself is stopped and continued by the other one (conform.c). Where a
 * design masks signals, all this happens between its functions.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "conform/world.h"
#include "core/words.h"

#define STAND_SIGNAL SIGUSR1
#define STAND_SLEEPS 100000u /* of 50 us: who does not get on in that time waits */
#define WAIT_SLEEPS  200u    /* the same in a design where they may wait: nothing is said of it */
#define GET_ON       3u      /* steps that everybody else must do meanwhile */
#define LIFE         20000u  /* updates of a thread at most */

enum role { UPDATER, READER, FLUSHER, GARDENER, ROLES };

static void *tree;
static void *reader;
static struct group handles[FIXED + CROWD];
static uint8_t bucket_of[VALUES];
static struct reader_thread reader_thread;

/* Whom the signal may hit: written by the thread itself. */
static struct {
	_Alignas(64) pthread_t thread;
	uint32_t there;
	pthread_mutex_t lock; /* while it is there it cannot end */
} member[UPDATERS + ROLES - 1];

static _Thread_local unsigned my_role, my_seat;
static _Thread_local uint64_t my_random;

static bool running(void)
{
	return phase_now() == RUNNING;
}

static void nap(long ns)
{
	const struct timespec t = { .tv_nsec = ns };

	nanosleep(&t, NULL);
}

struct progress {
	uint64_t steps, reads, flushes, births;
};

/* What all but this thread have done. */
static struct progress progress(void)
{
	struct progress p = { 0 };

	for (unsigned i = 0; i < UPDATERS; i++)
		if (my_role != UPDATER || i != my_seat)
			p.steps += load_relaxed(&world->seat[i].steps);
	for (unsigned i = 0; i < READERS; i++)
		if (my_role != READER || i != READERS - 1)
			p.reads += load_relaxed(&world->tally[i].reads);
	p.flushes = load_relaxed(&world->flushes);
	p.births = load_relaxed(&world->births);
	return p;
}

/* Flushes and creations wait for each other; nobody else waits for anybody. */
static bool got_on(const struct progress *from)
{
	struct progress now = progress();
	bool tree_too = my_role == UPDATER || my_role == READER;

	return now.steps - from->steps >= GET_ON && now.reads - from->reads >= GET_ON &&
	       (!tree_too || ((!design->flush || now.flushes - from->flushes >= GET_ON) &&
			      now.births - from->births >= GET_ON));
}

static void stand_still(int signal)
{
	struct tally *t = &world->tally[TALLY_PRODUCER];
	const unsigned sleeps = promised(UNBLOCKED) ? STAND_SLEEPS : WAIT_SLEEPS;
	struct progress from = progress();
	int saved = errno;
	unsigned i = 0;

	/* Most often a reader is held up for a pass or two: more, and it has to start again. */
	if (my_role == READER && next_random(&my_random) % 8) {
		nap((long)(next_random(&my_random) % 300000));
		errno = saved;
		return;
	}
	/* An update in the middle of another one. */
	if (my_role == UPDATER)
		for (unsigned k = 0; k < 4; k++)
			updater_step(UPDATERS + my_seat, next_random(&my_random), handles,
				     bucket_of);
	while (running() && !got_on(&from) && i++ < sleeps)
		nap(50000);
	if (promised(UNBLOCKED))
		check(t, UNBLOCKED, !running() || i < sleeps,
		      "while a thread of role %u stands still, others wait", my_role);
	__atomic_fetch_add(&world->stands, 1, __ATOMIC_RELAXED);
	errno = saved;
}

static void block(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, STAND_SIGNAL);
	pthread_sigmask(how, &set, NULL);
}

/* From here to leave() the thread may be made to stand still. */
static void enter(unsigned number, enum role role)
{
	my_role = role;
	member[number].thread = pthread_self();
	store_release(&member[number].there, 1); /* pairs with make_stand() */
	block(SIG_UNBLOCK);
}

static void leave(unsigned number)
{
	block(SIG_BLOCK);
	pthread_mutex_lock(&member[number].lock);
	store_relaxed(&member[number].there, 0);
	pthread_mutex_unlock(&member[number].lock);
}

static void pin(uint64_t random)
{
	cpu_set_t all, one;
	int n;

	if (sched_getaffinity(0, sizeof(all), &all))
		return;
	n = (int)(random % (unsigned)CPU_COUNT(&all));
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && n-- == 0)
			CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* Its number: the seat. */
static void *update(void *arg)
{
	unsigned seat = (unsigned)(uintptr_t)arg;
	uint64_t random;

	my_seat = seat;
	random = world->seed + seat + __atomic_fetch_add(&world->threads, 1, __ATOMIC_RELAXED) * 7;
	random = random * 0x9e3779b97f4a7c15 | 1;
	my_random = random ^ 0xff00;
	if (next_random(&random) & 1)
		pin(next_random(&random));
	enter(seat, UPDATER);
	for (uint64_t n = next_random(&random) % LIFE + 1; n && running(); n--)
		updater_step(seat, next_random(&random), handles, bucket_of);
	leave(seat);
	return NULL;
}

/* Keeps a seat taken. */
static void *hire(void *arg)
{
	while (running()) {
		pthread_t t;

		if (pthread_create(&t, NULL, update, arg))
			check(&world->tally[TALLY_PRODUCER], to_finish(), false, "no thread");
		else
			pthread_join(t, NULL);
	}
	return NULL;
}

static void *read_all(void *arg)
{
	my_random = world->seed ^ 0x4e4e4e;
	enter(UPDATERS, READER);
	while (running())
		reader_step(&reader_thread);
	leave(UPDATERS);
	return NULL;
}

/* What was done before a flush is in the totals after it. */
static void flush_once(struct tally *t)
{
	uint64_t ops[FIXED], sets[FIXED];
	struct numbers n;
	int r;

	for (unsigned i = 0; i < FIXED; i++)
		done_of(i, &ops[i], &sets[i]);
	r = design->flush(tree);
	check(t, to_finish(), r == 0, "flush: %s", strerror(-r));
	for (unsigned i = 0; r == 0 && i < FIXED; i++)
		if (design->read_flushed(reader, world->fixed[i], &n) == 0)
			check(t, FRESH, n.ops >= ops[i] && n.set[0] >= sets[i],
			      "after a flush, place %u: ops %lld, set %lld less than before it", i,
			      (long long)(ops[i] - n.ops), (long long)(sets[i] - n.set[0]));
	store_relaxed(&world->flushes, world->flushes + 1);
}

static void *flush_all(void *arg)
{
	uint64_t random = world->seed ^ 0xf1f1f1;

	enter(UPDATERS + 1, FLUSHER);
	while (running()) {
		flush_once(&world->tally[TALLY_PRODUCER]);
		if (next_random(&random) % 16 == 0)
			nap((long)(next_random(&random) % 2000000));
	}
	leave(UPDATERS + 1);
	return NULL;
}

static void leaf_show(unsigned i, const struct group *g, uint64_t incarnation)
{
	struct leaf *leaf = &world->leaf[i];

	words_store(&leaf->group, g, sizeof(*g) / 8);
	/* Pairs with leaf_load(). */
	store_release(&leaf->incarnation, incarnation);
}

/* Names are new each time: a removed group may keep its own for a while. */
static int make_leaf(unsigned i, uint64_t number, int later)
{
	uint64_t incarnation = world->leaf[i].incarnation;
	struct group g;
	char name[32];
	int r;

	snprintf(name, sizeof(name), "leaf%u-%llu", i, (unsigned long long)number);
	r = design->create(tree, &handles[service_of(i)], name, later, &g);
	if (r == 0)
		leaf_show(i, &g, (incarnation | 1) + 1);
	return r;
}

static void replace_leaf(struct tally *t, unsigned i, uint64_t number, int later)
{
	uint64_t incarnation = world->leaf[i].incarnation;
	struct group g;
	int r;

	words_load(&g, &world->leaf[i].group, sizeof(g) / 8);
	/* Before anybody finds that it is gone: pairs with the loads where -ENOENT came. */
	store_seq_cst(&world->leaf[i].incarnation, incarnation + 1);
	fence_release(); /* before the words that leaf_show() stores; pairs with leaf_load() */
	r = design->remove(tree, &g);
	check(t, EXACT, r == 0, "remove: %s", strerror(-r));
	do /* the room of removed ones comes back after a while, if updates are under way */
		r = make_leaf(i, number, later);
	while (r == -ENOSPC && running());
	check(t, EXACT, r == 0 || r == -ENOSPC, "create: %s", strerror(-r));
	store_relaxed(&world->births, world->births + 1);
}

static void *garden(void *arg)
{
	static uint64_t number = 1000;
	uint64_t random = world->seed ^ 0x9a9a9a;
	struct tally *t = &world->tally[TALLY_PRODUCER];

	enter(UPDATERS + 2, GARDENER);
	while (running()) {
		uint64_t x = next_random(&random);

		replace_leaf(t, (unsigned)(x >> 8) % LEAVES, number++, x % 4 == 0);
		if (x % 16 == 1)
			nap((long)(x >> 32) % 1000000);
	}
	leave(UPDATERS + 2);
	return NULL;
}

static void *make_stand(void *arg)
{
	uint64_t random = world->seed ^ 0x5a5a5a;

	while (running()) {
		uint64_t x = next_random(&random);
		unsigned which = (unsigned)(x >> 8), i;

		/* Mostly the reader, or an updater. */
		if (x % 8 < 4)
			i = UPDATERS;
		else
			i = which % (x % 8 < 6 ? UPDATERS : UPDATERS + ROLES - 1);
		pthread_mutex_lock(&member[i].lock);
		if (load_acquire(&member[i].there)) /* pairs with enter() */
			pthread_kill(member[i].thread, STAND_SIGNAL);
		pthread_mutex_unlock(&member[i].lock);
		nap((long)(x >> 40) % 3000000);
	}
	return NULL;
}

static void run_round(void)
{
	void *(*const other[])(void *) = { read_all, flush_all, garden, make_stand };
	const unsigned others = sizeof(other) / sizeof(other[0]);
	pthread_t thread[UPDATERS + 4];

	/* Threads inherit it: they are hit where they say so. */
	block(SIG_BLOCK);
	for (uintptr_t i = 0; i < UPDATERS + others; i++)
		if (pthread_create(&thread[i], NULL, i < UPDATERS ? hire : other[i - UPDATERS],
				   (void *)i))
			_exit(3);
	for (unsigned i = 0; i < UPDATERS + others; i++)
		pthread_join(thread[i], NULL);
	if (design->restarts)
		world->restarts = design->restarts();
}

/* Until those of the other process have ended, too: a reader may flush, and have in its hands what it
 * took off and has not added yet. */
static void wait_readers(uint32_t round)
{
	while (load_acquire(&world->read) != round && phase_now() != ENDING)
		nap(100000); /* pairs with run_round() in conform.c */
}

static int make_groups(void)
{
	char name[32];
	int r = 0;

	handles[0] = design->root(tree);
	for (unsigned i = 1; r == 0 && i < FIXED; i++) {
		snprintf(name, sizeof(name), "fixed%u", i);
		r = design->create(tree, &handles[above(i)], name, 0, &handles[i]);
	}
	for (unsigned i = 0; r == 0 && i < CROWD; i++) {
		snprintf(name, sizeof(name), "crowd%u", i);
		r = design->create(tree, &handles[service_of(i)], name, 1, &handles[FIXED + i]);
	}
	for (unsigned i = 0; i < FIXED; i++)
		world->fixed[i] = handles[i].ref;
	for (unsigned i = 0; r == 0 && i < LEAVES; i++)
		r = make_leaf(i, i, 0);
	return r;
}

static int start(void)
{
	int r = design->open(world->path, MAX_GROUPS, &tree);

	if (r)
		return r;
	r = make_groups();
	if (r == 0)
		r = design->attach(tree, NULL, &reader);
	if (r)
		return r;
	reader_init(&reader_thread, READERS - 1, reader);
	for (unsigned v = 0; design->upper && v < VALUES; v++)
		while (design->upper(reader, bucket_of[v]) < v)
			bucket_of[v]++;
	for (unsigned i = 0; i < UPDATERS + ROLES - 1; i++)
		pthread_mutex_init(&member[i].lock, NULL);
	return 0;
}

int producer_main(void)
{
	struct sigaction act = { .sa_handler = stand_still, .sa_flags = SA_RESTART };
	uint32_t round = 0;
	int r;

	sigaction(STAND_SIGNAL, &act, NULL);
	r = start();
	if (r) {
		store_release(&world->error, r); /* pairs with wait_rest() in conform.c */
		return 1;
	}
	for (;;) {
		/* Groups that an update held come out with a second flush. */
		for (unsigned i = 0; design->flush && i < 2; i++)
			flush_once(&world->tally[TALLY_PRODUCER]);
		reader_check_rest(&reader_thread, design->flush != NULL);
		store_release(&world->rested, round + 1); /* pairs with wait_rest() */
		while (load_acquire(&world->round) == round && phase_now() != ENDING)
			nap(100000);
		if (phase_now() == ENDING)
			break;
		round++;
		run_round();
		wait_readers(round);
	}
	design->detach(reader);
	design->close(tree);
	return 0;
}
