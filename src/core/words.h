/* SPDX-License-Identifier: MIT */
/*
 * Copying to and from memory that another process reads or writes at the same moment: word by word
 * with relaxed atomics, so that it is defined what a race gives (each word is some value that was
 * stored there). Order comes from the caller's fences. Addresses are multiples of 8.
 */
#ifndef FRESHET_WORDS_H
#define FRESHET_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/atomics.h"

typedef uint64_t __attribute__((may_alias)) word;

static inline void words_load(void *to, const void *from, size_t nwords)
{
	word *t = to;
	const word *f = from;

	for (size_t i = 0; i < nwords; i++)
		t[i] = load_relaxed(&f[i]);
}

static inline void words_store(void *to, const void *from, size_t nwords)
{
	word *t = to;
	const word *f = from;

	for (size_t i = 0; i < nwords; i++)
		store_relaxed(&t[i], f[i]);
}

#endif
