/* SPDX-License-Identifier: MIT */
/*
 * Truncated, bit-flipped and hostile segments: the reader gives an error, or reads on; it does not
 * crash, read outside of the segment (ASan sees that for what is copied, SIGSEGV for the mapping),
 * or go round in circles (the test's time limit).
 */
#include "tap.h"

#include "core/segment.h"
#include "unit/segment_image.h"
#include "unit/segment_walk.h"

/* Where things are in the image of segment_image.h; pass 3 is in bank 1. */
#define AT(field)        offsetof(struct seg_header, field)
#define SECTION(i, f)    (AT(section) + (i) * sizeof(struct seg_section) + offsetof(struct seg_section, f))
#define HEADER           ((const struct seg_header *)image)
#define STAT(i, f)       (HEADER->section[0].offset + (i) * sizeof(struct seg_stat) + \
			  offsetof(struct seg_stat, f))
#define STRINGS_END      (HEADER->section[1].offset + HEADER->section[1].size - 1)
#define GROUP(i, f)      (HEADER->section[2].offset + (i) * sizeof(struct seg_group) + \
			  offsetof(struct seg_group, f))
#define BANK             (HEADER->section[3].offset + HEADER->section[3].stride)
#define BANK_AT(f)       (BANK + offsetof(struct seg_bank, f))
#define ORDER(i, f)      (BANK + SEG_ORDER_OFFSET + (i) * sizeof(struct seg_order) + \
			  offsetof(struct seg_order, f))
#define ROW(i, f)        (BANK + seg_rows_offset(IMAGE_GROUPS) + (i) * HEADER->row_stride + \
			  offsetof(struct seg_row, f))

static int acceptable(int r)
{
	return r == 0 || r == -EPROTO || r == -EIO || r == -EAGAIN;
}

TEST(undamaged)
{
	size_t size;
	uint8_t *image = image_make(&size);
	int fd = image_fd(image, size);
	struct freshet_view *v;
	struct freshet_group g, child[4];
	size_t count;

	EXPECT_EQ(HEADER->generation, 3);
	EXPECT_EQ(walk_segment(fd), 0);
	REQUIRE(freshet_attach_fd(fd, &v) == 0);
	EXPECT_EQ(freshet_find(v, "/a/b", &g), 0);
	EXPECT_EQ(g.slot, 2);
	EXPECT_EQ(g.generation, 1);
	EXPECT_EQ(freshet_root(v, &g), 0);
	EXPECT_EQ(freshet_children(v, g, child, 4, &count), 0);
	EXPECT_EQ(count, 2);
	freshet_detach(v);
	close(fd);
	free(image);
}

TEST(truncated)
{
	size_t size, cut[] = { 0, 1, 7, 8, 100, sizeof(struct seg_header) - 1,
			       sizeof(struct seg_header), SEG_PAGE - 1 };
	uint8_t *image = image_make(&size);

	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
		int fd = image_fd(image, cut[i]), r = walk_segment(fd);

		EXPECT(r == -EPROTO || r == -EIO, "%zu bytes: %d", cut[i], r);
		close(fd);
	}
	/* At each page, a byte before and behind it: every section's begin and end is among them. */
	for (size_t page = SEG_PAGE; page <= size; page += SEG_PAGE) {
		for (size_t n = page - 1; n <= page + 1 && n < size; n++) {
			int fd = image_fd(image, n);

			EXPECT_EQ(walk_segment(fd), -EIO);
			close(fd);
		}
	}
	free(image);
}

/* The segment with one bit turned over, and back. */
static void flip(int fd, const uint8_t *image, size_t at, unsigned bit)
{
	uint8_t byte = image[at] ^ (uint8_t)(1u << bit);
	int r;

	if (pwrite(fd, &byte, 1, (off_t)at) != 1)
		abort();
	r = walk_segment(fd);
	EXPECT(acceptable(r), "byte %zu bit %u: %d", at, bit, r);
	if (at < offsetof(struct seg_header, size))
		EXPECT(r == -EPROTO, "byte %zu bit %u: %d", at, bit, r);
	if (pwrite(fd, &image[at], 1, (off_t)at) != 1)
		abort();
}

