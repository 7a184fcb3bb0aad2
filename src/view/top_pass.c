/* SPDX-License-Identifier: MIT */
/* Implements top_pass.h. Trees come from outside: positions are clamped. */
#include "view/top_pass.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void generation_free(struct generation *g)
{
	free(g->group);
	free(g->names);
	free(g->hash);
}

static size_t hash_of(uint64_t id, size_t mask)
{
	return (size_t)((id * 0x9e3779b97f4a7c15ull) >> 20) & mask;
}

const struct top_group *generation_find(const struct generation *g, uint64_t id)
{
	if (!g->count)
		return NULL;
	for (size_t i = hash_of(id, g->mask); g->hash[i]; i = (i + 1) & g->mask) {
		const struct top_group *found = &g->group[g->hash[i] - 1];

		if (found->id == id)
			return found;
	}
	return NULL;
}

static void generation_insert(struct generation *g, uint32_t position)
{
	size_t i = hash_of(g->group[position].id, g->mask);

	while (g->hash[i])
		i = (i + 1) & g->mask;
	g->hash[i] = position + 1;
}

static int generation_alloc(struct generation *g, uint32_t count, size_t names)
{
	size_t slots = 16;

	while (slots < 2 * (size_t)count)
		slots *= 2;
	g->group = calloc(count, sizeof(*g->group));
	g->names = malloc(names);
	g->hash = calloc(slots, sizeof(*g->hash));
	g->mask = slots - 1;
	g->count = count;
	if (g->group && g->names && g->hash)
		return 0;
	generation_free(g);
	return -ENOMEM;
}

/* Rates and base of a group; old: the same one in the pass before, or NULL. */
static void rates(struct top_group *to, const struct top_group *old, enum role role,
		  uint64_t elapsed_ns)
{
	for (unsigned c = 0; c < TOP_NCOLUMNS; c++) {
		to->percent[c] = NAN;
		if (!old || !(to->present & 1u << c))
			continue;
		if (role == BETWEEN)
			to->percent[c] = old->percent[c];
		else if (role == NEXT && old->in_base & 1u << c && to->value[c] >= old->base[c])
			to->percent[c] =
				100.0 * (double)(to->value[c] - old->base[c]) / (double)elapsed_ns;
	}
	if (role != BETWEEN) {
		memcpy(to->base, to->value, sizeof(to->base));
		to->in_base = to->present;
	} else if (old) {
		memcpy(to->base, old->base, sizeof(to->base));
		to->in_base = old->in_base;
	}
}

int generation_take(struct generation *next, const struct generation *before,
		    const struct top_pass *pass, enum role role, uint64_t elapsed_ns)
{
	const struct freshet_entry *root = &pass->entries[pass->first];
	uint32_t count = root->size;
	size_t names = 0;
	char *at;

	for (uint32_t i = 0; i < count; i++)
		names += strlen(root[i].name) + 1;
	if (generation_alloc(next, count, names))
		return -ENOMEM;
	at = next->names;
	for (uint32_t i = 0; i < count; i++) {
		const struct freshet_entry *e = &root[i];
		const struct top_group *old = generation_find(before, e->id);
		struct top_group *g = &next->group[i];
		size_t len = strlen(e->name) + 1;

		g->id = e->id;
		g->name = memcpy(at, e->name, len);
		at += len;
		g->parent = i && e->parent >= pass->first ? e->parent - (uint32_t)pass->first : 0;
		if (g->parent >= i)
			g->parent = 0;
		g->size = e->size && e->size <= count - i ? e->size : 1;
		g->depth = e->depth >= root->depth ? e->depth - root->depth : 0;
		for (unsigned c = 0; c < TOP_NCOLUMNS; c++) {
			int column = pass->column[c];

			if (column < 0 || !(e->present >> column & 1))
				continue;
			g->value[c] = e->values[column];
			g->present |= 1u << c;
		}
		g->folded = old && old->folded;
		rates(g, old, role, elapsed_ns);
		generation_insert(next, i);
	}
	return 0;
}
