/* SPDX-License-Identifier: MIT */
/*
 * The loops that `update` times, made by one macro, so that all contenders get the same. For C and
 * C++.
 *
 * LOOPS(name, handle, get, update) defines name_one(cells, from, n) and name_many(...): n updates,
 * numbered from `from` on. `handle` is what a program keeps to update a counter; get(cells, i) is
 * the i-th of the contender's; update(h, i) is update number i of it. name_one keeps the handle of
 * cell 0 in a local variable; name_many takes one of LOOPS_CELLS at random from its array each time.
 *
 * The compiler may keep nothing in a register across an update that others must see (the empty asm
 * statement) and may not unroll.
 */
#ifndef FRESHET_BENCH_LOOPS_H
#define FRESHET_BENCH_LOOPS_H

#include <stdint.h>

#define LOOPS_CELLS 1024u

#ifdef __clang__
#define LOOPS_AS_IS _Pragma("clang loop unroll(disable)")
#else
#define LOOPS_AS_IS _Pragma("GCC unroll 1")
#endif

/* A function of a counter, so that one update's does not wait for the former's. */
static inline uint64_t loops_random(uint64_t i)
{
	i *= 0x9e3779b97f4a7c15u;
	i ^= i >> 32;
	return i * 0xd6e8feb86659fd93u;
}

#define LOOPS(name, handle, get, update)                                                  \
	static void name##_one(void *cells, uint64_t from, uint64_t n)                    \
	{                                                                                 \
		const uint64_t end = from + n;                                            \
		handle h = get(cells, 0);                                                 \
                                                                                          \
		LOOPS_AS_IS                                                               \
		for (uint64_t i = from; i < end; i++) {                                   \
			update(h, i);                                                     \
			__asm__ __volatile__("" ::: "memory");                            \
		}                                                                         \
	}                                                                                 \
	static void name##_many(void *cells, uint64_t from, uint64_t n)                   \
	{                                                                                 \
		const uint64_t end = from + n;                                            \
                                                                                          \
		LOOPS_AS_IS                                                               \
		for (uint64_t i = from; i < end; i++) {                                   \
			handle h = get(cells, (unsigned)(loops_random(i) % LOOPS_CELLS)); \
                                                                                          \
			update(h, i);                                                     \
			__asm__ __volatile__("" ::: "memory");                            \
		}                                                                         \
	}

#endif