TEST(each_bit_of_header_and_columns)
{
	size_t size;
	uint8_t *image = image_make(&size);
	int fd = image_fd(image, size);

	for (size_t at = 0; at < sizeof(struct seg_header); at++)
		for (unsigned bit = 0; bit < 8; bit++)
			flip(fd, image, at, bit);
	for (size_t at = STAT(0, family); at < STAT(COLUMNS, family); at++)
		for (unsigned bit = 0; bit < 8; bit++)
			flip(fd, image, at, bit);
	close(fd);
	free(image);
}

TEST(bits_anywhere)
{
	size_t size, used;
	uint8_t *image = image_make(&size);
	int fd = image_fd(image, size);
	unsigned short seed[3] = { 1, 2, 3 };

	for (int i = 0; i < 4000; i++) {
		/* Half of them where the tree is, half anywhere. */
		used = ROW(5, value) - BANK;
		flip(fd, image, i % 2 ? BANK + (size_t)nrand48(seed) % used
				      : (size_t)nrand48(seed) % size,
		     (unsigned)nrand48(seed) % 8);
	}
	close(fd);
	free(image);
}

TEST(random_words)
{
	size_t size;
	uint8_t *image = image_make(&size), *copy = malloc(size);
	unsigned short seed[3] = { 4, 5, 6 };
	static const uint32_t odd[] = { 0, 1, 2, 3, 4, 5, 8, 255, 256, 0x7fffffff, 0x80000000,
					0xffffffff, 0xfffffffe, 4096, 1 << 24 };

	REQUIRE(copy);
	for (int i = 0; i < 3000; i++) {
		int fd, r;

		memcpy(copy, image, size);
		for (int n = 1 + (int)(nrand48(seed) % 4); n; n--) {
			size_t at = (nrand48(seed) % 4 ? BANK : GROUP(0, id)) +
				    (size_t)nrand48(seed) % 512 / 4 * 4;

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

struct lie {
	const char *what;
	size_t at;
	unsigned width;
	uint64_t value;
	int error;
};

/* attach: whether the error is attach's; else a snapshot's. */
static void tell(const uint8_t *image, size_t size, const struct lie *lie, int attach)
{
	int fd = image_fd(image, size), r;
	struct freshet_snapshot *snap;
	struct freshet_view *v = NULL;

	if (pwrite(fd, &lie->value, lie->width, (off_t)lie->at) != (ssize_t)lie->width)
		abort();
	r = walk_segment(fd);
	EXPECT(r == (attach ? lie->error : 0), "%s: attach gives %d", lie->what, r);
	if (!attach && r == 0 && freshet_attach_fd(fd, &v) == 0 && freshet_snapshot_new(&snap) == 0) {
		r = freshet_snapshot_take(snap, v);
		EXPECT(r == lie->error, "%s: snapshot gives %d", lie->what, r);
		EXPECT_EQ(freshet_snapshot_count(snap), 0);
		freshet_snapshot_free(snap);
	}
	freshet_detach(v);
	close(fd);
}

TEST(hostile_header)
{
	size_t size;
	uint8_t *image = image_make(&size);
	const uint64_t big = UINT64_MAX & ~(uint64_t)(SEG_PAGE - 1);
	const struct lie lies[] = {
		{ "other byte order", AT(byteorder), 4, 0x04030201, -EPROTO },
		{ "later version", AT(version), 4, SEG_VERSION + 1, -EPROTO },
		{ "no pass yet", AT(generation), 8, 0, -EAGAIN },
		{ "size 0", AT(size), 8, 0, -EIO },
		{ "size beyond the file", AT(size), 8, size + 1, -EIO },
		{ "size of all", AT(size), 8, UINT64_MAX, -EIO },
		{ "size that cuts a section", AT(size), 8, size - SEG_PAGE, -EIO },
		{ "too many sections", AT(nsections), 4, SEG_MAX_SECTIONS + 1, -EIO },
		{ "all sections", AT(nsections), 4, UINT32_MAX, -EIO },
		{ "no section", AT(nsections), 4, 0, -EIO },
		{ "no columns", AT(nstats), 4, 0, -EIO },
		{ "more columns than counted", AT(nstats), 4, COLUMNS + 1, -EIO },
		{ "too many columns", AT(nstats), 4, FRESHET_MAX_STATS + 1, -EIO },
		{ "all columns", AT(nstats), 4, UINT32_MAX, -EIO },
		{ "no groups", AT(max_groups), 4, 0, -EIO },
		{ "all groups", AT(max_groups), 4, UINT32_MAX, -EIO },
		{ "more groups than counted", AT(max_groups), 4, IMAGE_GROUPS + 1, -EIO },
		{ "no bank", AT(nbanks), 4, 0, -EIO },
		{ "one bank", AT(nbanks), 4, 1, -EIO },
		{ "three banks", AT(nbanks), 4, 3, -EIO },
		{ "more banks than counted", AT(nbanks), 4, 4, -EIO },
		{ "too many banks", AT(nbanks), 4, 16, -EIO },
		{ "row too short", AT(row_stride), 4, 16 + 8 * COLUMNS - 8, -EIO },
		{ "row uneven", AT(row_stride), 4, 16 + 8 * COLUMNS + 4, -EIO },
		{ "row too long", AT(row_stride), 4, 1 << 16, -EIO },
		{ "row longest", AT(row_stride), 4, UINT32_MAX & ~7u, -EIO },
		{ "section uneven", SECTION(2, offset), 8, HEADER->section[2].offset + 8, -EIO },
		{ "section in the header", SECTION(0, offset), 8, 0, -EIO },
		{ "section beyond the end", SECTION(2, offset), 8, size + SEG_PAGE, -EIO },
		{ "section at the end of all", SECTION(2, offset), 8, big, -EIO },
		{ "section too long", SECTION(3, size), 8, HEADER->section[3].size + SEG_PAGE, -EIO },
		{ "section as long as all", SECTION(2, size), 8, UINT64_MAX, -EIO },
		{ "section over another", SECTION(1, offset), 8, HEADER->section[0].offset, -EIO },
		{ "section into the next", SECTION(0, size), 8, 2 * SEG_PAGE, -EIO },
		{ "section twice", SECTION(0, type), 4, SEG_STRINGS, -EIO },
		{ "section missing", SECTION(3, type), 4, 99, -EIO },
		{ "stride 0", SECTION(2, stride), 8, 0, -EIO },
		{ "stride uneven", SECTION(2, stride), 8, sizeof(struct seg_group) + 4, -EIO },
		{ "stride too long", SECTION(2, stride), 8, sizeof(struct seg_group) + 8, -EIO },
		{ "bank stride of all", SECTION(3, stride), 8, big, -EIO },
		{ "count", SECTION(2, count), 4, IMAGE_GROUPS - 1, -EIO },
		{ "string beyond the end", STAT(1, name), 4, UINT32_MAX, -EIO },
		{ "string just beyond", STAT(1, help), 4, HEADER->section[1].size, -EIO },
		{ "string unterminated", STRINGS_END, 1, 'x', -EIO },
		{ "strings empty", SECTION(1, size), 8, 0, -EIO },
		{ "unknown kind", STAT(0, kind), 4, 9, -EPROTO },
		{ "unknown unit", STAT(0, unit), 4, 9, -EPROTO },
		{ "column elsewhere", STAT(0, index), 4, 1, -EIO },
		{ "no such set", STAT(0, set), 4, FRESHET_MAX_STATS, -EIO },
	};
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		tell(image, size, &lies[i], 1);

	memset(image + AT(producer), 'x', sizeof(HEADER->producer));
	EXPECT_EQ(walk_segment(image_fd(image, size)), -EIO);
	image[AT(producer)] = 0;
	memset(image + AT(socket), 'x', sizeof(HEADER->socket));
	EXPECT_EQ(walk_segment(image_fd(image, size)), -EIO);
	free(image);
}

TEST(hostile_tree)
{
	size_t size;
	uint8_t *image = image_make(&size);
	const struct lie lies[] = {
		{ "bank of another pass", BANK_AT(generation), 8, 1, -EIO },
		{ "more entries than slots", BANK_AT(ngroups), 4, IMAGE_GROUPS, -EIO },
		{ "all entries", BANK_AT(ngroups), 4, UINT32_MAX, -EIO },
		{ "more slots than there is room for", BANK_AT(nslots), 4, IMAGE_GROUPS + 1, -EIO },
		{ "fewer entries", BANK_AT(ngroups), 4, 3, -EIO },
		{ "slot out of range", ORDER(1, slot), 4, IMAGE_GROUPS, -EIO },
		{ "slot far out of range", ORDER(1, slot), 4, UINT32_MAX, -EIO },
		{ "slot twice", ORDER(1, slot), 4, 2, -EIO },
		{ "slot of a removed group", ORDER(1, slot), 4, 4, -EIO },
		{ "its own parent", ORDER(1, parent), 4, 1, -EIO },
		{ "parent below it", ORDER(1, parent), 4, 2, -EIO },
		{ "parent of the root", ORDER(0, parent), 4, 1, -EIO },
		{ "another's child", ORDER(3, parent), 4, 1, -EIO },
		{ "size 0", ORDER(1, size), 4, 0, -EIO },
		{ "size beyond the end", ORDER(1, size), 4, 4, -EIO },
		{ "size of all", ORDER(1, size), 4, UINT32_MAX, -EIO },
		{ "size beyond the parent", ORDER(2, size), 4, 2, -EIO },
		{ "size too small", ORDER(0, size), 4, 3, -EIO },
		{ "depth", ORDER(2, depth), 4, 7, -EIO },
		{ "row elsewhere", ROW(2, position), 4, 3, -EIO },
		{ "row beyond the end", ROW(2, position), 4, UINT32_MAX, -EIO },
		{ "row of another group", ROW(2, generation), 4, 2, -EIO },
		{ "row of no group", ROW(2, generation), 4, 0, -EIO },
		{ "name too long", GROUP(1, name_len), 4, 256, -EIO },
		{ "name much too long", GROUP(1, name_len), 4, UINT32_MAX, -EIO },
		{ "name unterminated", GROUP(1, name), 8, UINT64_MAX, -EIO },
		{ "name with a slash", GROUP(1, name), 2, '/', -EIO },
		{ "no name", GROUP(1, name_len), 4, 0, -EIO },
		{ "NUL in the name", GROUP(1, name_len), 4, 2, -EIO },
		{ "root with a name", GROUP(0, name_len), 4, 1, -EIO },
		{ "slot's generation", GROUP(1, generation), 4, 2, -EIO },
	};
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		tell(image, size, &lies[i], 0);
	free(image);
}

/* A reader must start again while the generation moves, but not for ever. */
TEST(generation_that_never_rests)
{
	size_t size;
	uint8_t *image = image_make(&size);
	int fd = image_fd(image, size);
	struct freshet_group g = { 1, 1 };
	uint64_t values[COLUMNS], present;
	struct freshet_view *v;

	REQUIRE(freshet_attach_fd(fd, &v) == 0);
	EXPECT_EQ(freshet_read_total(v, g, 0, COLUMNS, values, &present, NULL), 0);
	/* Back to 0, which no producer does: the bank there is pass 2's. */
	if (pwrite(fd, &(uint64_t){ 0 }, 8, AT(generation)) != 8)
		abort();
	EXPECT_EQ(freshet_read_total(v, g, 0, COLUMNS, values, &present, NULL), -EIO);
	freshet_detach(v);
	close(fd);
	free(image);
}

TAP_MAIN
