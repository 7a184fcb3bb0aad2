/* SPDX-License-Identifier: MIT */
/*
 * What a tree's cells hold beyond a bank's rows: used by fresh reads and snapshots, between
 * bank_load() and bank_whole().
 */
#ifndef FRESHET_FRESH_H
#define FRESHET_FRESH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/bank.h"

#define FRESH_CHUNK 64u /* words that one call works on at most */

/* What is needed of a seg_life; generation 0: no group lives there, or it is just changing. */
struct fresh_life {
	uint32_t generation;
	uint16_t depth; /* at most FRESHET_MAX_DEPTH */
	bool parent;
	uint64_t born;
};

void fresh_life(const struct freshet_view *v, uint32_t d, struct fresh_life *ret);

/* The slot of the group at a depth (at most its own) above slot d. Valid if the life is found the same
 * afterwards, which fresh_difference() looks at. */
static inline uint32_t fresh_ancestor(const struct freshet_view *v, uint32_t d, uint32_t depth)
{
	return load_relaxed(&cells_life(&v->cells, d)->ancestor[depth]);
}

/*
 * Adds to sum[] what the cells of the group in slot d have beyond the bank's own numbers of it, for
 * words first .. first+count-1 (count <= FRESH_CHUNK). life is d's; its generation
 * is 0 afterwards if nothing was added, because the rows have it all, or it was just changing. 0, or -EAGAIN: give up this bank.
 */
int fresh_difference(const struct freshet_view *v, const struct bank *b, struct cells_range range,
		     uint32_t d, uint32_t first, uint32_t count, uint64_t *sum,
		     struct fresh_life *life);

/* Groups that may have been used: slots below it. */
uint32_t fresh_groups(const struct freshet_view *v);

#endif
