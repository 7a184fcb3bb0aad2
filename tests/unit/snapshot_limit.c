/* SPDX-License-Identifier: MIT */
/* What a take may cost, and what it makes of a segment without groups. */
#include <errno.h>

#include "base/clock.h"
#include "tap.h"
#include "unit/segment_image.h"
#include "unit/tree_image.h"

static struct freshet_view *view_of(const uint8_t *image, size_t size)
{
	int fd = image_fd(image, size);
	struct freshet_view *v;

	if (freshet_attach_fd(fd, &v))
		abort();
	close(fd);
	return v;
}

TEST(memory)
{
	size_t size, need, count;
	uint8_t *image = tree_image(&size);
	struct freshet_view *v = view_of(image, size);
	struct freshet_snapshot *snap;

	REQUIRE(freshet_snapshot_new(&snap) == 0);
	EXPECT_EQ(freshet_snapshot_memory(snap), 0);
	freshet_snapshot_limit(snap, 1, 0);
	EXPECT_EQ(freshet_snapshot_take(snap, v), -E2BIG);
	EXPECT_EQ(freshet_snapshot_count(snap), 0);
	EXPECT_EQ(freshet_snapshot_memory(snap), 0);
	freshet_snapshot_limit(snap, 0, 0);
	EXPECT_EQ(freshet_snapshot_take(snap, v), 0);
	count = freshet_snapshot_count(snap);
	EXPECT_EQ(count, 4);
	need = freshet_snapshot_memory(snap);
	EXPECT(need >= count * (sizeof(struct freshet_entry) + 8 * (1 + TREE_WORDS)));
	/* The next take needs a second block of rows. */
	freshet_snapshot_limit(snap, need, 0);
	EXPECT_EQ(freshet_snapshot_take(snap, v), -E2BIG);
	EXPECT_EQ(freshet_snapshot_count(snap), 4);
	EXPECT_EQ(freshet_snapshot_entries(snap)[0].values[0], 21);
	freshet_snapshot_limit(snap, 2 * need, 0);
	EXPECT_EQ(freshet_snapshot_take(snap, v), 0);
	freshet_snapshot_free(snap);

	/* Whatever is allowed is kept to, names included. */
	for (size_t max = 1; max < need; max += 7) {
		REQUIRE(freshet_snapshot_new(&snap) == 0);
		freshet_snapshot_limit(snap, max, 0);
		EXPECT_EQ(freshet_snapshot_take(snap, v), -E2BIG);
		EXPECT(freshet_snapshot_memory(snap) <= max);
		freshet_snapshot_free(snap);
	}
	freshet_detach(v);
	free(image);
}

TEST(time)
{
	size_t size;
	uint8_t *image = tree_image(&size);
	struct freshet_view *v = view_of(image, size);
	struct freshet_snapshot *snap;

	REQUIRE(freshet_snapshot_new(&snap) == 0);
	freshet_snapshot_limit(snap, 0, 3600 * NSEC_PER_SEC);
	EXPECT_EQ(freshet_snapshot_take(snap, v), 0);
	freshet_snapshot_limit(snap, 0, 1);
	EXPECT_EQ(freshet_snapshot_take(snap, v), -E2BIG);
	EXPECT_EQ(freshet_snapshot_count(snap), 4);
	freshet_snapshot_free(snap);
	freshet_detach(v);
	free(image);
}

/* What a take gives for a bank that says that it has no groups. */
static int take_empty(uint8_t *image, size_t size)
{
	const struct seg_header *h = (const void *)image;
	struct freshet_snapshot *snap;
	struct freshet_view *v;
	struct freshet_group g;
	const uint32_t none = 0;
	size_t at = 0;
	int r;

	for (uint32_t i = 0; i < h->nsections; i++)
		if (h->section[i].type == SEG_BANKS)
			at = h->section[i].offset +
			     h->generation % h->nbanks * h->section[i].stride;
	memcpy(image + at + offsetof(struct seg_bank, ngroups), &none, 4);
	v = view_of(image, size);
	if (freshet_snapshot_new(&snap))
		abort();
	r = freshet_snapshot_take(snap, v);
	EXPECT_EQ(freshet_snapshot_count(snap), 0);
	EXPECT_EQ(freshet_root(v, &g), r ? r : -ENOENT);
	freshet_snapshot_free(snap);
	freshet_detach(v);
	return r;
}

TEST(no_groups)
{
	size_t size;
	uint8_t *image = image_make(&size);

	EXPECT_EQ(take_empty(image, size), 0);
	free(image);
	image = tree_image(&size);
	EXPECT_EQ(take_empty(image, size), -EIO);
	free(image);
}

TAP_MAIN
