/* SPDX-License-Identifier: MIT */
/* Where everything in a segment's file is, and the description of its columns (layout.h). Pure. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/cells.h"
#include "core/layout.h"

/* Four strings, one after the other from `used` on; to NULL only measures. The new `used`. */
static uint64_t put_strings(const char *const string[4], uint32_t at[4], char *to, uint64_t used)
{
	for (unsigned j = 0; j < 4; j++) {
		size_t len = strlen(string[j]) + 1;

		at[j] = (uint32_t)used;
		if (to)
			memcpy(to + used, string[j], len);
		used += len;
	}
	return used;
}

/* Describes columns and histograms; with the three pointers NULL only measures. Bytes of strings. */
static uint64_t put_schema(const struct writer_options *o, struct seg_stat *stats,
			   struct seg_histogram *histograms, char *strings)
{
	uint64_t used = 0;
	uint32_t at[4];

	for (unsigned i = 0; i < o->nstats; i++) {
		const struct freshet_stat *s = &o->stats[i];
		const char *const string[] = { s->family, s->name, s->key, s->help };

		used = put_strings(string, at, strings, used);
		if (stats)
			stats[i] = (struct seg_stat){
				.family = at[0],
				.name = at[1],
				.key = at[2],
				.help = at[3],
				.kind = s->kind,
				.unit = s->unit,
				.set = s->set,
				.index = i,
			};
	}
	for (unsigned i = 0; i < o->nhistograms; i++) {
		const struct freshet_histogram *h = &o->histograms[i];
		const char *const string[] = { h->family, h->name, h->key, h->help };

		used = put_strings(string, at, strings, used);
		if (histograms)
			histograms[i] = (struct seg_histogram){
				.family = at[0],
				.name = at[1],
				.key = at[2],
				.help = at[3],
				.unit = h->unit,
				.precision = h->precision,
				.lowest = h->lowest,
				.highest = h->highest,
				.word = h->word,
			};
	}
	return used;
}

uint32_t layout_row_words(const struct writer_options *o)
{
	return o->row_words ? o->row_words : o->nstats;
}

int layout_header(const struct writer_options *o, struct seg_header *h)
{
	uint64_t nstats = o->nstats, groups = o->max_groups;
	uint64_t row = sizeof(struct seg_row) + 8ull * layout_row_words(o);
	uint64_t bank = seg_round(seg_rows_offset(o->max_groups) + groups * row, SEG_PAGE);
	uint32_t nbanks = o->nbanks ? o->nbanks : 4;
	struct seg_section section[SEG_MAX_SECTIONS] = {
		{ .type = SEG_STATS,
		  .count = o->nstats,
		  .stride = sizeof(struct seg_stat),
		  .size = nstats * sizeof(struct seg_stat) },
		{ .type = SEG_STRINGS, .count = 1, .size = put_schema(o, NULL, NULL, NULL) },
		{ .type = SEG_GROUPS,
		  .count = o->max_groups,
		  .stride = sizeof(struct seg_group),
		  .size = groups * sizeof(struct seg_group) },
		{ .type = SEG_BANKS, .count = nbanks, .stride = bank, .size = nbanks * bank },
	};
	uint64_t offset = SEG_PAGE;
	uint32_t nsections = 4;

	if (o->nhistograms)
		section[nsections++] = (struct seg_section){
			.type = SEG_HISTOGRAMS,
			.count = o->nhistograms,
			.stride = sizeof(struct seg_histogram),
			.size = o->nhistograms * sizeof(struct seg_histogram),
		};
	for (unsigned i = 0; i < o->nsections; i++)
		section[nsections++] = o->sections[i];
	*h = (struct seg_header){
		.version = SEG_VERSION,
		.byteorder = SEG_BYTEORDER,
		.nsections = nsections,
		.nstats = o->nstats,
		.max_groups = o->max_groups,
		.nbanks = nbanks,
		.row_stride = (uint32_t)row,
		.pid = getpid(),
		.start_ns = clock_ns(),
		.interval_ns = o->interval_ns,
		.state = SEG_RUNNING,
	};
	memcpy(h->magic, SEG_MAGIC, sizeof(h->magic));
	strcpy(h->producer, o->producer); /* lengths: layout_good() */
	strcpy(h->socket, o->socket ? o->socket : "");
	for (unsigned i = 0; i < h->nsections; i++) {
		section[i].offset = offset;
		h->section[i] = section[i];
		offset = seg_round(offset + section[i].size, SEG_PAGE);
	}
	h->size = offset;
	if (getrandom(h->identity, sizeof(h->identity), 0) != sizeof(h->identity))
		return -EIO;
	return 0;
}

bool layout_good(const struct writer_options *o)
{
	const struct seg_header *h = NULL;
	const char *socket = o->socket ? o->socket : "";

	return o->size == sizeof(*o) && o->producer && strlen(o->producer) < sizeof(h->producer) &&
	       strlen(socket) < sizeof(h->socket) && !strchr(socket, '/') && o->stats &&
	       o->nstats > 0 && o->nstats <= FRESHET_MAX_STATS && o->max_groups > 0 &&
	       (o->row_words == 0 || o->row_words >= o->nstats) &&
	       o->nsections <= SEG_MAX_SECTIONS - 5 &&
	       o->max_groups <= SEG_MAX_GROUPS &&
	       (o->nbanks == 0 || (o->nbanks >= SEG_MIN_BANKS && o->nbanks <= SEG_MAX_BANKS &&
				   (o->nbanks & (o->nbanks - 1)) == 0));
}

void layout_schema(const struct writer_options *o, const struct seg_header *h, char *map)
{
	const struct seg_section *s = h->section;

	put_schema(o, (void *)(map + s[0].offset),
		   o->nhistograms ? (void *)(map + s[4].offset) : NULL, map + s[1].offset);
}
