/* SPDX-License-Identifier: MIT */
/* Implements claims.h. */
#include "view/claims.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* What samples of a family can be called, by OpenMetrics. */
static const char *const suffixes[][6] = {
	[METRICS_COUNTER] = { "", "_total", "_created" },
	[METRICS_GAUGE] = { "" },
	[METRICS_HISTOGRAM] = { "", "_bucket", "_count", "_sum", "_created" },
	[METRICS_INFO] = { "", "_info" },
};

void claims_free(struct claims *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->name[i]);
	free(c->name);
	*c = (struct claims){ 0 };
}

bool claims_clash(const struct claims *c, const char *family, enum metrics_type type)
{
	size_t len = strlen(family);

	for (size_t i = 0; i < c->count; i++) {
		if (strncmp(c->name[i], family, len) != 0)
			continue;
		for (unsigned s = 0; suffixes[type][s]; s++)
			if (strcmp(c->name[i] + len, suffixes[type][s]) == 0)
				return true;
	}
	return false;
}

static int add_name(struct claims *c, const char *family, const char *suffix)
{
	if (c->count == c->capacity) {
		size_t capacity = c->capacity ? 2 * c->capacity : 32;
		char **name = reallocarray(c->name, capacity, sizeof(*name));

		if (!name)
			return -ENOMEM;
		c->name = name;
		c->capacity = capacity;
	}
	if (asprintf(&c->name[c->count], "%s%s", family, suffix) < 0)
		return -ENOMEM;
	c->count++;
	return 0;
}

int claims_add(struct claims *c, const char *family, enum metrics_type type)
{
	int r = 0;

	for (unsigned s = 0; suffixes[type][s] && r == 0; s++)
		r = add_name(c, family, suffixes[type][s]);
	return r;
}

int claims_add_text(struct claims *c, const char *text, size_t len)
{
	static const char *const types[] = { [METRICS_COUNTER] = "counter",
					     [METRICS_GAUGE] = "gauge",
					     [METRICS_HISTOGRAM] = "histogram",
					     [METRICS_INFO] = "info" };
	char *copy _free_ = strndup(text, len), *next = copy, *line;
	char name[256], type[32];

	if (!copy)
		return -ENOMEM;
	while ((line = strsep(&next, "\n"))) {
		if (sscanf(line, "# TYPE %255s %31s", name, type) != 2)
			continue;
		for (unsigned t = METRICS_COUNTER; t <= METRICS_INFO; t++)
			if (strcmp(type, types[t]) == 0 && claims_add(c, name, t) < 0)
				return -ENOMEM;
	}
	return 0;
}

void claims_prefix(const char *segment, char *buf, size_t size)
{
	snprintf(buf, size, "freshet_%s", segment);
	for (char *p = buf; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		      (*p >= '0' && *p <= '9')))
			*p = '_';
}

/* No longer either than a group's name: each sample has it. */
static bool good_part(const char *s)
{
	return *s && strnlen(s, FRESHET_NAME_MAX + 1) <= FRESHET_NAME_MAX &&
	       s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] ==
		       '\0';
}

/* 1: the name is claimed; 0: it cannot be had; -ENOMEM. */
static int claim(struct claims *c, const struct claims *const *others, size_t nothers,
		 const char *prefix, const char *family, const char *name, enum freshet_unit unit,
		 enum metrics_type type)
{
	struct buf whole _cleanup_(buf_free) = BUF_INIT;
	int r;

	if (!good_part(family) || !good_part(name))
		return 0;
	metrics_name(&whole, prefix, family, name, unit);
	if (whole.error)
		return whole.error;
	if (claims_clash(c, whole.data, type))
		return 0;
	for (size_t i = 0; i < nothers; i++)
		if (claims_clash(others[i], whole.data, type))
			return 0;
	r = claims_add(c, whole.data, type);
	return r < 0 ? r : 1;
}

int claims_schema(struct claims *c, const struct claims *const *others, size_t nothers,
		  struct metrics_schema *schema)
{
	int r;

	schema->without = schema->without_histograms = 0;
	for (size_t i = 0; i < schema->nstats; i++) {
		const struct freshet_stat *s = &schema->stats[i];

		r = claim(c, others, nothers, schema->prefix, s->family, s->name, s->unit,
			  s->kind == FRESHET_COUNTER ? METRICS_COUNTER : METRICS_GAUGE);
		if (r < 0)
			return r;
		if (r == 0)
			schema->without |= 1ull << i;
	}
	for (size_t i = 0; i < schema->nhistograms; i++) {
		const struct freshet_histogram *h = &schema->histograms[i];

		r = claim(c, others, nothers, schema->prefix, h->family, h->name, h->unit,
			  METRICS_HISTOGRAM);
		if (r < 0)
			return r;
		if (r == 0)
			schema->without_histograms |= 1ull << i;
	}
	return 0;
}
