/* SPDX-License-Identifier: MIT */
/* What collector_open() and the tests share: a collector over a source that is open already. */
#ifndef FRESHET_COLLECTOR_INTERNAL_H
#define FRESHET_COLLECTOR_INTERNAL_H

#include "source/collector.h"
#include "source/source.h"

/* Opens the segment. The source is the collector's from now on, and freed on failure too.
 * root: the directory it was opened at, for collector_root(). -errno of writer_open(). */
int collector_open_source(struct source *source, const char *root,
			  const struct collector_options *options, struct collector **ret);

#endif
