/* SPDX-License-Identifier: MIT */
/*
 * A spinlock that may time how long it is held.
 *
 * The kernel's spins because its holder cannot be interrupted; here the holder can, and whoever
 * waits lets others run after a while, or 2 CPUs would spend whole time slices waiting for a thread
 * that has none. Works between processes that share its memory.
 *
 * The kernel's is a queue. A queue of threads that can be preempted stands still whenever the next one
 * does not run, so this is none; but who drops the lock to take it again (spin_break()) lets somebody
 * who is waiting have it, as a queue would.
 */
#ifndef FRESHET_BENCH_SPIN_H
#define FRESHET_BENCH_SPIN_H

#include <sched.h>
#include <stdint.h>

#include "base/atomics.h"
#include "base/clock.h"

#define SPIN_TRIES    100u /* some microseconds */
#define SPIN_HANDOVER 32u  /* in which a waiting thread that runs notices that a lock is free */

struct spin {
	_Alignas(128) uint32_t held;
	uint32_t wanted; /* somebody was waiting since this was last 0 */
	uint32_t timing;
	uint64_t since;   /* of the holder */
	uint64_t longest; /* of the holder; read by anybody */
};

static inline void spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	/* About as long; "yield" is no pause on most. */
	__asm__ __volatile__("isb" ::: "memory");
#else
	__asm__ __volatile__("" ::: "memory");
#endif
}

/* Waits a moment, the n-th time in a row. */
static inline void spin_wait(unsigned n)
{
	if (n % SPIN_TRIES == SPIN_TRIES - 1)
		sched_yield();
	else
		spin_pause();
}

static inline void spin_lock(struct spin *l)
{
	unsigned tries = 0;

	for (;;) {
		uint32_t free = 0;

		/* Acquire (and more): pairs with spin_unlock(). */
		if (!load_relaxed(&l->held) && cas_seq_cst(&l->held, &free, 1))
			break;
		if (!load_relaxed(&l->wanted))
			store_relaxed(&l->wanted, 1);
		spin_wait(tries++);
	}
	if (load_relaxed(&l->timing))
		l->since = clock_ns();
}

static inline void spin_unlock(struct spin *l)
{
	if (load_relaxed(&l->timing) && l->since) {
		uint64_t ns = clock_ns() - l->since;

		if (ns > load_relaxed(&l->longest))
			store_relaxed(&l->longest, ns);
		l->since = 0;
	}
	store_release(&l->held, 0); /* pairs with spin_lock() */
}

/* Drops and retakes it. */
static inline void spin_break(struct spin *l)
{
	const uint32_t wanted = load_relaxed(&l->wanted);

	store_relaxed(&l->wanted, 0);
	spin_unlock(l);
	for (unsigned i = 0; wanted && i < SPIN_HANDOVER && !load_relaxed(&l->held); i++)
		spin_pause();
	spin_lock(l);
}

/* Starts to time; the longest time that it was held since the last call, ns. */
static inline uint64_t spin_longest(struct spin *l)
{
	uint64_t ns;

	spin_lock(l);
	ns = l->longest;
	l->longest = 0;
	l->since = 0;
	store_relaxed(&l->timing, 1);
	spin_unlock(l);
	return ns;
}

#endif
