/* SPDX-License-Identifier: MIT */
/*
 * Snapshots: a private copy of the whole tree as of one pass.
 *
 * There are two shapes (entries and names) and two blocks of rows. A take fills those that are not
 * in use, and only when the pass proved whole do they change roles, so that a failed take leaves
 * the former contents. While the segment's topology stays, so does the shape, and only rows are
 * copied.
 *
 * With a limit (freshet_snapshot_limit()) neither memory nor time of a take depends on what a hostile
 * segment says: memory is looked at before each allocation, the clock before each piece of work whose
 * length the segment chooses: every 64 groups' dirty bits, every chunk of a group's cells.
 *
 * Invariant: a shape in use is a proper tree in pre-order: it was checked when it was copied.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/bank.h"
#include "core/fresh.h"
#include "core/path.h"

struct shape {
	struct freshet_entry *entries;
	size_t capacity;
	uint32_t count;
	char *names; /* one after the other, by entry, each with its NUL */
	size_t names_capacity;
	uint8_t identity[16]; /* of the segment it came from */
	uint64_t topology;
};

struct rows {
	uint64_t *words; /* by entry: present, values */
	size_t capacity;
};

struct freshet_snapshot {
	struct shape shape[2];
	struct rows rows[2];
	unsigned shape_used, rows_used; /* 0 or 1 */
	struct freshet_moment moment;   /* pass 0: nothing taken yet */
	size_t max_bytes;               /* 0: any */
	uint64_t max_ns;                /* 0: any */
	uint64_t until_ns;              /* of the take under way */
};

size_t freshet_snapshot_memory(const struct freshet_snapshot *s)
{
	size_t sum = 0;

	for (unsigned i = 0; i < 2; i++)
		sum += s->shape[i].capacity * sizeof(*s->shape[i].entries) +
		       s->shape[i].names_capacity + s->rows[i].capacity * sizeof(uint64_t);
	return sum;
}

void freshet_snapshot_limit(struct freshet_snapshot *s, size_t max_bytes, uint64_t max_ns)
{
	s->max_bytes = max_bytes;
	s->max_ns = max_ns;
}

/* Whether so many bytes more are too many. */
static bool too_much(const struct freshet_snapshot *s, uint64_t more)
{
	return s->max_bytes && freshet_snapshot_memory(s) + more > s->max_bytes;
}

static bool too_late(const struct freshet_snapshot *s)
{
	return s->max_ns && clock_ns() > s->until_ns;
}

/* Makes an array at least n long; its contents are lost. */
static int reserve(const struct freshet_snapshot *s, void *array, size_t *capacity, size_t n,
		   size_t element)
{
	void **p = array;
	size_t want = n + n / 4;
	void *new;

	if (n <= *capacity)
		return 0;
	if (too_much(s, (uint64_t)(want - *capacity) * element))
		return -E2BIG;
	new = reallocarray(NULL, want, element);
	if (!new)
		return -ENOMEM;
	free(*p);
	*p = new;
	*capacity = want;
	return 0;
}

int freshet_snapshot_new(struct freshet_snapshot **ret)
{
	struct freshet_snapshot *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*ret = s;
	return 0;
}

void freshet_snapshot_free(struct freshet_snapshot *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < 2; i++) {
		free(s->shape[i].entries);
		free(s->shape[i].names);
		free(s->rows[i].words);
	}
	free(s);
}

/* Whether o is entry i > 0 of a tree in pre-order whose entries before i are e[]. */
static bool fits(const struct freshet_entry *e, uint32_t i, const struct seg_order *o)
{
	uint32_t above = i - 1;

	while (i >= above + e[above].size) { /* ends at the root: i < count = its size */
		if (above == 0)
			return false;
		above = e[above].parent;
	}
	return o->parent == above && o->depth == e[above].depth + 1 &&
	       i + o->size <= above + e[above].size;
}

static int copy_order(const struct freshet_snapshot *s, const struct freshet_view *v,
		      const struct bank *b, struct shape *t)
{
	int r = reserve(s, &t->entries, &t->capacity, b->ngroups, sizeof(*t->entries));

	if (r)
		return r;
	for (uint32_t i = 0; i < b->ngroups; i++) {
		struct seg_order o;

		r = bank_order(b, i, &o);
		if (r)
			return r;
		if (i ? !fits(t->entries, i, &o) : o.size != b->ngroups || o.depth != 0)
			return -EIO;
		t->entries[i] = (struct freshet_entry){
			.group = bank_group(v, b, o.slot),
			.id = bank_id(v, o.slot),
			.parent = o.parent,
			.size = o.size,
			.depth = o.depth,
		};
	}
	t->count = b->ngroups;
	return 0;
}

