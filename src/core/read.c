/* SPDX-License-Identifier: MIT */
/*
 * Reading a view: groups by path, children, one group's numbers.
 *
 * Ordering and progress: bank.h. Every loop over entries moves on by a checked size of at least 1,
 * or up to a checked smaller parent, so that none runs longer than ngroups.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/bank.h"
#include "core/path.h"

struct find {
	const char *path;
	struct freshet_group group;
};

/* The child of entry *at, which reaches to `end`, by name. On success *at and *end are its. */
static int find_child(const struct freshet_view *v, const struct bank *b, const char *name,
		      size_t len, uint32_t *at, uint32_t *end)
{
	struct bank_name have;
	struct seg_order o;
	int r;

	for (uint32_t i = *at + 1; i < *end; i += o.size) {
		r = bank_order(b, i, &o);
		if (r)
			return r;
		if (o.size > *end - i)
			return -EIO;
		r = bank_name(v, bank_group(v, b, o.slot), false, &have);
		if (r)
			return r;
		if (have.len == len && !memcmp(have.s, name, len)) {
			*at = i;
			*end = i + o.size;
			return 0;
		}
	}
	return -ENOENT;
}

static int find(const struct freshet_view *v, const struct bank *b, void *arg)
{
	struct find *f = arg;
	const char *path = f->path, *part;
	uint32_t at = 0, end = b->ngroups;
	struct seg_order o;
	size_t len;
	int r;

	if (b->ngroups == 0)
		return v->live ? -EIO : -ENOENT;
	while ((r = path_part(&path, &part, &len)) > 0) {
		r = find_child(v, b, part, len, &at, &end);
		if (r)
			return r;
	}
	if (r)
		return r;
	r = bank_order(b, at, &o);
	if (r)
		return r;
	f->group = bank_group(v, b, o.slot);
	return f->group.generation ? 0 : -EIO;
}

int freshet_find(const struct freshet_view *v, const char *path, struct freshet_group *ret)
{
	struct find f = { .path = path };
	const char *rest = path, *part;
	size_t len;
	int r;

	while ((r = path_part(&rest, &part, &len)) > 0)
		;
	if (r == 0)
		r = bank_read(v, find, &f);
	if (r == 0)
		*ret = f.group;
	return r;
}

int freshet_root(const struct freshet_view *v, struct freshet_group *ret)
{
	return freshet_find(v, "/", ret);
}

struct children {
	struct freshet_group group;
	struct freshet_group *ret;
	size_t capacity;
	size_t count;
};

static int children(const struct freshet_view *v, const struct bank *b, void *arg)
{
	struct children *c = arg;
	struct seg_order o;
	uint32_t at, end;
	int r;

	r = bank_entry(v, b, c->group, &at, &o);
	if (r)
		return r;
	c->count = 0;
	end = at + o.size;
	for (uint32_t i = at + 1; i < end; i += o.size) {
		r = bank_order(b, i, &o);
		if (r)
			return r;
		if (o.size > end - i)
			return -EIO;
		if (c->count < c->capacity)
			c->ret[c->count] = bank_group(v, b, o.slot);
		c->count++;
	}
	return 0;
}

int freshet_children(const struct freshet_view *v, struct freshet_group group,
		     struct freshet_group *ret, size_t capacity, size_t *count)
{
	struct children c = { .group = group, .ret = ret, .capacity = capacity };
	int r = bank_read(v, children, &c);

	if (r == 0)
		*count = c.count;
	return r;
}

struct info {
	struct freshet_group group;
	struct freshet_info info;
};

static int info(const struct freshet_view *v, const struct bank *b, void *arg)
{
	struct info *f = arg;
	struct seg_order o, parent;
	struct bank_name name;
	uint32_t at;
	int r;

	r = bank_entry(v, b, f->group, &at, &o);
	if (r)
		return r;
	memset(&f->info, 0, sizeof(f->info));
	r = bank_name(v, f->group, at == 0, &name);
	if (r)
		return r;
	memcpy(f->info.name, name.s, name.len + 1);
	f->info.id = bank_id(v, o.slot);
	f->info.depth = o.depth;
	f->info.descendants = o.size - 1;
	if (at == 0)
		return 0;
	r = bank_order(b, o.parent, &parent);
	if (r)
		return r;
	f->info.parent = bank_group(v, b, parent.slot);
	return 0;
}

