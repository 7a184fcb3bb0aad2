/* SPDX-License-Identifier: MIT */
/*
 * The segment: layout of the shared-memory file that holds one tree of statistics.
 * docs/segment-format.md describes it for other languages; this header is the definition.
 *
 * Invariants
 *   - The file is: header (one page), then sections, each at a page boundary, listed in the header.
 *     Header fields other than `generation`, `state`, `interval_ns` and `overflowed` never change
 *     once the file lies at its path (it is renamed there when complete).
 *   - There are nbanks banks (a power of two), each a complete tree: order, rows. Pass G (from 1) is in bank
 *     G % nbanks. The writer fills the bank of G = generation + 1, which no reader may be using,
 *     then stores generation = G.
 *   - A slot's seg_group is written before the first pass that shows it and not changed until
 *     nbanks passes after the last that did.
 *   - Memory is reserved for the slots, order entries and rows below the bank's nslots; what lies
 *     beyond may be a hole, which nobody touches (on a full tmpfs that would be a SIGBUS).
 *
 * Ordering: the writer stores `generation` with release, then a store-store fence, before it
 * touches the next bank. A reader loads `generation` = G with acquire, reads bank G % nbanks with
 * relaxed loads, then an acquire fence, then loads `generation` again = H: what it read is whole
 * when H - G <= nbanks - 2.
 *
 * Progress: a reader never waits for the writer; the writer never for a reader.
 *
 * A program's tree has further sections, for what is not flushed into rows yet: core/cells.h.
 * Readers ignore section types they do not know.
 */
#ifndef FRESHET_SEGMENT_H
#define FRESHET_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SEG_MAGIC     "FRESHET\n" /* 8 bytes, without a NUL */
#define SEG_VERSION   1u
#define SEG_BYTEORDER 0x01020304u
#define SEG_PAGE      4096u

#define SEG_MIN_BANKS 2u
#define SEG_MAX_BANKS 8u
#define SEG_MAX_GROUPS (1u << 24)
#define SEG_MAX_SECTIONS 16u

enum seg_section_type {
	SEG_STATS = 1,   /* seg_stat[count] */
	SEG_STRINGS = 2, /* NUL-terminated strings, named by offset */
	SEG_GROUPS = 3,  /* seg_group[count], by slot */
	SEG_BANKS = 4,   /* count banks, stride bytes apart */
	/* Of a program's tree only; all or none: core/cells.h. */
	SEG_CONTROL = 5,    /* one seg_control */
	SEG_PARTS = 6,      /* seg_part[count] */
	SEG_HISTOGRAMS = 7, /* seg_histogram[count]; absent if there are none */
	SEG_LIVES = 8,      /* seg_life[count], by group slot */
	SEG_DIRTY = 9,      /* bitmaps */
	SEG_OWNERS = 10,    /* of fallback slots */
	SEG_CELLS = 11,     /* by CPU slot */
};

struct seg_section {
	uint32_t type;
	uint32_t count;
	uint64_t offset; /* from the file's begin; multiple of SEG_PAGE */
	uint64_t size;   /* bytes */
	uint64_t stride; /* bytes from one element to the next */
};

enum seg_state {
	SEG_RUNNING = 1,
	SEG_CLOSED = 2, /* the producer ended cleanly */
};

struct seg_header {
	char magic[8];
	uint32_t version;
	uint32_t byteorder;
	uint64_t size;         /* of the file */
	uint32_t nsections;
	uint32_t nstats;       /* at most FRESHET_MAX_STATS */
	uint32_t max_groups;   /* slots */
	uint32_t nbanks;
	uint32_t row_stride;   /* bytes; multiple of 8 */
	int32_t pid;           /* of the producer, in its own namespace: for people, not for checks */
	uint64_t start_ns;     /* CLOCK_MONOTONIC */
	uint8_t identity[16];  /* random, new with every start */
	char producer[64];
	char socket[108];      /* file name, beside the segment, of the refresh socket; "": none */
	uint32_t pad0;
	struct seg_section section[SEG_MAX_SECTIONS];

	/* What changes; a cache line of its own (by padding: gcc's AddressSanitizer does not align
	 * local variables to that). Written by the writer alone. */
	uint64_t pad1;
	uint64_t generation; /* last published pass; 0: none yet */
	uint64_t interval_ns;             /* intended; 0: none */
	uint64_t overflowed;              /* groups without room in the last pass */
	uint32_t state;                   /* enum seg_state */
	uint32_t pad2[9];
};
_Static_assert(offsetof(struct seg_header, generation) == 768 && sizeof(struct seg_header) == 832,
	       "as docs/segment-format.md says");

/* A column. Strings are offsets into SEG_STRINGS. */
struct seg_stat {
	uint32_t family;
	uint32_t name;
	uint32_t key;
	uint32_t help;
	uint32_t kind;  /* enum freshet_kind */
	uint32_t unit;  /* enum freshet_unit */
	uint32_t set;
	uint32_t index; /* of its word in a row's values; in version 1: the column's own number */
};

/* What a slot is. */
struct seg_group {
	uint64_t id;
	uint32_t generation; /* never 0; rises when the slot is used again */
	uint32_t name_len;
	char name[256];      /* NUL-terminated; any bytes but NUL and '/' */
};

/* A bank: this, then order[max_groups] at order_offset, then rows by slot at rows_offset. */
struct seg_bank {
	uint64_t generation; /* the pass it holds */
	uint64_t begin_ns;
	uint64_t end_ns;
	uint32_t ngroups;  /* at most nslots */
	uint32_t nslots;   /* slots 0 .. nslots-1 have memory; at most max_groups */
	uint64_t topology; /* changes whenever order[] does */
	uint64_t epoch;    /* of a tree with cells: its rows hold all updates of earlier epochs */
	uint64_t pad1[2];
};
#define SEG_ORDER_OFFSET 64u /* from the bank's begin; rows follow at the next multiple of 64 */

/* One group of the tree, in pre-order; entry 0 is the root. */
struct seg_order {
	uint32_t slot;
	uint32_t parent; /* entry; of the root: 0 */
	uint32_t size;   /* entries of the subtree, itself included */
	uint32_t depth;
};

/* One group's numbers. */
struct seg_row {
	uint32_t generation; /* of the slot's group; 0: the slot is in no group of this pass */
	uint32_t position;   /* its entry in order[] */
	uint64_t present;    /* bit per column */
	uint64_t value[];    /* nstats of them; those of absent columns mean nothing. Of a tree with
				cells: all `words` of the subtree, then all `words` of its own */
};

static inline uint64_t seg_round(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* Whether a group may have this name; the root's is "", every other's is not. */
static inline bool seg_name_good(const char *name, size_t len, bool root)
{
	return (len == 0) == root && len < sizeof(((struct seg_group *)0)->name) &&
	       !memchr(name, '/', len) && !memchr(name, '\0', len);
}

static inline uint64_t seg_rows_offset(uint32_t max_groups)
{
	return seg_round(SEG_ORDER_OFFSET + (uint64_t)max_groups * sizeof(struct seg_order), 64);
}

#endif
