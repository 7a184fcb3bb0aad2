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
	struct seg_header fixed; /* all that never changes */

	struct freshet_stat stats[FRESHET_MAX_STATS];
	char *strings; /* what stats[] points at */

	int fd;
	char *path; /* absolute; NULL for a view of a descriptor */
	dev_t dev;
	ino_t ino;
};

#endif
