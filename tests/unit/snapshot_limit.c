/* SPDX-License-Identifier: MIT */
/* What a take may cost, and what it makes of a segment without groups. */
#include <errno.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "tap.h"
#include "unit/segment_image.h"
#include "unit/tree_image.h"

static const struct seg_section *section_of(const struct seg_header *h, uint32_t type)
{
	for (uint32_t i = 0; i < h->nsections; i++)
		if (h->section[i].type == type)
			return &h->section[i];
	abort();
}

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

#define MANY 4096u

/* A tree of one group that says that it has many, each changed on all of 64 slots just now. */
static void *forge(struct freshet_tree *t, size_t *size)
{
	struct seg_control *control;
	struct seg_life *lives;
	struct seg_header *h;
	struct stat st;

	if (fstat(writer_fd(t->writer), &st))
		abort();
	*size = (size_t)st.st_size;
	h = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, writer_fd(t->writer), 0);
	if (h == MAP_FAILED)
		abort();
	control = (void *)((char *)h + section_of(h, SEG_CONTROL)->offset);
	control->used_groups = MANY;
	control->used_fallback = 64;
	lives = (void *)((char *)h + section_of(h, SEG_LIVES)->offset);
	for (unsigned i = 1; i < MANY; i++)
		lives[i] = (struct seg_life){ .generation = 1, .born = UINT64_MAX };
	memset((char *)h + section_of(h, SEG_DIRTY)->offset, 0xff, section_of(h, SEG_DIRTY)->size);
	return h;
}

/* A small tree that makes a lot of work: more than 50 million loads. */
TEST(time_of_cells)
{
	static const struct freshet_stat stat = { "t",           "n", NULL, "N.", FRESHET_COUNTER,
						  FRESHET_COUNT, 0 };
	static const struct freshet_histogram histogram = {
		.family = "t", .name = "time", .precision = 3, .lowest = 10, .highest = 36
	};
	const struct freshet_schema schema = { sizeof(schema), &stat, 1, &histogram, 1 };
	const struct freshet_options options = { .size = sizeof(options),
						 .producer = "forged",
						 .max_groups = MANY,
						 .fallback_slots = 64,
						 .backend = FRESHET_FALLBACK };
	struct freshet_snapshot *snap;
	struct freshet_tree *t;
	size_t size;
	void *map;

	REQUIRE(freshet_open(NULL, &schema, &options, &t) == 0);
	map = forge(t, &size);
	REQUIRE(freshet_snapshot_new(&snap) == 0);
	freshet_snapshot_limit(snap, 64 << 20, 5 * NSEC_PER_MSEC);
	EXPECT_EQ(freshet_snapshot_take(snap, freshet_view_of(t)), -E2BIG);
	freshet_snapshot_free(snap);
	munmap(map, size);
	freshet_close(t);
}

/* What a take gives for a bank that says that it has no groups. */
static int take_empty(uint8_t *image, size_t size)
{
	const struct seg_header *h = (const void *)image;
	struct freshet_snapshot *snap;
	struct freshet_view *v;
	struct freshet_group g;
	const uint32_t none = 0;
	const struct seg_section *banks = section_of(h, SEG_BANKS);
	size_t at = banks->offset + h->generation % h->nbanks * banks->stride;
	int r;

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
