/* SPDX-License-Identifier: MIT */
/*
 * Implements top_model.h.
 *
 * Two generations of groups (top_pass.h): `now` and, while a pass is taken in, the one before it. What
 * a group had in the base is handed on with it. Rows are made from `now` alone. Trees come from
 * outside: no recursion, so that a nonsensical tree gives nonsensical rows and nothing worse.
 */
#include "view/top_model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/top_pass.h"

struct top_model {
	struct generation now;
	uint64_t pass;     /* 0: none yet */
	uint64_t begin_ns; /* when it began */
	uint64_t base_ns;  /* when the base did */
	uint8_t identity[16];

	struct top_columns columns;
	int by;
	bool reverse;
	bool flat;
	char filter[256];

	struct top_row *row;   /* room for as many as groups */
	uint32_t *scratch;     /* the same: children being sorted, then the stack */
	uint32_t *scratch_row; /* row of the parent, beside the stack */
	bool *kept;            /* by group: it or a descendant matches */
	size_t nrows;

	uint64_t selected_id;
	size_t selected;
	size_t first; /* row at the window's top */
};

int top_model_new(struct top_model **ret)
{
	struct top_model *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	*ret = m;
	return 0;
}

void top_model_free(struct top_model *m)
{
	if (!m)
		return;
	generation_free(&m->now);
	free(m->row);
	free(m->scratch);
	free(m->scratch_row);
	free(m->kept);
	free(m);
}

static int grow_rows(struct top_model *m, uint32_t count)
{
	struct top_row *row = malloc(count * sizeof(*row));
	uint32_t *scratch = malloc(count * sizeof(*scratch));
	uint32_t *scratch_row = malloc(count * sizeof(*scratch_row));
	bool *kept = malloc(count * sizeof(*kept));

	if (!row || !scratch || !scratch_row || !kept) {
		free(row);
		free(scratch);
		free(scratch_row);
		free(kept);
		return -ENOMEM;
	}
	free(m->row);
	free(m->scratch);
	free(m->scratch_row);
	free(m->kept);
	m->row = row;
	m->scratch = scratch;
	m->scratch_row = scratch_row;
	m->kept = kept;
	return 0;
}

static void build_rows(struct top_model *m);

int top_model_pass(struct top_model *m, const struct top_pass *pass)
{
	bool same = m->pass && !memcmp(m->identity, pass->identity, sizeof(m->identity));
	uint64_t elapsed_ns = 0;
	enum role role = FIRST;
	struct generation next;
	int r;

	/* a live tree's numbers change between its flushes, too */
	if (same && pass->moment.pass == m->pass && pass->moment.begin_ns == m->begin_ns)
		return 0;
	if (same && pass->moment.begin_ns >= m->base_ns) {
		elapsed_ns = pass->moment.begin_ns - m->base_ns;
		role = elapsed_ns >= TOP_SPAN_NS ? NEXT : BETWEEN;
	}
	r = generation_take(&next, &m->now, pass, role, elapsed_ns);
	if (r < 0)
		return r;
	if (next.count > m->now.count) {
		r = grow_rows(m, next.count);
		if (r < 0) {
			generation_free(&next);
			return r;
		}
	}
	if (!m->pass)
		m->selected_id = next.group[0].id;
	generation_free(&m->now);
	m->now = next;
	m->pass = pass->moment.pass;
	m->begin_ns = pass->moment.begin_ns;
	if (!same) {
		m->columns = *pass->columns;
		if (m->by >= (int)m->columns.count)
			m->by = 0;
	}
	if (role != BETWEEN)
		m->base_ns = pass->moment.begin_ns;
	memcpy(m->identity, pass->identity, sizeof(m->identity));
	build_rows(m);
	return 1;
}

/* ---- rows ---- */

