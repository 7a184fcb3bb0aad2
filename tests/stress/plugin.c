/* SPDX-License-Identifier: MIT */
/* A module with updates compiled into it, which plugins.c loads and unloads. */
#include <freshet/freshet.h>

#include <stddef.h>

#include "stress/plugin.h"

static struct freshet_tree *tree;
static struct freshet_handle root;

static int start(enum freshet_backend backend)
{
	static const struct freshet_stat stats[] = {
		{ "test", "ops", NULL, "", FRESHET_COUNTER, FRESHET_COUNT, 0 },
		{ "test", "a", NULL, "", FRESHET_COUNTER, FRESHET_COUNT, 1 },
		{ "test", "b", NULL, "", FRESHET_COUNTER, FRESHET_COUNT, 1 },
	};
	const struct freshet_schema schema = { .size = sizeof(schema),
					       .stats = stats,
					       .nstats = 3 };
	const struct freshet_options options = { .size = sizeof(options), .backend = backend };
	int r = freshet_open(NULL, &schema, &options, &tree);

	if (r == 0)
		root = freshet_tree_root(tree);
	return r;
}

static int update(unsigned n)
{
	const int64_t one[2] = { 1, 1 };
	int r = 0;

	for (unsigned i = 0; r == 0 && i < n; i++) {
		r = freshet_add(&root, 0, 1);
		if (r == 0)
			r = freshet_add_set(&root, 1, 2, one);
	}
	return r;
}

static uint64_t stop(void)
{
	uint64_t values[3] = { 0 }, present;
	int r = freshet_read(freshet_view_of(tree), root.group, 0, 3, values, &present, NULL);

	freshet_close(tree);
	return r == 0 && values[0] == values[1] && values[0] == values[2] ? values[0] : 0;
}

__attribute__((visibility("default"))) const struct plugin plugin = { start, update, stop };
