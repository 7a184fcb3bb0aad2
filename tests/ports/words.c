/* SPDX-License-Identifier: MIT */
/*
 * 64-bit loads and stores of base/atomics.h are whole, on 32-bit machines as well: a signal handler
 * looks and writes in the middle of them, which finds two halves more surely than another CPU does.
 * That they take no lock shows in that this links: libatomic, which would have it, is not asked for.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>

#include "base/atomics.h"
#include "tap.h"

#define STEP    ((1ull << 32) + 1) /* equal halves, and so all its multiples below 2^32 */
#define SIGNALS 3000u
#define SWAPS   500000u

static struct {
	_Alignas(64) uint64_t word;
} shared;
static volatile unsigned torn_stores, signals;

static int torn(uint64_t v)
{
	return (uint32_t)v != v >> 32;
}

static void interrupt(int sig)
{
	torn_stores += (unsigned)torn(load_relaxed(&shared.word));
	signals++;
	store_relaxed(&shared.word, (0x80000000u + signals) * STEP);
}

static void start_signals(unsigned us)
{
	struct sigaction sa = { .sa_handler = interrupt };
	struct itimerval t = { .it_interval.tv_usec = us, .it_value.tv_usec = us };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
}

TEST(whole)
{
	int torn_loads = 0;

	start_signals(50);
	for (uint32_t i = 0; signals < SIGNALS; i = (i + 3) & 0xfffff) {
		store_relaxed(&shared.word, i * STEP);
		store_release(&shared.word, (i + 1) * STEP); /* pairs with nothing, as all here */
		store_seq_cst(&shared.word, (i + 2) * STEP);
		torn_loads += torn(load_relaxed(&shared.word));
		torn_loads += torn(load_acquire(&shared.word));
		torn_loads += torn(load_seq_cst(&shared.word));
	}
	start_signals(0);
	EXPECT_EQ(torn_stores, 0);
	EXPECT_EQ(torn_loads, 0);
}

static void *swap(void *arg)
{
	for (unsigned i = 0; i < SWAPS; i++) {
		uint64_t v = load_relaxed(&shared.word);

		while (!cas_seq_cst(&shared.word, &v, v + STEP))
			;
	}
	return NULL;
}

TEST(none_lost)
{
	pthread_t thread;

	shared.word = 0;
	REQUIRE(pthread_create(&thread, NULL, swap, NULL) == 0);
	swap(NULL);
	pthread_join(thread, NULL);
	EXPECT(shared.word == 2 * SWAPS * STEP, "%llx", (unsigned long long)shared.word);
}

TAP_MAIN
