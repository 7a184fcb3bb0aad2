/* SPDX-License-Identifier: MIT */
/* Implements json.h. */
#include "view/json.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

/* The inside of a string. */
static void add_escaped(struct buf *out, const char *s)
{
	size_t len = strlen(s);

	for (size_t i = 0, n; i < len; i += n) {
		unsigned char c = (unsigned char)s[i];

		n = utf8_char(s + i, len - i);
		if (!n) {
			buf_str(out, UTF8_REPLACEMENT);
			n = 1;
		} else if (c < 0x20) {
			buf_printf(out, "\\u%04x", c);
		} else {
			if (c == '"' || c == '\\')
				buf_char(out, '\\');
			buf_add(out, s + i, n);
		}
	}
}

void json_string(struct buf *out, const char *s)
{
	buf_char(out, '"');
	add_escaped(out, s);
	buf_char(out, '"');
}

static void add_value(struct buf *out, const struct freshet_stat *stat, uint64_t value)
{
	if (stat->kind == FRESHET_GAUGE && (int64_t)value < 0) {
		buf_char(out, '-');
		value = 0 - value;
	}
	buf_u64(out, stat->unit == FRESHET_NANOSECONDS ? value / 1000 : value);
}

/* ,"cpu":{...} for each family that the group has something of. */
static void add_families(struct buf *out, const struct freshet_stat *stats, size_t nstats,
			 const uint64_t *values, uint64_t present)
{
	uint64_t done = 0;

	for (size_t i = 0; i < nstats; i++) {
		bool first = true;

		if (!(present >> i & 1) || done >> i & 1)
			continue;
		buf_char(out, ',');
		json_string(out, stats[i].family);
		buf_str(out, ":{");
		for (size_t j = i; j < nstats; j++) {
			if (!(present >> j & 1) || strcmp(stats[j].family, stats[i].family) != 0)
				continue;
			done |= 1ull << j;
			if (!first)
				buf_char(out, ',');
			first = false;
			json_string(out, stats[j].key);
			buf_char(out, ':');
			add_value(out, &stats[j], values[j]);
		}
		buf_char(out, '}');
	}
}

/* Nothing for the root. Gives the length of what was not escaped. */
static uint32_t add_path(struct buf *out, const struct freshet_entry *entries, size_t i)
{
	uint32_t len;

	if (i == 0)
		return 0;
	len = add_path(out, entries, entries[i].parent);
	buf_char(out, '/');
	add_escaped(out, entries[i].name);
	return len + 1 + (uint32_t)strlen(entries[i].name);
}

/* The path of an entry, made from its parent's: in pre-order that is still there. */
struct path {
	struct buf text;
	struct {
		size_t end;   /* in the text, of the path of the latest entry on this level */
		uint32_t len; /* of that path before it was escaped */
	} level[FRESHET_PATH_MAX / 2];
};

/* False: it is too long for a path. */
static bool path_step(struct path *p, const struct freshet_entry *e, uint32_t level)
{
	size_t len;

	if (!level || level >= sizeof(p->level) / sizeof(*p->level))
		return false;
	len = p->level[level - 1].len + 1 + strlen(e->name);
	if (len >= FRESHET_PATH_MAX)
		return false;
	p->text.len = p->level[level - 1].end;
	buf_char(&p->text, '/');
	add_escaped(&p->text, e->name);
	p->level[level].end = p->text.len;
	p->level[level].len = (uint32_t)len;
	return true;
}

void json_head(struct buf *out, uint64_t pass, uint64_t age_ns, uint64_t left_out)
{
	buf_str(out, "{\"pass\":");
	buf_u64(out, pass);
	buf_str(out, ",\"age_us\":");
	buf_u64(out, age_ns / 1000);
	if (left_out) {
		buf_str(out, ",\"left_out\":");
		buf_u64(out, left_out);
	}
	buf_char(out, ',');
}

void json_groups(struct buf *out, const struct freshet_stat *stats, size_t nstats,
		 const struct freshet_entry *entries, size_t at, uint32_t depth)
{
	size_t end = at + entries[at].size;
	struct path path = { .text = BUF_INIT };

	buf_str(out, "\"groups\":[");
	path.level[0].len = add_path(&path.text, entries, at);
	path.level[0].end = path.text.len;
	for (size_t i = at; i < end;) {
		const struct freshet_entry *e = &entries[i];
		uint32_t level = e->depth - entries[at].depth;

		if (i != at && !path_step(&path, e, level)) {
			i += e->size;
			continue;
		}
		buf_str(out, i == at ? "\n{\"path\":\"" : ",\n{\"path\":\"");
		if (i == 0)
			buf_char(out, '/');
		buf_add(out, path.text.data, path.text.len);
		buf_str(out, "\",\"id\":");
		buf_u64(out, e->id);
		if (i != at) {
			buf_str(out, ",\"parent\":");
			buf_u64(out, entries[e->parent].id);
		}
		add_families(out, stats, nstats, e->values, e->present);
		buf_char(out, '}');
		i += level >= depth ? e->size : 1;
	}
	buf_str(out, "\n]}\n");
	if (path.text.error)
		out->error = path.text.error;
	buf_free(&path.text);
}

void json_group(struct buf *out, const struct freshet_stat *stats, size_t nstats, const char *path,
		uint64_t id, uint64_t age_ns, const uint64_t *values, uint64_t present)
{
	buf_str(out, "{\"path\":");
	json_string(out, path);
	buf_str(out, ",\"id\":");
	buf_u64(out, id);
	buf_str(out, ",\"age_us\":");
	buf_u64(out, age_ns / 1000);
	add_families(out, stats, nstats, values, present);
	buf_str(out, "}\n");
}
