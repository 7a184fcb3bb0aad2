/* SPDX-License-Identifier: MIT */
/*
 * 64-bit loads and stores of base/atomics.h are whole, on 32-bit machines as well. That they take no
 * lock shows in that this links: libatomic, which would have it, is not asked for.
 */
#include <pthread.h>
#include <stdint.h>

#include "base/atomics.h"
#include "tap.h"

#define STEP    ((1ull << 32) + 1) /* equal halves, and so all its multiples below 2^32 */
#define READS   20000000u
#define CHANGES 200u /* seen at least: few, as the threads may share a CPU */
#define SWAPS   500000u

static struct {
	_Alignas(64) uint64_t word;
} shared;
static int stop;

static void *store(void *arg)
{
	for (uint32_t i = 0; !load_relaxed(&stop); i += 3) {
		store_relaxed(&shared.word, i * STEP);
		store_release(&shared.word, (i + 1) * STEP); /* pairs with nothing */
		if (i % 64 == 0)
			store_seq_cst(&shared.word, (i + 2) * STEP);
	}
	return NULL;
}

static int torn(uint64_t v)
{
	return (uint32_t)v != v >> 32;
}

TEST(whole)
{
	pthread_t thread;
	unsigned bad = 0, reads = 0, changes = 0;
	uint64_t last = 0;

	REQUIRE(pthread_create(&thread, NULL, store, NULL) == 0);
	while (reads < READS || changes < CHANGES) {
		uint64_t v = load_relaxed(&shared.word);

		bad += torn(v) + torn(load_acquire(&shared.word));
		bad += torn(load_seq_cst(&shared.word));
		changes += v != last;
		last = v;
		reads++;
	}
	store_relaxed(&stop, 1);
	pthread_join(thread, NULL);
	EXPECT(bad == 0, "%u of %u reads, with %u changes", bad, reads, changes);
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