/* Negative: a before b in the order wanted. Ties: by name, then as the pass has them. */
static int compare(const struct top_model *m, uint32_t ia, uint32_t ib)
{
	const struct top_group *a = &m->now.group[ia], *b = &m->now.group[ib];
	double va = 0, vb = 0;
	int r;

	if (m->by >= 0) {
		va = a->cell[m->by].number;
		vb = b->cell[m->by].number;
	}
	/* what has no rate comes last, whatever the direction */
	if (isnan(va) != isnan(vb))
		return isnan(va) ? 1 : -1;
	if (va != vb && !isnan(va))
		return (va < vb) == m->reverse ? -1 : 1;
	r = strcmp(a->name, b->name);
	if (r)
		return m->by == TOP_BY_NAME && m->reverse ? -r : r;
	return ia < ib ? -1 : ia > ib;
}

static int compare_r(const void *a, const void *b, void *m)
{
	return compare(m, *(const uint32_t *)a, *(const uint32_t *)b);
}

/* Sets matched and kept of every group. */
static void match(struct top_model *m)
{
	uint32_t count = m->now.count;
	char path[FRESHET_PATH_MAX];

	for (uint32_t i = 0; i < count; i++) {
		m->now.group[i].matched = true;
		if (m->filter[0]) {
			top_model_path(m, i, path, sizeof(path));
			m->now.group[i].matched = strcasestr(path, m->filter);
		}
		m->kept[i] = m->now.group[i].matched;
	}
	for (uint32_t i = count; i-- > 1;)
		if (m->kept[i])
			m->kept[m->now.group[i].parent] = true;
}

static void push_row(struct top_model *m, uint32_t group, uint32_t parent, bool last)
{
	m->row[m->nrows++] = (struct top_row){ .group = group, .parent = parent, .last = last };
}

/* Depth first, siblings sorted; m->scratch is the stack, whose top is what comes next. */
static void build_tree(struct top_model *m)
{
	uint32_t depth = 0;
	bool flat = m->flat;

	if (m->kept[0] || !m->filter[0]) {
		m->scratch[depth] = 0;
		m->scratch_row[depth++] = 0;
	}
	while (depth) {
		uint32_t i = m->scratch[--depth], parent = m->scratch_row[depth];
		const struct top_group *g = &m->now.group[i];
		uint32_t bottom = depth;

		/* siblings lie together on the stack, the last of them lowest */
		if (!flat || g->matched)
			push_row(m, i, flat ? 0 : parent,
				 !depth || m->scratch_row[depth - 1] != parent);
		if (!flat && g->folded && !m->filter[0])
			continue;
		parent = flat ? i : (uint32_t)m->nrows - 1;
		for (uint32_t c = i + 1; c < i + g->size; c += m->now.group[c].size) {
			if (m->now.group[c].parent != i || !m->kept[c])
				continue;
			m->scratch[depth] = c;
			m->scratch_row[depth++] = parent;
		}
		if (depth - bottom < 2)
			continue;
		qsort_r(m->scratch + bottom, depth - bottom, sizeof(*m->scratch), compare_r, m);
		for (uint32_t a = bottom, b = depth - 1; a < b; a++, b--) {
			uint32_t swap = m->scratch[a];

			m->scratch[a] = m->scratch[b];
			m->scratch[b] = swap;
		}
	}
}

static void build_flat(struct top_model *m)
{
	uint32_t n = 0;

	/* by path is the tree's own order */
	if (m->by == TOP_BY_NAME) {
		build_tree(m);
		return;
	}
	for (uint32_t i = 0; i < m->now.count; i++)
		if (m->now.group[i].matched)
			m->scratch[n++] = i;
	qsort_r(m->scratch, n, sizeof(*m->scratch), compare_r, m);
	for (uint32_t i = 0; i < n; i++)
		push_row(m, m->scratch[i], 0, false);
}

/* Row of the group, or of its nearest ancestor that has one; SIZE_MAX: none. */
static size_t row_of(const struct top_model *m, const struct top_group *g)
{
	for (;;) {
		uint32_t i = (uint32_t)(g - m->now.group);

		for (size_t row = 0; row < m->nrows; row++)
			if (m->row[row].group == i)
				return row;
		if (!i)
			return SIZE_MAX;
		g = &m->now.group[g->parent];
	}
}

static void build_rows(struct top_model *m)
{
	const struct top_group *wanted = generation_find(&m->now, m->selected_id);
	size_t row;

	m->nrows = 0;
	if (!m->now.count)
		return;
	match(m);
	if (m->flat)
		build_flat(m);
	else
		build_tree(m);
	row = wanted ? row_of(m, wanted) : SIZE_MAX;
	top_model_select(m, row != SIZE_MAX ? row : m->selected);
}

