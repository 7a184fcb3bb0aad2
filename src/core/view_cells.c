/* SPDX-License-Identifier: MIT */
/*
 * Attaching to a tree with cells: the sections of cells.h, copied and checked once.
 *
 * Invariant: what reads of cells compute from v->cells and v->parts lies inside its section, for
 * every group slot below max_groups and every CPU slot.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "core/cells.h"
#include "core/view.h"
#include "core/words.h"

static bool has_section(const struct freshet_view *v, uint32_t type)
{
	for (uint32_t i = 0; i < v->fixed.nsections; i++)
		if (v->fixed.section[i].type == type)
			return true;
	return false;
}

static const char *mapped(const struct freshet_view *v, const struct seg_section *s)
{
	return (const char *)v->header + s->offset;
}

static int load_control(struct freshet_view *v)
{
	const struct seg_section *s =
		view_section(v, SEG_CONTROL, 1, sizeof(struct seg_control));
	struct cells *c = &v->cells;
	_Alignas(8) struct seg_control k;

	if (!s)
		return -EIO;
	words_load(&k, mapped(v, s), sizeof(k) / 8);
	if (k.rseq_slots > CELLS_MAX_SLOTS || k.fallback_slots > CELLS_MAX_SLOTS ||
	    k.slots != k.rseq_slots + k.fallback_slots || k.slots == 0)
		return -EIO;
	if (k.words < v->nstats || k.words > FRESHET_MAX_WORDS ||
	    v->row_stride < sizeof(struct seg_row) + 16 * k.words)
		return -EIO;
	if (k.cell_size % 8 || k.cell_size < 8 || k.cell_size > 1u << 20 || k.dirty_row % 8 ||
	    k.dirty_row < (v->max_groups + 7) / 8 || k.dirty_row > SEG_MAX_GROUPS)
		return -EIO;
	if (k.nparts == 0 || k.nparts > FRESHET_MAX_STATS + FRESHET_MAX_HISTOGRAMS ||
	    k.nhistograms > FRESHET_MAX_HISTOGRAMS || v->nbanks != CELLS_EPOCHS)
		return -EIO;
	c->control = (const void *)mapped(v, s);
	c->slots = k.slots;
	c->rseq_slots = k.rseq_slots;
	c->fallback_slots = k.fallback_slots;
	c->words = k.words;
	c->cell_size = k.cell_size;
	c->dirty_row = k.dirty_row;
	c->nparts = k.nparts;
	c->max_groups = v->max_groups;
	v->nhistograms = k.nhistograms;
	v->words = k.words;
	return 0;
}

static int find_arrays(struct freshet_view *v)
{
	struct cells *c = &v->cells;
	const struct seg_section *lives =
		view_section(v, SEG_LIVES, v->max_groups, sizeof(struct seg_life));
	const struct seg_section *dirty =
		view_section(v, SEG_DIRTY, CELLS_EPOCHS * (c->slots + 1), c->dirty_row);
	const struct seg_section *cells = view_section(v, SEG_CELLS, c->slots,
						       (uint64_t)v->max_groups * c->cell_size);

	if (!lives || !dirty || dirty->stride != c->dirty_row || !cells)
		return -EIO;
	c->lives = mapped(v, lives);
	c->life_stride = lives->stride;
	c->dirty = mapped(v, dirty);
	c->cells = mapped(v, cells);
	c->cells_stride = cells->stride;
	return 0;
}

/* Whether count words from `at` on lie in a cell, behind its stamp. */
static bool in_cell(const struct cells *c, uint32_t at, uint32_t count)
{
	return at % 8 == 0 && at >= 8 && at <= c->cell_size && count <= (c->cell_size - at) / 8;
}

static bool part_good(const struct cells *c, const struct seg_part *p)
{
	if (!in_cell(c, p->at, p->count))
		return false;
	switch (p->type) {
	case PART_WORDS:
		return true;
	case PART_PAIR:
		return p->count == 1 && in_cell(c, p->down, 1);
	case PART_SET:
		return p->count <= FRESHET_MAX_SET && (!p->less || in_cell(c, p->less, p->count)) &&
		       in_cell(c, p->down, 1 + FRESHET_BANKS * p->count);
	default:
		return false;
	}
}

static int load_parts(struct freshet_view *v)
{
	struct cells *c = &v->cells;
	const struct seg_section *s =
		view_section(v, SEG_PARTS, c->nparts, sizeof(struct seg_part));
	uint32_t first = 0;

	if (!s)
		return -EIO;
	v->parts = calloc(c->nparts, sizeof(*v->parts));
	if (!v->parts)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->nparts; i++) {
		struct seg_part *p = &v->parts[i];

		words_load(p, mapped(v, s) + i * s->stride, sizeof(*p) / 8);
		if (p->first != first || p->count == 0 || p->count > c->words - first ||
		    !part_good(c, p))
			return -EIO;
		for (uint32_t j = first; j < first + p->count && j < v->nstats; j++)
			v->part_of[j] = (uint8_t)i;
		first += p->count;
	}
	if (first != c->words)
		return -EIO;
	c->parts = v->parts;
	return 0;
}

static int load_histograms(struct freshet_view *v, uint64_t strings_size)
{
	const struct seg_section *s;

	if (v->nhistograms == 0)
		return 0;
	s = view_section(v, SEG_HISTOGRAMS, v->nhistograms, sizeof(struct seg_histogram));
	if (!s)
		return -EIO;
	for (uint32_t i = 0; i < v->nhistograms; i++) {
		struct freshet_histogram *h = &v->histograms[i];
		_Alignas(8) struct seg_histogram m;

		words_load(&m, mapped(v, s) + i * s->stride, sizeof(m) / 8);
		if (view_string(v, strings_size, m.family, &h->family) ||
		    view_string(v, strings_size, m.name, &h->name) ||
		    view_string(v, strings_size, m.key, &h->key) ||
		    view_string(v, strings_size, m.help, &h->help))
			return -EIO;
		if (m.unit > FRESHET_BYTES)
			return -EPROTO;
		h->unit = m.unit;
		h->buckets = (uint16_t)freshet_buckets(m.precision, m.lowest, m.highest);
		if (h->buckets == 0 || m.word < v->nstats || m.word >= v->words ||
		    h->buckets + 1u > v->words - m.word)
			return -EIO;
		h->precision = (uint8_t)m.precision;
		h->lowest = (uint8_t)m.lowest;
		h->highest = (uint8_t)m.highest;
		h->word = (uint16_t)m.word;
	}
	return 0;
}

int view_cells(struct freshet_view *v, uint64_t strings_size)
{
	int r;

	if (!has_section(v, SEG_CONTROL))
		return 0;
	r = load_control(v);
	if (r == 0)
		r = find_arrays(v);
	if (r == 0)
		r = load_parts(v);
	if (r == 0)
		r = load_histograms(v, strings_size);
	if (r == 0)
		v->live = true;
	return r;
}

int freshet_is_live(const struct freshet_view *v)
{
	return v->live;
}

const struct freshet_histogram *freshet_histograms(const struct freshet_view *v, size_t *count)
{
	*count = v->nhistograms;
	return v->histograms;
}
