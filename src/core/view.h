/* SPDX-License-Identifier: MIT */
/*
 * A mapped segment as the reader sees it. Everything here was checked when it was attached and is
 * private memory, but for what `header`, `groups` and `banks` point at: that is the producer's, may
 * change at any moment, and is read by bank.h alone (and the header's last line by view.c).
 */
#ifndef FRESHET_VIEW_H
#define FRESHET_VIEW_H

#include <sys/types.h>

#include <freshet/freshet.h>

#include "core/cells.h"
#include "core/segment.h"

struct freshet_view {
	/* Shared: the mapping. */
	const struct seg_header *header;
	const char *groups;
	const char *banks;

	/* Checked copies of what describes it. */
	uint64_t group_stride;
	uint64_t bank_stride;
	uint64_t rows_offset; /* of a bank's rows, from the bank's begin */
	uint32_t row_stride;
	uint32_t nbanks;
	uint32_t max_groups;
	uint32_t nstats;
	uint32_t words; /* of a row that the view shows: nstats, and of a tree with cells more */
	struct seg_header fixed; /* all that never changes */

	bool live;          /* it has cells */
	struct cells cells; /* only then */
	struct seg_part *parts;
	uint8_t part_of[FRESHET_MAX_STATS]; /* a stat's part */
	struct freshet_histogram histograms[FRESHET_MAX_HISTOGRAMS];
	uint32_t nhistograms;

	struct freshet_stat stats[FRESHET_MAX_STATS];
	char *strings; /* what stats[] points at */

	int fd;
	char *path; /* absolute; NULL for a view of a descriptor */
	dev_t dev;
	ino_t ino;
};

/* A section of count elements at least `element` bytes apart, or NULL. */
const struct seg_section *view_section(const struct freshet_view *v, uint32_t type, uint32_t count,
				       uint64_t element);

/* The string at an offset, of the `size` bytes at v->strings. 0 or -EIO. */
int view_string(const struct freshet_view *v, uint64_t size, uint32_t offset, const char **ret);

/* The sections of a tree with cells, if it has them: checked, once the rest of v is. 0 or -errno. */
int view_cells(struct freshet_view *v, uint64_t strings_size);

#endif
