/* SPDX-License-Identifier: MIT */
/*
 * A small program's segment to damage: "/", "/a", "/a/b", "/c" in slots 0 to 3, slot 4 of a removed
 * group; a counter, a gauge, a set of two with a gauge, a histogram; two CPU slots, both fallback
 * ones. Some is flushed and some is in the cells of /, /a/b and /c alone.
 */
#ifndef TREE_IMAGE_H
#define TREE_IMAGE_H

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <freshet/freshet.h>

#include "engine/tree.h"

#define TREE_GROUPS  8u
#define TREE_STATS   4u
#define TREE_BUCKETS 9u
#define TREE_WORDS   (TREE_STATS + TREE_BUCKETS + 1)

static void tree_image_count(struct freshet_handle h, int64_t by)
{
	const int64_t n[] = { by, -by };

	if (freshet_add(&h, 0, by) || freshet_add(&h, 1, -by) || freshet_add_set(&h, 2, 2, n) ||
	    freshet_add(&h, 3, -1) || freshet_observe(&h, 0, (uint64_t)by))
		abort();
}

static struct freshet_handle tree_image_group(struct freshet_tree *t, struct freshet_handle parent,
					      const char *name)
{
	struct freshet_handle h;

	if (freshet_create(t, &parent, name, 0, &h))
		abort();
	return h;
}

/* malloc'ed. */
static uint8_t *tree_image(size_t *size)
{
	static const struct freshet_stat stats[TREE_STATS] = {
		{ "t", "count", NULL, "Counts.", FRESHET_COUNTER, FRESHET_COUNT, 0 },
		{ "t", "gauge", NULL, "Gauges.", FRESHET_GAUGE, FRESHET_BYTES, 0 },
		{ "t", "a", NULL, "One of two.", FRESHET_COUNTER, FRESHET_COUNT, 1 },
		{ "t", "b", NULL, "The other.", FRESHET_GAUGE, FRESHET_COUNT, 1 },
	};
	static const struct freshet_histogram histogram = { .family = "t",
							    .name = "time",
							    .unit = FRESHET_NANOSECONDS,
							    .precision = 1,
							    .highest = 4 };
	const struct freshet_schema schema = { sizeof(schema), stats, TREE_STATS, &histogram, 1 };
	const struct freshet_options options = { .size = sizeof(options),
						 .producer = "image",
						 .max_groups = TREE_GROUPS,
						 .fallback_slots = 2,
						 .backend = FRESHET_FALLBACK };
	struct freshet_handle root, a, b, c, gone;
	struct freshet_tree *t;
	struct stat st;
	uint8_t *image;
	int fd;

	if (freshet_open(NULL, &schema, &options, &t))
		abort();
	root = freshet_tree_root(t);
	a = tree_image_group(t, root, "a");
	b = tree_image_group(t, a, "b");
	c = tree_image_group(t, root, "c");
	gone = tree_image_group(t, root, "gone");
	tree_image_count(gone, 1);
	tree_image_count(a, 2);
	tree_image_count(b, 3);
	if (freshet_flush(t) || freshet_remove(t, &gone, 0))
		abort();
	tree_image_count(root, 4);
	tree_image_count(b, 5);
	tree_image_count(c, 6);
	fd = writer_fd(t->writer);
	if (fstat(fd, &st) || !(image = malloc((size_t)st.st_size)) ||
	    pread(fd, image, (size_t)st.st_size, 0) != st.st_size)
		abort();
	*size = (size_t)st.st_size;
	freshet_close(t);
	return image;
}

#endif