static int copy_names(const struct freshet_snapshot *s, const struct freshet_view *v,
		      struct shape *t)
{
	struct bank_name name;
	size_t used = 0;
	char *p;

	for (uint32_t i = 0; i < t->count; i++) {
		int r = bank_name(v, t->entries[i].group, i == 0, &name);

		if (r)
			return r;
		if (t->names_capacity - used < name.len + 1u) {
			size_t want = 2 * t->names_capacity + sizeof(name.s);

			if (too_much(s, want - t->names_capacity))
				return -E2BIG;
			p = realloc(t->names, want);
			if (!p)
				return -ENOMEM;
			t->names = p;
			t->names_capacity = want;
		}
		memcpy(t->names + used, name.s, name.len + 1u);
		used += name.len + 1u;
	}
	p = t->names;
	for (uint32_t i = 0; i < t->count; i++) {
		t->entries[i].name = p;
		p += strlen(p) + 1;
	}
	return 0;
}

static int copy_rows(const struct freshet_snapshot *s, const struct freshet_view *v,
		     const struct bank *b, const struct shape *t, struct rows *rows)
{
	const size_t width = 1 + (size_t)v->words;
	int r = reserve(s, &rows->words, &rows->capacity, t->count * width, sizeof(*rows->words));

	if (r)
		return r;
	for (uint32_t i = 0; i < t->count; i++) {
		struct freshet_group g = t->entries[i].group;
		uint64_t *to = rows->words + i * width;
		const struct seg_row *row;

		/* An older shape may name slots that this bank does not have. */
		if (g.generation == 0 || g.slot >= b->nslots)
			return -EIO;
		row = bank_row(v, b, g.slot);
		if (load_relaxed(&row->generation) != g.generation ||
		    load_relaxed(&row->position) != i)
			return -EIO;
		words_load(to, &row->present, width);
		to[0] = bank_present(to[0], to + 1, v->nstats);
	}
	return 0;
}

/* Adds a group's difference, chunk by chunk, to its row and to those of all groups above it. */
static int add_group(const struct freshet_snapshot *s, const struct freshet_view *v,
		     const struct bank *b, struct cells_range range, uint32_t d, uint32_t count,
		     struct rows *rows)
{
	const size_t width = 1 + (size_t)v->words;
	struct fresh_life life;

	fresh_life(v, d, &life);
	for (uint32_t first = 0; first < v->words; first += FRESH_CHUNK) {
		uint32_t n = v->words - first < FRESH_CHUNK ? v->words - first : FRESH_CHUNK;
		uint64_t difference[FRESH_CHUNK] = { 0 };
		int r = too_late(s) ? -E2BIG
				    : fresh_difference(v, b, range, d, first, n, difference, &life);

		if (r)
			return r;
		for (uint32_t k = 0; life.generation && k <= life.depth; k++) {
			uint32_t above = fresh_ancestor(v, d, k), position;
			const struct seg_row *row = bank_row(v, b, above);
			uint64_t *to;

			/* One that is younger than the bank has no row yet. */
			if (above >= b->nslots || load_relaxed(&row->generation) == 0)
				continue;
			position = load_relaxed(&row->position);
			if (position >= count)
				return -EIO;
			to = rows->words + position * width + 1 + first;
			for (uint32_t i = 0; i < n; i++)
				to[i] += difference[i];
		}
	}
	return 0;
}

static int add_cells(const struct freshet_snapshot *s, const struct freshet_view *v,
		     const struct bank *b, uint32_t count, struct rows *rows)
{
	const uint32_t groups = fresh_groups(v);
	struct cells_range range = cells_range(&v->cells);

	for (uint32_t i = 0; i * 64 < groups; i++) {
		uint64_t bits = cells_dirty(&v->cells, range, b->epoch, i);

		if (too_late(s))
			return -E2BIG;
		for (; bits; bits &= bits - 1) {
			uint32_t d = i * 64 + (uint32_t)__builtin_ctzll(bits);
			int r = d < groups ? add_group(s, v, b, range, d, count, rows) : 0;

			if (r)
				return r;
		}
	}
	return 0;
}

