/* SPDX-License-Identifier: MIT */
/*
 * The groups of one pass as top_model.c keeps them, with the rates they have against the pass before.
 * Pure. Groups are found by id from one generation to the next.
 */
#ifndef FRESHET_TOP_PASS_H
#define FRESHET_TOP_PASS_H

#include "view/top_model.h"

/* Groups of one pass with their names in one block. */
struct generation {
	struct top_group *group;
	struct top_cell *cells;
	uint64_t *buckets; /* NULL: there are no histograms */
	char *names;
	uint32_t *hash; /* position + 1 by id; 0: free. A power of two, at least twice the groups */
	size_t mask;
	uint32_t count;
};

/* What a pass is to the rates. */
enum role {
	FIRST,   /* the base, and there was none before it */
	BETWEEN, /* too young */
	NEXT,    /* gives rates, and is the next base */
};

void generation_free(struct generation *g);

/* The group of that id, or NULL. */
const struct top_group *generation_find(const struct generation *g, uint64_t id);

/* Fills next from the pass; before: the generation to carry on from. 0 or -ENOMEM. */
int generation_take(struct generation *next, const struct generation *before,
		    const struct top_pass *pass, enum role role, uint64_t elapsed_ns);

#endif
