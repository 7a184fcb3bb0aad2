/* SPDX-License-Identifier: MIT */
/*
 * Cells: the part of a program's segment that updates write, and how it is read. DESIGN in short:
 *
 *   A group has a cell on each CPU slot, which is written by that slot alone. The rows in the banks
 *   (segment.h) hold, of each group, the words of its subtree ("total") and of itself ("own") as of
 *   the last flush. So, at any moment, for every group g,
 *
 *       fresh(g) = total(g) + sum over groups d of g's subtree of (cells(d) - own(d)),
 *
 *   and only groups whose dirty bit is set can have a difference.
 *
 * Epochs. Each flush begins a new epoch E: updates set their bit in bitmap E % CELLS_EPOCHS, once per
 * epoch, before they change the cell. The bank that the flush publishes has `epoch` E and holds all
 * updates of epochs < E. A reader of that bank needs the bitmaps of E, and of E + 1, which begins
 * with the next flush; both are kept for as long as the bank can be read, that is until two more
 * passes were published: that is why there are as many bitmaps as banks, four.
 *
 * Lives. A slot's seg_life names its group and the slots of the groups above it. It and the cells
 * change owners only when no bank that can still be read shows the former group; in between,
 * generation is 0. A reader that sees a life change skips it: then no update of it can have happened
 * before the read began, and the former group's are in the totals.
 *
 * Fallback slots are held while they are written: the owner word is the group's slot + 1. A flush
 * that finds one held sets the group's bit in the new epoch itself, in the row of bits that is its
 * own (row `slots`): so a held slot counts as dirty until a flush has found it free.
 *
 * Ordering. Updates: bit, stamp, number in this order (inline.h). The flusher: see engine/flush.c. A
 * reader: bank_load() (acquire), rows, lives, bits, cells in any order (but a word's bits before the
 * cells they stand for, and a life's generation before its cells), then the acquire fence in
 * bank_whole(): a bit that was seen cleared, or a cell zeroed, was so after the generation had moved
 * past what bank_whole() accepts.
 *
 * Progress: readers wait for nobody and write nothing.
 */
#ifndef FRESHET_CELLS_H
#define FRESHET_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include <freshet/freshet.h>

#include "base/atomics.h"
#include "core/segment.h"

#define CELLS_EPOCHS 4u
#define CELLS_LINE   128u /* keeps CPUs apart: two lines, because of adjacent-line prefetch */
#define CELLS_MAX_SLOTS 8192u

/* Constant but for the used_... words, which only rise. A page of its own. */
struct seg_control {
	uint32_t slots;          /* CPU slots: the rseq ones first, then fallback ones */
	uint32_t rseq_slots;
	uint32_t fallback_slots;
	uint32_t words;          /* numbers of a group: stats, histograms' buckets and sums */
	uint32_t cell_size;      /* bytes, multiple of 8 */
	uint32_t dirty_row;      /* bytes of one slot's bits of one epoch */
	uint32_t nparts;
	uint32_t nhistograms;
	uint32_t pad0[8];        /* what follows changes: a cache line of its own */
	uint32_t used_groups;    /* slots of groups ever used: written by create */
	uint32_t used_rseq;      /* CPU slots ever used: raised by updates' slow path */
	uint32_t used_fallback;
	uint32_t pad1[13];
};

enum part_type {
	PART_WORDS = 1, /* count numbers, each a word */
	PART_PAIR = 2,  /* one number: a word of increases, and at `down` one of decreases */
	PART_SET = 3,   /* count numbers, never torn: words as above (for updates of one of them),
			   and at `down` a version and FRESHET_BANKS banks of count words */
};

/* Where numbers first .. first+count-1 of a group are in its cells. Parts cover all words, in order. */
struct seg_part {
	uint32_t type;
	uint32_t first;
	uint32_t count;
	uint32_t at;   /* offset of the first word in a cell, bytes */
	uint32_t down; /* bytes */
	uint32_t less; /* of a set: as `at`, words of decreases (by updates of one number); 0: none */
};