int freshet_info(const struct freshet_view *v, struct freshet_group group, struct freshet_info *ret)
{
	struct info f = { .group = group };
	int r = bank_read(v, info, &f);

	if (r == 0)
		*ret = f.info;
	return r;
}

struct path {
	struct freshet_group group;
	char *buf;
	size_t size;
};

/* Written from the buffer's end, leaf first, and then moved to its begin. */
static int path(const struct freshet_view *v, const struct bank *b, void *arg)
{
	struct path *p = arg;
	size_t left = p->size;
	struct bank_name name;
	struct seg_order o;
	uint32_t at;
	int r;

	r = bank_entry(v, b, p->group, &at, &o);
	if (r)
		return r;
	if (left < 2)
		return -ENAMETOOLONG;
	p->buf[--left] = '\0';
	if (at == 0)
		p->buf[--left] = '/';
	while (at) {
		r = bank_name(v, bank_group(v, b, o.slot), false, &name);
		if (r)
			return r;
		if (left < name.len + 1u)
			return -ENAMETOOLONG;
		left -= name.len;
		memcpy(p->buf + left, name.s, name.len);
		p->buf[--left] = '/';
		at = o.parent;
		r = bank_order(b, at, &o);
		if (r)
			return r;
	}
	memmove(p->buf, p->buf + left, p->size - left);
	return 0;
}

int freshet_path(const struct freshet_view *v, struct freshet_group group, char *buf, size_t size)
{
	struct path p = { .group = group, .buf = buf, .size = size };

	return bank_read(v, path, &p);
}

int freshet_read_total(const struct freshet_view *v, struct freshet_group group, unsigned first,
		       unsigned count, uint64_t *values, uint64_t *present,
		       struct freshet_moment *moment)
{
	if (first >= v->nstats || count > v->nstats - first)
		return -EINVAL;
	/* Not bank_read(): this is the one that is called a million times a second. */
	for (unsigned i = 0; i < FRESHET_MAX_TRIES; i++) {
		const struct seg_row *row;
		uint64_t have;
		struct bank b;
		int r = bank_load(v, &b);

		if (r == 0 && (group.generation == 0 || group.slot >= b.nslots))
			r = -ENOENT;
		if (r == 0) {
			row = bank_row(v, &b, group.slot);
			if (load_relaxed(&row->generation) != group.generation)
				r = -ENOENT;
		}
		if (r) {
			if (bank_whole(v, &b))
				return r;
			continue;
		}
		have = load_relaxed(&row->present) >> first;
		words_load(values, &row->value[first], count);
		if (!bank_whole(v, &b))
			continue;
		*present = bank_present(have, values, count);
		if (moment)
			*moment = (struct freshet_moment){ b.pass, b.begin_ns, b.end_ns };
		return 0;
	}
	return -EAGAIN;
}

static int last_pass(const struct freshet_view *v, const struct bank *b, void *arg)
{
	*(struct freshet_moment *)arg = (struct freshet_moment){ b->pass, b->begin_ns, b->end_ns };
	return 0;
}

int freshet_last_pass(const struct freshet_view *v, struct freshet_moment *ret)
{
	struct freshet_moment m;
	int r = bank_read(v, last_pass, &m);

	if (r == 0)
		*ret = m;
	return r;
}

int freshet_age(const struct freshet_view *v, uint64_t *age_ns)
{
	struct freshet_moment m;
	uint64_t now;
	int r = freshet_last_pass(v, &m);

	if (r)
		return r;
	if (v->live) {
		*age_ns = 0;
		return 0;
	}
	now = clock_ns();
	if (m.begin_ns > now)
		return -EIO;
	*age_ns = now - m.begin_ns;
	return 0;
}
