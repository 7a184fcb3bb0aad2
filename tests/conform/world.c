/* SPDX-License-Identifier: MIT */
/* Implements world.h. */
#include "conform/world.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/words.h"

#define PRINTED 10u /* violations that are told in detail */

const char *const promise_name[PROMISES] = { "exact",    "fresh",     "whole",
					     "monotone", "unblocked", "quiet" };

bool check(struct tally *t, enum promise p, bool good, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	if (t < &world->tally[READERS])
		store_relaxed(&t->checks[p], t->checks[p] + 1);
	else
		__atomic_fetch_add(&t->checks[p], 1, __ATOMIC_RELAXED);
	if (__builtin_expect(good, 1))
		return true;
	__atomic_fetch_add(&t->wrong[p], 1, __ATOMIC_RELAXED);
	if (promised(p) && __atomic_fetch_add(&world->printed, 1, __ATOMIC_RELAXED) < PRINTED) {
		va_start(ap, fmt);
		vsnprintf(line, sizeof(line), fmt, ap);
		va_end(ap);
		printf("# not %s: %s\n", promise_name[p], line);
		fflush(stdout);
	}
	return false;
}

bool leaf_load(unsigned i, uint64_t *incarnation, struct group *ret)
{
	const struct leaf *leaf = &world->leaf[i];
	/* Pairs with leaf_show() in producer.c. */
	uint64_t now = load_acquire(&leaf->incarnation);

	words_load(ret, &leaf->group, sizeof(*ret) / 8);
	fence_acquire();
	*incarnation = now;
	return now % 2 == 0 && load_relaxed(&leaf->incarnation) == now;
}

uint64_t checks_of(enum promise p)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < READERS + 2; i++)
		n += load_relaxed(&world->tally[i].checks[p]);
	return n;
}

uint64_t wrong_of(enum promise p)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < READERS + 2; i++)
		n += load_relaxed(&world->tally[i].wrong[p]);
	return n;
}

uint64_t all_wrong(void)
{
	uint64_t n = 0;

	for (unsigned p = 0; p < PROMISES; p++)
		n += promised(p) ? wrong_of(p) : 0;
	return n;
}