struct seg_histogram {
	uint32_t family, name, key, help; /* offsets into SEG_STRINGS */
	uint32_t unit;
	uint32_t precision, lowest, highest;
	uint32_t word; /* of the first bucket; the sum follows the last one */
	uint32_t pad;
};

/* One line. Written by create alone, see "Lives". */
struct seg_life {
	uint32_t generation; /* as in seg_group; 0: none at the moment */
	uint16_t depth;
	uint16_t parent;     /* 1: a group was once created below it */
	uint64_t born;       /* the first pass whose bank can show it */
	uint32_t ancestor[FRESHET_MAX_DEPTH + 1]; /* slots by depth, itself included */
};

#define SEG_OWNER_STRIDE CELLS_LINE /* a uint32_t each */

static inline uint64_t seg_dirty_row(uint32_t max_groups)
{
	return seg_round(((uint64_t)max_groups + 7) / 8, CELLS_LINE);
}

/* From one CPU slot's cells to the next one's; not a multiple of the page, so that the cells of one
 * group do not all fall into one set of a cache. */
static inline uint64_t seg_cells_stride(uint32_t max_groups, uint32_t cell_size)
{
	return seg_round((uint64_t)max_groups * cell_size, SEG_PAGE) + CELLS_LINE;
}

/* What a reader keeps of the sections, checked (cells.c). The flusher has one, too. */
struct cells {
	const struct seg_control *control;
	const char *lives;
	const char *dirty;
	const char *cells;
	uint64_t life_stride;
	uint64_t cells_stride;
	uint32_t slots, rseq_slots, fallback_slots;
	uint32_t words;
	uint32_t cell_size;
	uint32_t dirty_row;
	uint32_t nparts;
	uint32_t max_groups;
	const struct seg_part *parts; /* private copy */
};

static inline const struct seg_life *cells_life(const struct cells *c, uint32_t group)
{
	return (const void *)(c->lives + (size_t)group * c->life_stride);
}

static inline const uint64_t *cells_cell(const struct cells *c, uint32_t slot, uint32_t group)
{
	return (const void *)(c->cells + slot * c->cells_stride + (size_t)group * c->cell_size);
}

/* Bits of groups 64 * word and up of a slot (`slots`: the flusher's own) in an epoch. */
static inline const uint64_t *cells_bits(const struct cells *c, uint64_t epoch, uint32_t slot,
					 uint32_t word)
{
	uint64_t row = (epoch % CELLS_EPOCHS) * (c->slots + 1) + slot;

	return (const uint64_t *)(const void *)(c->dirty + row * c->dirty_row) + word;
}

/* The CPU slots in use. */
struct cells_range {
	uint32_t rseq;     /* 0 .. rseq-1, then */
	uint32_t from, to; /* from .. to-1 */
};

/* Pairs with slot_used() in engine/update.c, which comes before the first bit of a slot. */
static inline struct cells_range cells_range(const struct cells *c)
{
	uint32_t rseq = load_acquire(&c->control->used_rseq);
	uint32_t fallback = load_acquire(&c->control->used_fallback);

	return (struct cells_range){
		.rseq = rseq < c->rseq_slots ? rseq : c->rseq_slots,
		.from = c->rseq_slots,
		.to = c->rseq_slots +
		      (fallback < c->fallback_slots ? fallback : c->fallback_slots),
	};
}

/* for each slot of a range */
#define CELLS_EACH(slot, r)                                                        \
	for (uint32_t slot = (r).rseq ? 0 : (r).from; slot < (r).to || slot < (r).rseq; \
	     slot = slot + 1 == (r).rseq ? (r).from : slot + 1)

/*
 * Adds numbers p->first + skip .. + count - 1 of a group, summed over slots, to sum[0 .. count-1];
 * the count words lie inside the part. false: see the head of cells.c.
 */
bool cells_sum(const struct cells *c, struct cells_range range, uint32_t group,
	       const struct seg_part *p, uint32_t skip, uint32_t count, uint64_t *sum);

/* Groups 64 * word and up that may differ from the rows of a bank of this epoch. */
uint64_t cells_dirty(const struct cells *c, struct cells_range range, uint64_t epoch,
		     uint32_t word);

#endif