const struct top_group *top_model_groups(const struct top_model *m, size_t *count)
{
	*count = m->now.count;
	return m->now.group;
}

const struct top_row *top_model_rows(const struct top_model *m, size_t *count)
{
	*count = m->nrows;
	return m->row;
}

void top_model_path(const struct top_model *m, uint32_t group, char *buf, size_t size)
{
	static const char cut[] = "..."; /* no path begins so */
	char path[FRESHET_PATH_MAX];
	size_t at = sizeof(path) - 1, whole = 0, len;

	for (uint32_t i = group; i; i = m->now.group[i].parent)
		whole += strlen(m->now.group[i].name) + 1;
	path[at] = '\0';
	for (uint32_t i = group; i; i = m->now.group[i].parent) {
		const char *name = m->now.group[i].name;

		len = strlen(name);
		if (whole >= sizeof(path) && len + 1 + strlen(cut) > at) {
			at -= strlen(cut);
			memcpy(path + at, cut, strlen(cut));
			break;
		}
		at -= len;
		memcpy(path + at, name, len);
		path[--at] = '/';
	}
	snprintf(buf, size, "%s", path + at);
}

void top_model_guides(const struct top_model *m, size_t row, unsigned levels, bool ascii,
		      struct buf *b)
{
	static const char *const lines[2][4] = { { "│ ", "  ", "├╴", "└╴" },
						 { "| ", "  ", "|-", "`-" } };
	const char *piece[256];
	unsigned n = 0;

	if (levels > 256)
		levels = 256;
	if (m->flat)
		return;
	for (size_t at = row; at && n < levels; at = m->row[at].parent)
		piece[n++] = lines[ascii][(at == row) * 2 + m->row[at].last];
	while (n)
		buf_str(b, piece[--n]);
}

const struct top_columns *top_model_columns(const struct top_model *m)
{
	return m->pass ? &m->columns : NULL;
}

void top_model_sort(struct top_model *m, int by, bool reverse)
{
	if (by != TOP_BY_NAME && m->pass && (by < 0 || by >= (int)m->columns.count))
		by = 0;
	m->by = by;
	m->reverse = reverse;
	build_rows(m);
}

int top_model_sorted_by(const struct top_model *m, bool *reverse)
{
	*reverse = m->reverse;
	return m->by;
}

void top_model_flat(struct top_model *m, bool flat)
{
	m->flat = flat;
	build_rows(m);
}

bool top_model_is_flat(const struct top_model *m)
{
	return m->flat;
}

void top_model_filter(struct top_model *m, const char *text)
{
	snprintf(m->filter, sizeof(m->filter), "%s", text ? text : "");
	build_rows(m);
}

const char *top_model_filtered(const struct top_model *m)
{
	return m->filter;
}

void top_model_fold(struct top_model *m)
{
	struct top_group *g;

	if (!m->nrows || m->flat)
		return;
	g = &m->now.group[m->row[m->selected].group];
	if (g->size > 1)
		g->folded = !g->folded;
	build_rows(m);
}

/* ---- selection ---- */

size_t top_model_selected(const struct top_model *m)
{
	return m->selected;
}

void top_model_select(struct top_model *m, size_t row)
{
	if (!m->nrows) {
		m->selected = 0;
		return;
	}
	m->selected = row < m->nrows ? row : m->nrows - 1;
	m->selected_id = m->now.group[m->row[m->selected].group].id;
}

void top_model_move(struct top_model *m, long rows)
{
	if (rows < 0 && (size_t)-rows > m->selected)
		top_model_select(m, 0);
	else
		top_model_select(m, m->selected + (size_t)rows);
}

size_t top_model_scroll(struct top_model *m, size_t height)
{
	size_t most = m->nrows > height ? m->nrows - height : 0;

	if (m->first > m->selected)
		m->first = m->selected;
	if (height && m->selected - m->first >= height)
		m->first = m->selected - height + 1;
	if (m->first > most)
		m->first = most;
	return m->first;
}
