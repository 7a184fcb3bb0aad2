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
	free(g->cells);
	free(g->buckets);
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

/* Words of a group's histograms, one after the other in the order of the columns. */
static size_t buckets_of(const struct top_columns *columns)
{
	size_t words = 0;

	for (unsigned c = 0; c < columns->count; c++)
		if (columns->column[c].kind == TOP_P99)
			words += columns->column[c].histogram.buckets;
	return words;
}

static int generation_alloc(struct generation *g, uint32_t count, size_t names, size_t columns,
			    size_t buckets)
{
	size_t slots = 16;

	while (slots < 2 * (size_t)count)
		slots *= 2;
	*g = (struct generation){ 0 };
	g->group = calloc(count, sizeof(*g->group));
	g->cells = calloc(count * columns, sizeof(*g->cells));
	if (buckets)
		g->buckets = reallocarray(NULL, count * buckets, sizeof(*g->buckets));
	g->names = malloc(names);
	g->hash = calloc(slots, sizeof(*g->hash));
	g->mask = slots - 1;
	g->count = count;
	if (g->group && g->cells && (g->buckets || !buckets) && g->names && g->hash)
		return 0;
	generation_free(g);
	return -ENOMEM;
}

/* The 99th percentile of what was observed since the base; NaN if nothing was, or if a bucket fell. */
static double p99(const struct freshet_histogram *h, const uint64_t *now, const uint64_t *base,
		  uint64_t *value)
{
	uint64_t since[FRESHET_MAX_WORDS], count = 0;

	for (unsigned i = 0; i < h->buckets; i++) {
		if (now[i] < base[i])
			return NAN;
		since[i] = now[i] - base[i];
		count += since[i];
	}
	if (!count)
		return NAN;
	*value = freshet_quantile(h, since, 0.99);
	return (double)*value;
}

/* Histogram of a group: what is shown of it, and its base. old: the same one in the pass before. */
static void distribution(struct top_cell *to, const struct top_cell *old,
			 const struct freshet_histogram *h, const uint64_t *now, uint64_t *base,
			 const uint64_t *old_base, enum role role)
{
	bool known = old && old->in_base && role != FIRST;
	size_t size = h->buckets * sizeof(*now);

	to->present = true;
	to->number = NAN;
	if (known && role == NEXT) {
		to->number = p99(h, now, old_base, &to->value);
	} else if (known) {
		to->number = old->number;
		to->value = old->value;
	}
	to->in_base = role != BETWEEN || known;
	if (to->in_base)
		memcpy(base, role == BETWEEN ? old_base : now, size);
}

/* A number of a group. */
static void number(struct top_cell *to, const struct top_cell *old, const struct top_column *c,
		   const struct freshet_entry *e, enum role role, uint64_t elapsed_ns)
{
	double per = c->kind == TOP_PERCENT ? 100.0 : 1e9;

	to->number = NAN;
	to->present = c->value >= 0 && e->present >> c->value & 1;
	if (to->present) {
		to->value = e->values[c->value];
		if (c->kind == TOP_VALUE)
			to->number = (double)(int64_t)to->value;
		else if (c->kind == TOP_TOTAL)
			to->number = (double)to->value;
		else if (old && role == BETWEEN)
			to->number = old->number;
		else if (old && role == NEXT && old->in_base && to->value >= old->base)
			to->number = per * (double)(to->value - old->base) / (double)elapsed_ns;
	}
	if (role != BETWEEN) {
		to->base = to->value;
		to->in_base = to->present;
	} else if (old) {
		to->base = old->base;
		to->in_base = old->in_base;
	}
}

/* All cells of a group; old: the same one in the pass before, or NULL. */
static void fill_cells(struct top_group *to, const struct top_group *old,
		       const struct top_columns *columns, const struct freshet_entry *e,
		       enum role role, uint64_t elapsed_ns)
{
	size_t at = 0;

	for (unsigned c = 0; c < columns->count; c++) {
		const struct top_column *column = &columns->column[c];
		/* of another producer's pass there may be others */
		const struct top_cell *before = old && role != FIRST ? &old->cell[c] : NULL;

		if (column->kind != TOP_P99) {
			number(&to->cell[c], before, column, e, role, elapsed_ns);
			continue;
		}
		distribution(&to->cell[c], before, &column->histogram, e->values + column->value,
			     to->buckets + at, before ? old->buckets + at : NULL, role);
		at += column->histogram.buckets;
	}
}

int generation_take(struct generation *next, const struct generation *before,
		    const struct top_pass *pass, enum role role, uint64_t elapsed_ns)
{
	const struct freshet_entry *root = &pass->entries[pass->first];
	const struct top_columns *columns = pass->columns;
	size_t buckets = buckets_of(columns), names = 0;
	uint32_t count = root->size;
	char *at;

	for (uint32_t i = 0; i < count; i++)
		names += strlen(root[i].name) + 1;
	if (generation_alloc(next, count, names, columns->count, buckets))
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
		g->cell = next->cells + (size_t)i * columns->count;
		g->buckets = buckets ? next->buckets + i * buckets : NULL;
		fill_cells(g, old, columns, e, role, elapsed_ns);
		g->folded = old && old->folded;
		generation_insert(next, i);
	}
	return 0;
}
