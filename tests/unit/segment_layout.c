/* SPDX-License-Identifier: MIT */
/* The layout that docs/segment-format.md promises to other languages. A change here is a change of
 * the format: SEG_VERSION and that page must follow. */
#include "tap.h"

#include <freshet/freshet.h>

#include "core/cells.h"
#include "core/segment.h"

#define FIELD(type, field, offset, bytes)                            \
	do {                                                         \
		EXPECT_EQ(offsetof(struct type, field), offset);     \
		EXPECT_EQ(sizeof(((struct type *)0)->field), bytes); \
	} while (0)

TEST(header)
{
	EXPECT_EQ(sizeof(struct seg_header), 832);
	FIELD(seg_header, magic, 0, 8);
	FIELD(seg_header, version, 8, 4);
	FIELD(seg_header, byteorder, 12, 4);
	FIELD(seg_header, size, 16, 8);
	FIELD(seg_header, nsections, 24, 4);
	FIELD(seg_header, nstats, 28, 4);
	FIELD(seg_header, max_groups, 32, 4);
	FIELD(seg_header, nbanks, 36, 4);
	FIELD(seg_header, row_stride, 40, 4);
	FIELD(seg_header, pid, 44, 4);
	FIELD(seg_header, start_ns, 48, 8);
	FIELD(seg_header, identity, 56, 16);
	FIELD(seg_header, producer, 72, 64);
	FIELD(seg_header, socket, 136, 108);
	FIELD(seg_header, section, 248, 16 * 32);
	FIELD(seg_header, generation, 768, 8);
	FIELD(seg_header, interval_ns, 776, 8);
	FIELD(seg_header, overflowed, 784, 8);
	FIELD(seg_header, state, 792, 4);
}

TEST(section)
{
	EXPECT_EQ(sizeof(struct seg_section), 32);
	FIELD(seg_section, type, 0, 4);
	FIELD(seg_section, count, 4, 4);
	FIELD(seg_section, offset, 8, 8);
	FIELD(seg_section, size, 16, 8);
	FIELD(seg_section, stride, 24, 8);
}

TEST(stat)
{
	EXPECT_EQ(sizeof(struct seg_stat), 32);
	FIELD(seg_stat, family, 0, 4);
	FIELD(seg_stat, name, 4, 4);
	FIELD(seg_stat, key, 8, 4);
	FIELD(seg_stat, help, 12, 4);
	FIELD(seg_stat, kind, 16, 4);
	FIELD(seg_stat, unit, 20, 4);
	FIELD(seg_stat, set, 24, 4);
	FIELD(seg_stat, index, 28, 4);
	EXPECT_EQ(FRESHET_COUNTER, 1);
	EXPECT_EQ(FRESHET_GAUGE, 2);
	EXPECT_EQ(FRESHET_COUNT, 0);
	EXPECT_EQ(FRESHET_NANOSECONDS, 1);
	EXPECT_EQ(FRESHET_BYTES, 2);
}

TEST(group)
{
	EXPECT_EQ(sizeof(struct seg_group), 272);
	FIELD(seg_group, id, 0, 8);
	FIELD(seg_group, generation, 8, 4);
	FIELD(seg_group, name_len, 12, 4);
	FIELD(seg_group, name, 16, 256);
}

TEST(bank)
{
	EXPECT_EQ(sizeof(struct seg_bank), 64);
	FIELD(seg_bank, generation, 0, 8);
	FIELD(seg_bank, begin_ns, 8, 8);
	FIELD(seg_bank, end_ns, 16, 8);
	FIELD(seg_bank, ngroups, 24, 4);
	FIELD(seg_bank, nslots, 28, 4);
	FIELD(seg_bank, topology, 32, 8);
	FIELD(seg_bank, epoch, 40, 8);
	EXPECT_EQ(sizeof(struct seg_order), 16);
	FIELD(seg_order, slot, 0, 4);
	FIELD(seg_order, parent, 4, 4);
	FIELD(seg_order, size, 8, 4);
	FIELD(seg_order, depth, 12, 4);
	EXPECT_EQ(sizeof(struct seg_row), 16);
	FIELD(seg_row, generation, 0, 4);
	FIELD(seg_row, position, 4, 4);
	FIELD(seg_row, present, 8, 8);
	EXPECT_EQ(offsetof(struct seg_row, value), 16);
	EXPECT_EQ(seg_rows_offset(1), 128);
	EXPECT_EQ(seg_rows_offset(4), 128);
	EXPECT_EQ(seg_rows_offset(5), 192);
	EXPECT_EQ(seg_rows_offset(65536), 64 + 16 * 65536);
}