struct take {
	struct freshet_snapshot *snap;
	unsigned shape; /* filled or still right */
	struct freshet_moment moment;
};

static int take(const struct freshet_view *v, const struct bank *b, void *arg)
{
	struct take *k = arg;
	struct freshet_snapshot *s = k->snap;
	struct shape *t = &s->shape[s->shape_used];
	int r;

	/* Nothing was published, but it was when this was attached; or there is no root. */
	if (b->pass == 0 || (v->live && b->ngroups == 0))
		return -EIO;
	if (too_late(s))
		return -E2BIG;
	k->shape = s->shape_used;
	if (s->moment.pass == 0 || t->topology != b->topology || t->count != b->ngroups ||
	    memcmp(t->identity, v->fixed.identity, sizeof(t->identity))) {
		k->shape = !s->shape_used;
		t = &s->shape[k->shape];
		r = copy_order(s, v, b, t);
		if (r == 0)
			r = copy_names(s, v, t);
		if (r)
			return r;
		t->topology = b->topology;
		memcpy(t->identity, v->fixed.identity, sizeof(t->identity));
	}
	k->moment = (struct freshet_moment){ b->pass, b->begin_ns, b->end_ns };
	if (v->live)
		k->moment.begin_ns = clock_ns();
	r = copy_rows(s, v, b, t, &s->rows[!s->rows_used]);
	if (r || !v->live)
		return r;
	r = add_cells(s, v, b, t->count, &s->rows[!s->rows_used]);
	k->moment.end_ns = clock_ns();
	return r;
}

int freshet_snapshot_take(struct freshet_snapshot *s, const struct freshet_view *v)
{
	struct take k = { .snap = s };
	struct shape *t;
	uint64_t *words;
	int r;

	if (s->max_ns)
		s->until_ns = clock_ns() + s->max_ns;
	r = bank_read(v, take, &k);
	if (r == -EAGAIN && too_late(s))
		r = -E2BIG;
	if (r)
		return r;
	s->shape_used = k.shape;
	s->rows_used = !s->rows_used;
	s->moment = k.moment;
	t = &s->shape[s->shape_used];
	words = s->rows[s->rows_used].words;
	for (uint32_t i = 0; i < t->count; i++) {
		t->entries[i].present = words[0];
		t->entries[i].values = words + 1;
		words += 1 + (size_t)v->words;
	}
	return 0;
}

size_t freshet_snapshot_count(const struct freshet_snapshot *s)
{
	return s->shape[s->shape_used].count;
}

const struct freshet_entry *freshet_snapshot_entries(const struct freshet_snapshot *s)
{
	return s->shape[s->shape_used].entries;
}

void freshet_snapshot_moment(const struct freshet_snapshot *s, struct freshet_moment *ret)
{
	*ret = s->moment;
}

int freshet_snapshot_find(const struct freshet_snapshot *s, const char *path, size_t *ret)
{
	const struct freshet_entry *e = freshet_snapshot_entries(s);
	size_t at = 0, end = freshet_snapshot_count(s), len, i;
	bool there = end > 0;
	const char *part;
	int r;

	/* Goes on when nothing fits any more, because a "." later in the path is an error, too. */
	while ((r = path_part(&path, &part, &len)) > 0) {
		if (!there)
			continue;
		for (i = at + 1; i < end; i += e[i].size)
			if (!strncmp(e[i].name, part, len) && !e[i].name[len])
				break;
		there = i < end;
		if (there) {
			at = i;
			end = i + e[i].size;
		}
	}
	if (r)
		return r;
	if (!there)
		return -ENOENT;
	*ret = at;
	return 0;
}

int freshet_snapshot_path(const struct freshet_snapshot *s, size_t i, char *buf, size_t size)
{
	const struct freshet_entry *e = freshet_snapshot_entries(s);
	size_t need = 1, left;

	if (i >= freshet_snapshot_count(s))
		return -EINVAL;
	for (size_t at = i; at; at = e[at].parent)
		need += strlen(e[at].name) + 1;
	if (i == 0)
		need++;
	if (need > size)
		return -ENAMETOOLONG;
	left = need - 1;
	buf[left] = '\0';
	if (i == 0)
		buf[--left] = '/';
	for (size_t at = i; at; at = e[at].parent) {
		size_t len = strlen(e[at].name);

		left -= len;
		memcpy(buf + left, e[at].name, len);
		buf[--left] = '/';
	}
	return 0;
}
