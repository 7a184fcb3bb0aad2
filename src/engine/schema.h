/* SPDX-License-Identifier: MIT */
/* What a tree's groups count: checked, copied, and laid out in cells. */
#ifndef FRESHET_SCHEMA_H
#define FRESHET_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <freshet/freshet.h>

#include "core/cells.h"

struct schema {
	struct freshet_stat stats[FRESHET_MAX_STATS]; /* `set`: the number of its first stat */
	unsigned nstats;
	struct freshet_histogram histograms[FRESHET_MAX_HISTOGRAMS];
	unsigned nhistograms;
	char *strings;

	struct seg_part parts[FRESHET_MAX_STATS + FRESHET_MAX_HISTOGRAMS];
	unsigned nparts;
	unsigned words;     /* of a row */
	unsigned cell_size; /* bytes */
	bool down;          /* there is a word for decreases for each stat */

	/* For updates; offsets in words. */
	struct {
		uint16_t offset, count;
	} set[FRESHET_MAX_STATS]; /* by first stat; count 0: no set begins here */
	uint16_t histogram[FRESHET_MAX_HISTOGRAMS];
};

/* Whether a caller's structure of so many bytes, of which we know the first `known`, asks for nothing
 * that we do not know. A field that is added later must not lie in what is padding now. */
bool schema_knows(const void *s, size_t size, size_t known);

/* 0, -EINVAL, -ENOMEM. */
int schema_make(const struct freshet_schema *in, struct schema *ret);
void schema_free(struct schema *s);

#endif
