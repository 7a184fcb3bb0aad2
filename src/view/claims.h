/* SPDX-License-Identifier: MIT */
/*
 * Which names of metrics are taken. Names of a program's metrics are put together from three parts
 * with '_' between them, and its names are its own choice: two can come out the same, and the same as
 * one of ours. Prometheus refuses a whole scrape for that, so the later one is left out. Pure.
 */
#ifndef FRESHET_CLAIMS_H
#define FRESHET_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>

#include <freshet/freshet.h>

#include "view/openmetrics.h"

struct claims {
	char **name;
	size_t count, capacity;
};

void claims_free(struct claims *c);

/* Whether some sample of such a family would be called as one there. */
bool claims_clash(const struct claims *c, const char *family, enum metrics_type type);

/* 0 or -ENOMEM. */
int claims_add(struct claims *c, const char *family, enum metrics_type type);

/* Adds all families of a text in OpenMetrics format. */
int claims_add_text(struct claims *c, const char *text, size_t len);

/* "freshet_" and the segment's name, with '_' for what no name of a metric may have. size at least
 * FRESHET_NAME_MAX + 9. */
void claims_prefix(const char *segment, char *buf, size_t size);

/*
 * Claims the names of all columns and histograms that can have theirs: the others' bits are set in
 * schema->without and ->without_histograms, because their name is no name of a metric, or is taken in
 * c or in one of the `others`. 0 or -ENOMEM.
 */
int claims_schema(struct claims *c, const struct claims *const *others, size_t nothers,
		  struct metrics_schema *schema);

#endif