TEST(section_types)
{
	EXPECT_EQ(SEG_STATS, 1);
	EXPECT_EQ(SEG_STRINGS, 2);
	EXPECT_EQ(SEG_GROUPS, 3);
	EXPECT_EQ(SEG_BANKS, 4);
	EXPECT_EQ(SEG_CONTROL, 5);
	EXPECT_EQ(SEG_PARTS, 6);
	EXPECT_EQ(SEG_HISTOGRAMS, 7);
	EXPECT_EQ(SEG_LIVES, 8);
	EXPECT_EQ(SEG_DIRTY, 9);
	EXPECT_EQ(SEG_OWNERS, 10);
	EXPECT_EQ(SEG_CELLS, 11);
}

TEST(control)
{
	EXPECT_EQ(sizeof(struct seg_control), 128);
	FIELD(seg_control, slots, 0, 4);
	FIELD(seg_control, rseq_slots, 4, 4);
	FIELD(seg_control, fallback_slots, 8, 4);
	FIELD(seg_control, words, 12, 4);
	FIELD(seg_control, cell_size, 16, 4);
	FIELD(seg_control, dirty_row, 20, 4);
	FIELD(seg_control, nparts, 24, 4);
	FIELD(seg_control, nhistograms, 28, 4);
	FIELD(seg_control, used_groups, 64, 4);
	FIELD(seg_control, used_rseq, 68, 4);
	FIELD(seg_control, used_fallback, 72, 4);
}

TEST(part)
{
	EXPECT_EQ(sizeof(struct seg_part), 24);
	FIELD(seg_part, type, 0, 4);
	FIELD(seg_part, first, 4, 4);
	FIELD(seg_part, count, 8, 4);
	FIELD(seg_part, at, 12, 4);
	FIELD(seg_part, down, 16, 4);
	FIELD(seg_part, less, 20, 4);
	EXPECT_EQ(PART_WORDS, 1);
	EXPECT_EQ(PART_PAIR, 2);
	EXPECT_EQ(PART_SET, 3);
	EXPECT_EQ(FRESHET_BANKS, 6);
	EXPECT_EQ(FRESHET_MAX_SET, 16);
	EXPECT_EQ(FRESHET_MAX_WORDS, 4096);
}

TEST(histogram)
{
	EXPECT_EQ(sizeof(struct seg_histogram), 40);
	FIELD(seg_histogram, family, 0, 4);
	FIELD(seg_histogram, name, 4, 4);
	FIELD(seg_histogram, key, 8, 4);
	FIELD(seg_histogram, help, 12, 4);
	FIELD(seg_histogram, unit, 16, 4);
	FIELD(seg_histogram, precision, 20, 4);
	FIELD(seg_histogram, lowest, 24, 4);
	FIELD(seg_histogram, highest, 28, 4);
	FIELD(seg_histogram, word, 32, 4);
	EXPECT_EQ(FRESHET_MAX_HISTOGRAMS, 16);
}

TEST(life)
{
	EXPECT_EQ(sizeof(struct seg_life), 64);
	FIELD(seg_life, generation, 0, 4);
	FIELD(seg_life, depth, 4, 2);
	FIELD(seg_life, parent, 6, 2);
	FIELD(seg_life, born, 8, 8);
	FIELD(seg_life, ancestor, 16, 12 * 4);
	EXPECT_EQ(FRESHET_MAX_DEPTH, 11);
}

/* Of 100 groups on 3 CPU slots. */
TEST(bitmaps_and_cells)
{
	static _Alignas(64) char memory[3 * 8320];
	const struct cells c = { .dirty = memory, .cells = memory, .slots = 3, .dirty_row = 128,
				 .cell_size = 64, .cells_stride = 8320 };

	EXPECT_EQ(seg_dirty_row(100), 128);
	EXPECT_EQ(seg_dirty_row(1024), 128);
	EXPECT_EQ(seg_dirty_row(1025), 256);
	EXPECT_EQ(seg_cells_stride(100, 64), 8192 + 128);
	EXPECT_EQ(CELLS_EPOCHS, 4);
	EXPECT_EQ(SEG_OWNER_STRIDE, 128);
	EXPECT_EQ((const char *)cells_bits(&c, 5, 0, 1) - memory, (1 * 4 + 0) * 128 + 8);
	EXPECT_EQ((const char *)cells_bits(&c, 7, 3, 0) - memory, (3 * 4 + 3) * 128);
	EXPECT_EQ((const char *)cells_bits(&c, 8, 2, 0) - memory, 2 * 128);
	EXPECT_EQ((const char *)cells_cell(&c, 2, 99) - memory, 2 * 8320 + 99 * 64);
}

TAP_MAIN
