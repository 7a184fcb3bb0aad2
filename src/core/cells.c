/* SPDX-License-Identifier: MIT */
/*
 * Summing a group's cells over CPU slots (cells.h).
 *
 * Progress: reading a set starts again when its bank was rewritten meanwhile. Every time it may take
 * any version since the first it saw, and takes the one whose bank lives longest; once 2^(N-1)
 * versions have gone by (N banks) that is at least 2^(N-2) more of them, 16 with N = 6: an updater at
 * full speed, slowed down by this reader's looking at its cache line, needs longer for those than
 * the reader for 16 loads. What is left is a reader that is itself held up; after CELLS_TRIES times of
 * that it gives up.
 */
#include "core/cells.h"

#define CELLS_TRIES 64u
#define DEEPEST     (FRESHET_BANKS - 1)

/* The bank that version v is in, and the version that will overwrite it there. */
static unsigned bank_of(uint64_t v, uint64_t *rewrite)
{
	unsigned bank = (unsigned)__builtin_ctzll(v | 1ull << DEEPEST);

	*rewrite = v + (bank == DEEPEST ? 1ull << DEEPEST : 2ull << bank);
	return bank;
}

/* Of the banks whose newest version is in [from, to], the one that is overwritten last. */
static unsigned best_bank(uint64_t from, uint64_t to, uint64_t *rewrite)
{
	unsigned best = bank_of(to, rewrite);

	for (unsigned i = 0; i < FRESHET_BANKS; i++) {
		uint64_t first = i == DEEPEST ? 0 : 1ull << i, next;
		unsigned step = i == DEEPEST ? DEEPEST : i + 1;
		uint64_t version = first + ((to - first) >> step << step);

		if (to < first || version < from)
			continue;
		bank_of(version, &next);
		if (next > *rewrite) {
			best = i;
			*rewrite = next;
		}
	}
	return best;
}

/* Adds the count words of a set as of one version. Ruler banks: DESIGN, section 4 "Sets". */
static bool set_sum(const uint64_t *set, unsigned count, uint64_t *sum)
{
	uint64_t value[FRESHET_MAX_SET];
	/* Pairs with the version's store: its bank is seen. */
	uint64_t first = load_acquire(&set[0]), now = first;

	for (unsigned t = 0; t < CELLS_TRIES; t++) {
		uint64_t rewrite, after;
		unsigned i = t ? best_bank(first, now, &rewrite) : bank_of(first, &rewrite);
		const uint64_t *bank = set + 1 + i * count;

		for (i = 0; i < count; i++)
			value[i] = load_relaxed(&bank[i]);
		/* Who sees a word of the rewriting sees the version before it. */
		fence_acquire();
		after = load_acquire(&set[0]);
#ifdef PLANT_SEQCOUNT /* for tests/conform: see add_set() in engine/update.c */
		for (i = 0; i < count; i++)
			value[i] = load_relaxed(&set[1 + i]);
		fence_acquire();
		rewrite = after % 2 || load_acquire(&set[0]) != after ? 0 : UINT64_MAX;
#endif
		if (after + 1 < rewrite) {
			for (i = 0; i < count; i++)
				sum[i] += value[i];
			return true;
		}
		now = after;
	}
	return false;
}

static inline const uint64_t *at(const struct cells *c, uint32_t slot, uint32_t group,
				 uint32_t offset)
{
	return cells_cell(c, slot, group) + offset / 8;
}

bool cells_sum(const struct cells *c, struct cells_range range, uint32_t group,
	       const struct seg_part *p, uint32_t skip, uint32_t count, uint64_t *sum)
{
	switch (p->type) {
	case PART_WORDS:
		CELLS_EACH(slot, range)
		{
			const uint64_t *word = at(c, slot, group, p->at) + skip;

			for (uint32_t i = 0; i < count; i++)
				sum[i] += load_relaxed(&word[i]);
		}
		return true;
	case PART_PAIR:
#ifdef PLANT_UPS_FIRST /* for tests/conform, which must notice it */
		CELLS_EACH(slot, range)
			sum[0] += load_relaxed(at(c, slot, group, p->at));
		fence_acquire();
		CELLS_EACH(slot, range)
			sum[0] -= load_relaxed(at(c, slot, group, p->down));
		return true;
#endif
		CELLS_EACH(slot, range)
			sum[0] -= load_relaxed(at(c, slot, group, p->down));
		/* A decrease that was seen, its increase came before: pairs with the release (or the
		 * machine's order) of the word's store. */
		fence_acquire();
		CELLS_EACH(slot, range)
			sum[0] += load_relaxed(at(c, slot, group, p->at));
		return true;
	default: { /* PART_SET */
		uint64_t whole[FRESHET_MAX_SET] = { 0 };

		if (p->less) {
			CELLS_EACH(slot, range)
			{
				const uint64_t *word = at(c, slot, group, p->less);

				for (uint32_t i = 0; i < p->count; i++)
					whole[i] -= load_relaxed(&word[i]);
			}
			fence_acquire(); /* as of a pair */
		}
		CELLS_EACH(slot, range)
		{
			const uint64_t *word = at(c, slot, group, p->at);

			if (!set_sum(at(c, slot, group, p->down), p->count, whole))
				return false;
			for (uint32_t i = 0; i < p->count; i++)
				whole[i] += load_relaxed(&word[i]);
		}
		for (uint32_t i = 0; i < count; i++)
			sum[i] += whole[skip + i];
		return true;
	}
	}
}

uint64_t cells_dirty(const struct cells *c, struct cells_range range, uint64_t epoch, uint32_t word)
{
	uint64_t bits = 0;

	/* By number: `epoch` may be any, in a damaged segment. */
	for (unsigned i = 0; i < 2; i++) {
		CELLS_EACH(slot, range)
			bits |= load_relaxed(cells_bits(c, epoch + i, slot, word));
		bits |= load_relaxed(cells_bits(c, epoch + i, c->slots, word));
	}
	/* Before the cells: a bit that is seen as set, its cell's update may be seen or not. */
	fence_acquire();
	return bits;
}
