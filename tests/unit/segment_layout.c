/* SPDX-License-Identifier: MIT */
/* The layout that docs/segment-format.md promises to other languages. A change here is a change of
 * the format: SEG_VERSION and that page must follow. */
#include "tap.h"

#include <freshet/freshet.h>

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

TAP_MAIN
