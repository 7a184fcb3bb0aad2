/* SPDX-License-Identifier: MIT */
/*
 * Atomics with their order in their name; the only file that includes <stdatomic.h>.
 *
 * They work on plain integers, so that structures in shared memory stay plain C that a C++ program
 * or another language can describe. Each use that is not relaxed says what it pairs with.
 */
#ifndef FRESHET_ATOMICS_H
#define FRESHET_ATOMICS_H

#include <stdatomic.h>

#define load_relaxed(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

#define load_seq_cst(p)     __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define store_seq_cst(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
/* Whether *p was *expected and is now v; else *expected is what was there. */
#define cas_seq_cst(p, expected, v)                                                            \
	__atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

/* Loads before it are done before loads after it. */
#define fence_acquire() atomic_thread_fence(memory_order_acquire)
/* Stores before it are seen before stores after it. */
#define fence_release() atomic_thread_fence(memory_order_release)
/* All before it is done before all after it, in one order for all threads. */
#define fence_seq_cst() atomic_thread_fence(memory_order_seq_cst)

#endif
