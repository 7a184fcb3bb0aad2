/* SPDX-License-Identifier: MIT */
/* What the tests of trees share: a schema with everything in it, and running on both backends. */
#ifndef TREE_HELP_H
#define TREE_HELP_H

#include "tap.h"

#include <errno.h>
#include <string.h>

#include <freshet/freshet.h>

/* ON_BOTH(name) { ... backend ... }: two tests, or one where nothing else runs. */
#if FRESHET_HAVE_RSEQ && !defined(FALLBACK_ALONE)
#define ON_RSEQ(name_)                                   \
	TEST(name_##_rseq)                               \
	{                                                \
		if (!tree_has_rseq())                    \
			SKIP("no rseq in this process"); \
		name_##_on(FRESHET_RSEQ);                \
	}
#else
#define ON_RSEQ(name_)
#endif
#define ON_BOTH(name_)                                        \
	static void name_##_on(enum freshet_backend backend); \
	ON_RSEQ(name_)                                        \
	TEST(name_##_fallback)                                \
	{                                                     \
		name_##_on(FRESHET_FALLBACK);                 \
	}                                                     \
	static void name_##_on(enum freshet_backend backend)

enum {
	REQUESTS, /* a counter on its own */
	OPEN,     /* a gauge on its own */
	SET,      /* a set: two counters and a gauge */
	SET_B,
	SET_GAUGE,
	ERRORS, /* another counter on its own */
	NSTATS
};

static const struct freshet_stat tree_stats[NSTATS] = {
	{ "t", "requests", NULL, "Requests.", FRESHET_COUNTER, FRESHET_COUNT, 0 },
	{ "t", "open", NULL, "Open ones.", FRESHET_GAUGE, FRESHET_COUNT, 0 },
	{ "t", "a", NULL, "A.", FRESHET_COUNTER, FRESHET_COUNT, 4 },
	{ "t", "b", NULL, "B.", FRESHET_COUNTER, FRESHET_BYTES, 4 },
	{ "t", "c", NULL, "C.", FRESHET_GAUGE, FRESHET_BYTES, 4 },
	{ "t", "errors", NULL, "Errors.", FRESHET_COUNTER, FRESHET_COUNT, 0 },
};

#define SMALL_BUCKETS 9u
static const struct freshet_histogram tree_histograms[] = {
	{ .family = "t", .name = "small", .precision = 1, .lowest = 0, .highest = 4 },
	{ .family = "t", .name = "large", .precision = 4, .lowest = 3, .highest = 40 },
};

static const struct freshet_schema tree_schema = { sizeof(tree_schema), tree_stats, NSTATS,
						   tree_histograms, 2 };

__attribute__((unused)) static struct freshet_tree *tree_open(const char *path, unsigned max_groups,
							      enum freshet_backend backend)
{
	const struct freshet_options options = {
		.size = sizeof(options),
		.producer = "test",
		.max_groups = max_groups,
		.backend = backend,
	};
	struct freshet_tree *tree;
	int r = freshet_open(path, &tree_schema, &options, &tree);

	if (r) {
		printf("# freshet_open: %s\n", strerror(-r));
		exit(1);
	}
	return tree;
}

__attribute__((unused)) static int tree_has_rseq(void)
{
	const struct freshet_options options = { .size = sizeof(options), .backend = FRESHET_RSEQ };
	struct freshet_tree *tree;

	if (freshet_open(NULL, &tree_schema, &options, &tree))
		return 0;
	freshet_close(tree);
	return 1;
}

/* A group that must be made. */
__attribute__((unused)) static struct freshet_handle
tree_make(struct freshet_tree *tree, struct freshet_handle parent, const char *name, unsigned flags)
{
	struct freshet_handle h;
	int r = freshet_create(tree, &parent, name, flags, &h);

	if (r) {
		printf("# freshet_create(%s): %s\n", name, strerror(-r));
		exit(1);
	}
	return h;
}

/* One number of a group, fresh; or NO_GROUP and the like: INT64_MIN less the error. */
__attribute__((unused)) static int64_t tree_read(const struct freshet_tree *tree,
						 struct freshet_handle h, unsigned stat)
{
	uint64_t value, present;
	int r = freshet_read(freshet_view_of(tree), h.group, stat, 1, &value, &present, NULL);

	return r ? INT64_MIN - (int64_t)r : (int64_t)value;
}

__attribute__((unused)) static int64_t tree_total(const struct freshet_tree *tree,
						  struct freshet_handle h, unsigned stat)
{
	uint64_t value, present;
	int r = freshet_read_total(freshet_view_of(tree), h.group, stat, 1, &value, &present, NULL);

	return r ? INT64_MIN - (int64_t)r : (int64_t)value;
}

#define NO_GROUP (INT64_MIN + ENOENT) /* what these two give for -ENOENT */

#endif
