/* SPDX-License-Identifier: MIT */
/*
 * Implements counters.h. Numbers of a thread's own lie one behind the other; what threads share has
 * a cache line for each counter, which is the kinder choice for it.
 */
#include "counters.h"

#include <pthread.h>

#ifdef BENCH_HAVE_CK
#include <ck_pr.h>
#include <ck_spinlock.h>
#endif
#ifdef BENCH_HAVE_URCU
#define _LGPL_SOURCE /* its read lock inline, at its best */
#include <urcu/urcu-memb.h>
#endif

#include "base/atomics.h"
#include "loops.h"

struct line {
	_Alignas(64) uint64_t n;
	pthread_mutex_t mutex;
#ifdef BENCH_HAVE_CK
	ck_spinlock_t spinlock;
#endif
};

static _Alignas(128) uint64_t own[WORKERS][LOOPS_CELLS];
static _Alignas(128) struct line shared[LOOPS_CELLS];

#define OWN(cells, i)    ((uint64_t *)(cells) + (i))
#define SHARED(cells, i) ((struct line *)(cells) + (i))

#define PLAIN(p, i)       ((*(p))++)
#define LOCK_ADD(p, i)    __atomic_fetch_add((p), 1, __ATOMIC_RELAXED)
#define LOCK_SHARED(p, i) __atomic_fetch_add(&(p)->n, 1, __ATOMIC_RELAXED)
#define MUTEX(p, i)                                \
	do {                                       \
		pthread_mutex_lock(&(p)->mutex);   \
		(p)->n++;                          \
		pthread_mutex_unlock(&(p)->mutex); \
	} while (0)

LOOPS(plain, uint64_t *, OWN, PLAIN)
LOOPS(lock_add, uint64_t *, OWN, LOCK_ADD)
LOOPS(lock_shared, struct line *, SHARED, LOCK_SHARED)
LOOPS(mutex, struct line *, SHARED, MUTEX)

/* Other cells than 0 lie in other lines than it. */
static int plain_read(void *cells, unsigned cell)
{
	(void)load_relaxed(OWN(cells, cell == 0 ? 0 : 64 + cell % (LOOPS_CELLS - 64)));
	return 0;
}

#ifdef BENCH_HAVE_CK
#define CK_FAA(p, i) ck_pr_faa_64(&(p)->n, 1)
#define CK_SPINLOCK(p, i)                           \
	do {                                        \
		ck_spinlock_lock(&(p)->spinlock);   \
		(p)->n++;                           \
		ck_spinlock_unlock(&(p)->spinlock); \
	} while (0)

LOOPS(ck_faa, struct line *, SHARED, CK_FAA)
LOOPS(ck_spinlock, struct line *, SHARED, CK_SPINLOCK)
#endif

#ifdef BENCH_HAVE_URCU
static uint64_t *guarded[WORKERS][LOOPS_CELLS];

#define GUARDED(cells, i) ((uint64_t **)(cells) + (i))
#define URCU_COUNT(p, i)                    \
	do {                                \
		urcu_memb_read_lock();      \
		(*rcu_dereference(*(p)))++; \
		urcu_memb_read_unlock();    \
	} while (0)

LOOPS(liburcu, uint64_t **, GUARDED, URCU_COUNT)

static void urcu_enter(void)
{
	urcu_memb_register_thread();
}

static void urcu_leave(void)
{
	urcu_memb_unregister_thread();
}
#endif

static const struct contender all[] = {
	{ .what = "plain",
	  .how = "x++ on memory of the thread's own",
	  .one = plain_one,
	  .many = plain_many,
	  .cells = { own[0], own[1] },
	  .read = plain_read },
	{ .what = "lock-add-private",
	  .how = "atomic add on memory of the thread's own",
	  .one = lock_add_one,
	  .many = lock_add_many,
	  .cells = { own[0], own[1] } },
	{ .what = "lock-add-shared",
	  .how = "atomic add on memory that threads share",
	  .one = lock_shared_one,
	  .many = lock_shared_many,
	  .cells = { shared, shared } },
	{ .what = "mutex",
	  .how = "x++ under a pthread_mutex_t of each counter",
	  .one = mutex_one,
	  .many = mutex_many,
	  .cells = { shared, shared } },
#ifdef BENCH_HAVE_CK
	{ .what = "ck",
	  .how = "ck_pr_faa_64() on memory that threads share",
	  .one = ck_faa_one,
	  .many = ck_faa_many,
	  .cells = { shared, shared } },
	{ .what = "ck-spinlock",
	  .how = "x++ under a ck_spinlock_t of each counter",
	  .one = ck_spinlock_one,
	  .many = ck_spinlock_many,
	  .cells = { shared, shared } },
#endif
#ifdef BENCH_HAVE_URCU
	{ .what = "liburcu",
	  .how = "x++ on a number of the thread's own, found through a pointer "
		 "under urcu_memb_read_lock()",
	  .one = liburcu_one,
	  .many = liburcu_many,
	  .cells = { guarded[0], guarded[1] },
	  .enter = urcu_enter,
	  .leave = urcu_leave },
#endif
};

const struct contender *counters(size_t *count)
{
	for (size_t i = 0; i < LOOPS_CELLS; i++) {
		pthread_mutex_init(&shared[i].mutex, NULL);
#ifdef BENCH_HAVE_CK
		ck_spinlock_init(&shared[i].spinlock);
#endif
#ifdef BENCH_HAVE_URCU
		for (size_t t = 0; t < WORKERS; t++)
			guarded[t][i] = &own[t][i];
#endif
	}
	*count = sizeof(all) / sizeof(all[0]);
	return all;
}

const char *counters_missing(size_t i)
{
	static const char *const missing[] = {
#ifndef BENCH_HAVE_CK
		"ck: libck was not there when this program was built",
#endif
#ifndef BENCH_HAVE_URCU
		"liburcu: it was not there when this program was built",
#endif
		NULL
	};

	return missing[i];
}
