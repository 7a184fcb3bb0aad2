/* SPDX-License-Identifier: MIT */
/*
 * As segment_damage.c, for the sections that only a program's tree has: what describes its cells is
 * refused when it cannot be (-EIO), and what changes (lives, dirty bits, cells, banks) may be
 * anything: reads give an error or some number, and end.
 */
#include "tap.h"

#include "unit/segment_image.h"
#include "unit/segment_walk.h"
#include "unit/tree_image.h"

#define HEADER    ((const struct seg_header *)image)
#define AT(field) offsetof(struct seg_header, field)
#define LIVES(i, f)                                                          \
	(section(image, SEG_LIVES)->offset + (i) * sizeof(struct seg_life) + \
	 offsetof(struct seg_life, f))
#define CONTROL(f) (section(image, SEG_CONTROL)->offset + offsetof(struct seg_control, f))
#define PART(i, f)                                                           \
	(section(image, SEG_PARTS)->offset + (i) * sizeof(struct seg_part) + \
	 offsetof(struct seg_part, f))
#define HISTOGRAM(f) (section(image, SEG_HISTOGRAMS)->offset + offsetof(struct seg_histogram, f))
#define SECTION(t, f) \
	((size_t)((const uint8_t *)section(image, t) - image) + offsetof(struct seg_section, f))
/* The parts: count; gauge; set; histogram. */
enum { WORDS, PAIR, SET, BUCKETS };

static const struct seg_section *section(const uint8_t *image, uint32_t type)
{
	for (uint32_t i = 0; i < HEADER->nsections; i++)
		if (HEADER->section[i].type == type)
			return &HEADER->section[i];
	abort();
}

static size_t bank_at(const uint8_t *image)
{
	const struct seg_section *s = section(image, SEG_BANKS);

	return s->offset + HEADER->generation % HEADER->nbanks * s->stride;
}

static size_t row_at(const uint8_t *image, uint32_t slot)
{
	return bank_at(image) + seg_rows_offset(TREE_GROUPS) + (size_t)slot * HEADER->row_stride;
}

static int64_t read_one(const struct freshet_view *v, const char *path, unsigned stat)
{
	uint64_t value, present;
	struct freshet_group g;
	int r = freshet_find(v, path, &g);

	if (r == 0)
		r = freshet_read(v, g, stat, 1, &value, &present, NULL);
	return r ? INT64_MIN : (int64_t)value;
}

TEST(undamaged)
{
	size_t size;
	uint8_t *image = tree_image(&size);
	int fd = image_fd(image, size);
	uint64_t buckets[TREE_BUCKETS], sum;
	struct freshet_group g;
	struct freshet_view *v;

	EXPECT_EQ(walk_segment(fd), 0);
	REQUIRE(freshet_attach_fd(fd, &v) == 0);
	EXPECT_EQ(freshet_is_live(v), 1);
	EXPECT_EQ(read_one(v, "/", 0), 21);
	EXPECT_EQ(read_one(v, "/a", 0), 10);
	EXPECT_EQ(read_one(v, "/a/b", 0), 8);
	EXPECT_EQ(read_one(v, "/", 1), -21);
	EXPECT_EQ(read_one(v, "/", 2), 21);
	EXPECT_EQ(read_one(v, "/", 3), -21 - 6);
	EXPECT_EQ(freshet_root(v, &g), 0);
	EXPECT_EQ(freshet_read_histogram(v, g, 0, buckets, &sum), 0);
	EXPECT_EQ(sum, 21);
	EXPECT_EQ(buckets[4], 2);
	freshet_detach(v);
	close(fd);
	free(image);
}

struct lie {
	const char *what;
	size_t at;
	unsigned width;
	uint64_t value;
	int error;
};

static void tell(const uint8_t *image, size_t size, const struct lie *lie)
{
	int fd = image_fd(image, size), r;

	if (pwrite(fd, &lie->value, lie->width, (off_t)lie->at) != (ssize_t)lie->width)
		abort();
	r = walk_segment(fd);
	EXPECT(r == lie->error, "%s: attach gives %d", lie->what, r);
	close(fd);
}

