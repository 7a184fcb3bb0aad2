/* SPDX-License-Identifier: MIT */
/* Arithmetic on the pass's counters, word by word. */
#ifndef FRESHET_COUNTERS_H
#define FRESHET_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/pass.h"

#define COUNTERS_EACH(X) X(stime) X(utime) X(exec) X(nice_) X(force_idle)

static inline void counters_add(struct pass_counters *to, const struct pass_counters *from)
{
#define X(f) to->f += from->f;
	COUNTERS_EACH(X)
#undef X
}

/* False when a word wraps or is so large that it must have wrapped before (292 years of ns). */
static inline bool counters_sub(struct pass_counters *to, const struct pass_counters *from)
{
	bool good = true;

#define X(f)              \
	to->f -= from->f; \
	good &= (long long)to->f >= 0;
	COUNTERS_EACH(X)
#undef X
	return good;
}

/* grown += now - before where that is positive; before becomes max(before, now). */
static inline void counters_growth(struct pass_counters *grown, struct pass_counters *before,
				   const struct pass_counters *now)
{
#define X(f)                                    \
	if (now->f > before->f) {               \
		grown->f += now->f - before->f; \
		before->f = now->f;             \
	}
	COUNTERS_EACH(X)
#undef X
}

static inline bool counters_equal(const struct pass_counters *a, const struct pass_counters *b)
{
	unsigned long long differ = 0;

#define X(f) differ |= a->f ^ b->f;
	COUNTERS_EACH(X)
#undef X
	return !differ;
}

static inline bool counters_any(const struct pass_counters *c)
{
	unsigned long long any = 0;

#define X(f) any |= c->f;
	COUNTERS_EACH(X)
#undef X
	return any != 0;
}

#endif
