/* SPDX-License-Identifier: MIT */
/* Implements json.h. */
#include "view/json.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"
#include "view/format.h"
#include "view/histogram.h"

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

/* A bound; null for none. */
static void add_bound(struct buf *out, uint64_t upper, unsigned divisor)
{
	if (upper == UINT64_MAX)
		buf_str(out, "null");
	else
		format_exact(out, upper, divisor);
}

static void add_histogram(struct buf *out, const struct freshet_histogram *h, const uint64_t *words)
{
	unsigned divisor = format_divisor(h->key, h->unit);
	struct histogram_summary s;
	bool first = true;

	histogram_summary(h, words, &s);
	buf_str(out, "{\"count\":");
	buf_u64(out, s.count);
	buf_str(out, ",\"sum\":");
	format_exact(out, s.sum, divisor);
	buf_str(out, ",\"p50\":");
	add_bound(out, s.p50, divisor);
	buf_str(out, ",\"p90\":");
	add_bound(out, s.p90, divisor);
	buf_str(out, ",\"p99\":");
	add_bound(out, s.p99, divisor);
	buf_str(out, ",\"max\":");
	add_bound(out, s.max, divisor);
	buf_str(out, ",\"buckets\":[");
	for (unsigned i = 0; i < h->buckets; i++) {
		if (!words[i])
			continue;
		buf_str(out, first ? "[" : ",[");
		first = false;
		add_bound(out, freshet_bucket_upper(h, i), divisor);
		buf_char(out, ',');
		buf_u64(out, words[i]);
		buf_char(out, ']');
	}
	buf_str(out, "]}");
}

/* ,"cpu":{...} for each family that the group has something of. Columns come first, so numbers
 * nstats and up are histograms. */
static void add_families(struct buf *out, const struct json_schema *schema, const uint64_t *values,
			 uint64_t present)
{
	size_t nstats = schema->nstats, all = nstats + schema->nhistograms;
	bool done[FRESHET_MAX_STATS + FRESHET_MAX_HISTOGRAMS] = { false };

	for (size_t i = 0; i < nstats; i++)
		done[i] = !(present >> i & 1);
	for (size_t i = 0; i < all; i++) {
		const char *family = i < nstats ? schema->stats[i].family
						: schema->histograms[i - nstats].family;
		bool first = true;

		if (done[i])
			continue;
		buf_char(out, ',');
		json_string(out, family);
		buf_str(out, ":{");
		for (size_t j = i; j < all; j++) {
			const struct freshet_stat *stat = j < nstats ? &schema->stats[j] : NULL;
			const struct freshet_histogram *h =
				stat ? NULL : &schema->histograms[j - nstats];

			if (done[j] || strcmp(stat ? stat->family : h->family, family) != 0)
				continue;
			done[j] = true;
			if (!first)
				buf_char(out, ',');
			first = false;
			json_string(out, stat ? stat->key : h->key);
			buf_char(out, ':');
			if (stat)
				format_stat(out, stat, values[j]);
			else
				add_histogram(out, h, values + h->word);
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

void json_head(struct buf *out, const char *segment, uint64_t pass, uint64_t age_ns,
	       uint64_t left_out)
{
	buf_char(out, '{');
	if (segment) {
		buf_str(out, "\"segment\":");
		json_string(out, segment);
		buf_char(out, ',');
	}
	buf_str(out, "\"pass\":");
	buf_u64(out, pass);
	buf_str(out, ",\"age_us\":");
	buf_u64(out, age_ns / 1000);
	if (left_out) {
		buf_str(out, ",\"left_out\":");
		buf_u64(out, left_out);
	}
	buf_char(out, ',');
}

void json_groups(struct buf *out, const struct json_schema *schema,
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
		add_families(out, schema, e->values, e->present);
		buf_char(out, '}');
		i += level >= depth ? e->size : 1;
	}
	buf_str(out, "\n]}\n");
	if (path.text.error)
		out->error = path.text.error;
	buf_free(&path.text);
}

void json_group(struct buf *out, const struct json_schema *schema, const char *path, uint64_t id,
		uint64_t age_ns, const uint64_t *values, uint64_t present)
{
	buf_str(out, "{\"path\":");
	json_string(out, path);
	buf_str(out, ",\"id\":");
	buf_u64(out, id);
	buf_str(out, ",\"age_us\":");
	buf_u64(out, age_ns / 1000);
	add_families(out, schema, values, present);
	buf_str(out, "}\n");
}