TEST(hostile_description)
{
	size_t size;
	uint8_t *image = tree_image(&size);
	const uint32_t cell = ((const struct seg_control *)(image + CONTROL(slots)))->cell_size;
	const uint32_t strings = (uint32_t)section(image, SEG_STRINGS)->size;
	const struct lie lies[] = {
		{ "no CPU slot", CONTROL(slots), 4, 0, -EIO },
		{ "more slots than kinds", CONTROL(slots), 4, 3, -EIO },
		{ "more fallback slots", CONTROL(fallback_slots), 4, 3, -EIO },
		{ "more rseq slots", CONTROL(rseq_slots), 4, 1, -EIO },
		{ "slots of another kind", CONTROL(rseq_slots), 8, 2, 0 },
		{ "all slots", CONTROL(slots), 4, UINT32_MAX, -EIO },
		{ "all rseq slots", CONTROL(rseq_slots), 4, UINT32_MAX, -EIO },
		{ "fewer words than stats", CONTROL(words), 4, TREE_STATS - 1, -EIO },
		{ "words without a part", CONTROL(words), 4, TREE_WORDS + 1, -EIO },
		{ "fewer words than parts", CONTROL(words), 4, TREE_WORDS - 1, -EIO },
		{ "too many words", CONTROL(words), 4, FRESHET_MAX_WORDS + 1, -EIO },
		{ "all words", CONTROL(words), 4, UINT32_MAX, -EIO },
		{ "no cell", CONTROL(cell_size), 4, 0, -EIO },
		{ "uneven cell", CONTROL(cell_size), 4, cell + 4, -EIO },
		{ "small cell", CONTROL(cell_size), 4, 8, -EIO },
		{ "cell too large", CONTROL(cell_size), 4, cell * 16, -EIO },
		{ "largest cell", CONTROL(cell_size), 4, UINT32_MAX & ~7u, -EIO },
		{ "no bits", CONTROL(dirty_row), 4, 0, -EIO },
		{ "uneven bits", CONTROL(dirty_row), 4, 132, -EIO },
		{ "bits of another size", CONTROL(dirty_row), 4, 64, -EIO },
		{ "too many bits", CONTROL(dirty_row), 4, UINT32_MAX & ~7u, -EIO },
		{ "no part", CONTROL(nparts), 4, 0, -EIO },
		{ "fewer parts", CONTROL(nparts), 4, 3, -EIO },
		{ "more parts", CONTROL(nparts), 4, 5, -EIO },
		{ "all parts", CONTROL(nparts), 4, UINT32_MAX, -EIO },
		{ "more histograms", CONTROL(nhistograms), 4, 2, -EIO },
		{ "all histograms", CONTROL(nhistograms), 4, UINT32_MAX, -EIO },
		{ "two banks", SECTION(SEG_BANKS, count), 4, 2, -EIO },
		{ "banks without bitmaps", AT(nbanks), 4, 8, -EIO },
		{ "rows without own numbers", AT(row_stride), 4, 16 + 8 * TREE_WORDS, -EIO },
		{ "no cells at all", SECTION(SEG_CONTROL, type), 4, 99, 0 },
		{ "no parts", SECTION(SEG_PARTS, type), 4, 99, -EIO },
		{ "no histograms", SECTION(SEG_HISTOGRAMS, type), 4, 99, -EIO },
		{ "no lives", SECTION(SEG_LIVES, type), 4, 99, -EIO },
		{ "no bitmaps", SECTION(SEG_DIRTY, type), 4, 99, -EIO },
		{ "no cells", SECTION(SEG_CELLS, type), 4, 99, -EIO },
		{ "two controls", SECTION(SEG_CONTROL, count), 4, 2, -EIO },
		{ "fewer lives", SECTION(SEG_LIVES, count), 4, TREE_GROUPS - 1, -EIO },
		{ "life too short", SECTION(SEG_LIVES, stride), 8, 56, -EIO },
		{ "life too long", SECTION(SEG_LIVES, stride), 8, 72, -EIO },
		{ "fewer bitmaps", SECTION(SEG_DIRTY, count), 4, 11, -EIO },
		{ "bitmaps closer", SECTION(SEG_DIRTY, stride), 8, 64, -EIO },
		{ "cells of one slot", SECTION(SEG_CELLS, count), 4, 1, -EIO },
		{ "cells closer", SECTION(SEG_CELLS, stride), 8, TREE_GROUPS * cell - 8, -EIO },
		{ "cells further", SECTION(SEG_CELLS, stride), 8, 1 << 20, -EIO },
		{ "cells cut", SECTION(SEG_CELLS, size), 8, TREE_GROUPS * cell, -EIO },
		{ "cells of all", SECTION(SEG_CELLS, size), 8, UINT64_MAX, -EIO },
		{ "no type", PART(PAIR, type), 4, 0, -EIO },
		{ "unknown type", PART(PAIR, type), 4, 4, -EIO },
		{ "not the next words", PART(PAIR, first), 4, 2, -EIO },
		{ "empty part", PART(WORDS, count), 4, 0, -EIO },
		{ "part beyond the words", PART(BUCKETS, count), 4, TREE_BUCKETS + 2, -EIO },
		{ "part of all", PART(BUCKETS, count), 4, UINT32_MAX, -EIO },
		{ "words where the stamp is", PART(WORDS, at), 4, 0, -EIO },
		{ "uneven words", PART(WORDS, at), 4, 12, -EIO },
		{ "words behind the cell", PART(WORDS, at), 4, cell, -EIO },
		{ "words far behind", PART(WORDS, at), 4, UINT32_MAX & ~7u, -EIO },
		{ "buckets over the end", PART(BUCKETS, at), 4, cell - 8 * TREE_BUCKETS, -EIO },
		{ "decreases behind the cell", PART(PAIR, down), 4, cell, -EIO },
		{ "uneven decreases", PART(PAIR, down), 4, 9, -EIO },
		{ "banks over the end", PART(SET, down), 4, cell - 8 * 2 * FRESHET_BANKS, -EIO },
		{ "banks at the stamp", PART(SET, down), 4, 0, -EIO },
		{ "set's decreases over the end", PART(SET, less), 4, cell - 8, -EIO },
		{ "set without decreases", PART(SET, less), 4, 0, 0 },
		{ "histogram's name", HISTOGRAM(name), 4, strings, -EIO },
		{ "histogram's help", HISTOGRAM(help), 4, UINT32_MAX, -EIO },
		{ "histogram's unit", HISTOGRAM(unit), 4, 3, -EPROTO },
		{ "precision", HISTOGRAM(precision), 4, 7, -EIO },
		{ "all precision", HISTOGRAM(precision), 4, UINT32_MAX, -EIO },
		{ "lowest above highest", HISTOGRAM(lowest), 4, 5, -EIO },
		{ "all lowest", HISTOGRAM(lowest), 4, UINT32_MAX, -EIO },
		{ "more buckets than words", HISTOGRAM(highest), 4, 63, -EIO },
		{ "all highest", HISTOGRAM(highest), 4, UINT32_MAX, -EIO },
		{ "buckets among the stats", HISTOGRAM(word), 4, TREE_STATS - 1, -EIO },
		{ "buckets beyond the words", HISTOGRAM(word), 4, TREE_STATS + 1, -EIO },
		{ "buckets far beyond", HISTOGRAM(word), 4, UINT32_MAX, -EIO },
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		tell(image, size, &lies[i]);
	free(image);
}

/* What updates and flushes write: anything is possible, and nothing is a reason not to end. */
TEST(hostile_contents)
{
	size_t size;
	uint8_t *image = tree_image(&size);
	const size_t epoch = bank_at(image) + offsetof(struct seg_bank, epoch);
	const size_t cells = section(image, SEG_CELLS)->offset;
	const uint64_t now = *(const uint64_t *)(const void *)(image + epoch);
	const size_t set = cells + ((const struct seg_part *)(image + PART(SET, type)))->down;
	const struct lie lies[] = {
		{ "epoch 0", epoch, 8, 0, 0 },
		{ "last epoch", epoch, 8, UINT64_MAX, 0 },
		{ "last but one", epoch, 8, UINT64_MAX - 1, 0 },
		{ "next epoch", epoch, 8, now + 1, 0 },
		{ "all groups used", CONTROL(used_groups), 4, UINT32_MAX, 0 },
		{ "more groups used", CONTROL(used_groups), 4, TREE_GROUPS + 1, 0 },
		{ "no group used", CONTROL(used_groups), 4, 0, 0 },
		{ "rseq slots used", CONTROL(used_rseq), 4, UINT32_MAX, 0 },
		{ "all fallback slots used", CONTROL(used_fallback), 4, UINT32_MAX, 0 },
		{ "too deep", LIVES(2, depth), 2, FRESHET_MAX_DEPTH + 1, 0 },
		{ "deepest", LIVES(2, depth), 2, UINT16_MAX, 0 },
		{ "deeper than it is", LIVES(2, depth), 2, FRESHET_MAX_DEPTH, 0 },
		{ "above the root", LIVES(2, depth), 2, 0, 0 },
		{ "below nothing", LIVES(2, ancestor[0]), 4, UINT32_MAX, 0 },
		{ "below a slot without memory", LIVES(2, ancestor[1]), 4, TREE_GROUPS, 0 },
		{ "below a free slot", LIVES(2, ancestor[1]), 4, 4, 0 },
		{ "below itself", LIVES(2, ancestor[1]), 4, 2, 0 },
		{ "never had children", LIVES(0, parent), 2, 0, 0 },
		{ "not born yet", LIVES(2, born), 8, UINT64_MAX, 0 },
		{ "of another generation", LIVES(2, generation), 4, 77, 0 },
		{ "not alive", LIVES(2, generation), 4, 0, 0 },
		{ "bits of groups that are not", section(image, SEG_DIRTY)->offset, 8, UINT64_MAX,
		  0 },
		{ "version 0", set, 8, 0, 0 },
		{ "last version", set, 8, UINT64_MAX, 0 },
		{ "last but one version", set, 8, UINT64_MAX - 1, 0 },
		{ "all at once", set, 8, 1ull << 63, 0 },
	};

	REQUIRE(now >= FIRST_EPOCH);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		tell(image, size, &lies[i]);
	free(image);
}

/* A set whose version says that every bank is about to be rewritten: given up after a while. */
TEST(set_that_never_rests)
{
	size_t size;
	uint8_t *image = tree_image(&size);
	struct freshet_group root = { 0, 1 };
	uint64_t values[2], present;
	struct freshet_view *v;
	size_t set;
	int fd;

	set = section(image, SEG_CELLS)->offset +
	      ((const struct seg_part *)(image + PART(SET, type)))->down;
	*(uint64_t *)(void *)(image + set) = UINT64_MAX - 1;
	fd = image_fd(image, size);
	REQUIRE(freshet_attach_fd(fd, &v) == 0);
	EXPECT_EQ(freshet_read(v, root, 2, 1, values, &present, NULL), -EAGAIN);
	EXPECT_EQ(freshet_read(v, root, 0, 2, values, &present, NULL), 0);
	freshet_detach(v);
	close(fd);
	free(image);
}

static int acceptable(int r)
{
	return r == 0 || r == -EPROTO || r == -EIO || r == -EAGAIN;
}

static void flip(int fd, const uint8_t *image, size_t at, unsigned bit)
{
	uint8_t byte = image[at] ^ (uint8_t)(1u << bit);
	int r;

	if (pwrite(fd, &byte, 1, (off_t)at) != 1)
		abort();
	r = walk_segment(fd);
	EXPECT(acceptable(r), "byte %zu bit %u: %d", at, bit, r);
	if (pwrite(fd, &image[at], 1, (off_t)at) != 1)
		abort();
}

/* The fixed half of control, parts, histograms; and the used part of lives and the bank. */
TEST(each_bit_of_what_is_small)
{
	size_t size;
	uint8_t *image = tree_image(&size);
	int fd = image_fd(image, size);
	const struct {
		size_t from, bytes;
	} area[] = {
		{ CONTROL(slots), sizeof(struct seg_control) },
		{ PART(0, type), 4 * sizeof(struct seg_part) },
		{ HISTOGRAM(family), sizeof(struct seg_histogram) },
		{ LIVES(0, generation), 5 * sizeof(struct seg_life) },
		{ bank_at(image), sizeof(struct seg_bank) },
	};

	for (size_t a = 0; a < sizeof(area) / sizeof(area[0]); a++)
		for (size_t i = 0; i < area[a].bytes; i++)
			for (unsigned bit = 0; bit < 8; bit++)
				flip(fd, image, area[a].from + i, bit);
	close(fd);
	free(image);
}

TEST(random_words)
{
	size_t size;
	uint8_t *image = tree_image(&size), *copy = malloc(size);
	unsigned short seed[3] = { 7, 8, 9 };
	static const uint32_t odd[] = { 0,          1,          2,          3,    4,
					5,          8,          255,        256,  0x7fffffff,
					0x80000000, 0xffffffff, 0xfffffffe, 4096, 1 << 24 };
	const size_t area[] = { CONTROL(slots),
				PART(0, type),
				HISTOGRAM(family),
				LIVES(0, generation),
				bank_at(image),
				row_at(image, 0),
				section(image, SEG_DIRTY)->offset,
				section(image, SEG_CELLS)->offset };

	REQUIRE(copy);
	for (int i = 0; i < 3000; i++) {
		int fd, r;

		memcpy(copy, image, size);
		for (int n = 1 + (int)(nrand48(seed) % 4); n; n--) {
			size_t at = area[(size_t)nrand48(seed) % 8] +
				    (size_t)nrand48(seed) % 384 / 4 * 4;

			memcpy(copy + at, &odd[(size_t)nrand48(seed) % 15], 4);
		}
		fd = image_fd(copy, size);
		r = walk_segment(fd);
		EXPECT(acceptable(r), "%d: %d", i, r);
		close(fd);
	}
	free(copy);
	free(image);
}

TEST(truncated)
{
	size_t size;
	uint8_t *image = tree_image(&size);

	for (size_t page = SEG_PAGE; page <= size; page += SEG_PAGE) {
		int fd = image_fd(image, page - 1), r = walk_segment(fd);

		EXPECT(r == -EPROTO || r == -EIO, "%zu bytes: %d", page - 1, r);
		close(fd);
	}
	free(image);
}

TAP_MAIN
