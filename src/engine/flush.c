/* SPDX-License-Identifier: MIT */
/*
 * Flush: what cells hold moves into the rows of the next bank, and a new epoch begins. It bounds what
 * reads have to look at; no read needs it.
 *
 * Steps and order, for epoch E -> E + 1:
 *   1. selector = E + 1 (seq_cst).
 *   2. rseq_barrier(): sequences that loaded the old selector have committed, or start again and load
 *      the new one. If it fails, stop: the flip stays, the next flush goes on from here.
 *   3. A seq_cst fence: with a single thread the barrier is none. And it stands between the selector's
 *      store and the loads of the owners, which pairs with claim() in update.c: who is not seen to
 *      hold a fallback slot loads the new selector.
 *   4. For every fallback slot that is held: its group's bit in the flusher's own row of bits of
 *      E + 1. It may be updated under any epoch up to E.
 *   5. Of every group whose bit is set in epoch E (or E - 1, see dirty_in()): own = sum of its cells;
 *      the difference goes to it and all groups above. So, too, of every group that is buried
 *      (groups.c).
 *   6. Publish the bank (release): its epoch is E + 1. writer_publish() has a release fence behind
 *      that.
 *   7. Clear the bitmap that epoch E + 2 will use: it is that of E - 2. A reader that needs it reads a
 *      bank of epoch E - 2 or E - 3, and at least three passes were published since; it sees that in
 *      bank_whole() if it saw a bit cleared. No update is setting bits there: step 2 (rseq) of two
 *      flushes ago; a fallback slot that was held all the while may, which at worst makes a group
 *      look dirty that is not.
 *
 * A flusher that stops anywhere leaves everything readable: before 6 the old bank and the bits of E
 * and E + 1 have it all, after 6 the new one.
 */
#include <errno.h>
#include <string.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "engine/tree.h"

static uint64_t *own_bits(struct freshet_tree *t, uint64_t epoch, uint32_t slot)
{
	return (uint64_t *)(uintptr_t)cells_bits(&t->cells, epoch, slot, 0);
}

bool flush_is_carried(const struct freshet_tree *t, uint32_t slot)
{
	for (uint32_t i = 0; i < t->ncarried; i++)
		if (t->carried[i] == slot)
			return true;
	return false;
}

/* The group stays dirty in this epoch, whatever its updaters do. */
static void carry(struct freshet_tree *t, uint64_t epoch, uint32_t group)
{
	uint64_t *word = own_bits(t, epoch, t->cells.slots) + group / 64;

	store_relaxed(word, load_relaxed(word) | 1ull << group % 64);
	t->carried[t->ncarried++] = group;
}

static void carry_held(struct freshet_tree *t, uint64_t epoch)
{
#ifdef PLANT_NO_CARRY /* for tests/conform, which must notice it */
	return;
#endif
	for (uint32_t i = 0; i < t->cells.fallback_slots; i++) {
		/* Pairs with claim() and release() in update.c. */
		uint32_t owner = load_seq_cst(owner_at(t, i));

		if (owner)
			carry(t, epoch, owner - 1);
	}
}

bool flush_group(struct freshet_tree *t, uint32_t group)
{
	const struct cells *c = &t->cells;
	struct cells_range range = cells_range(c);
	uint64_t *own = t->own, *row;

	memset(own, 0, 8 * (size_t)c->words);
	for (uint32_t i = 0; i < c->nparts; i++) {
		const struct seg_part *p = &c->parts[i];

		if (!cells_sum(c, range, group, p, 0, p->count, own + p->first))
			return false;
	}
	row = writer_edit(t->writer, group) + c->words;
	for (uint32_t i = 0; i < c->words; i++) {
		uint64_t difference = own[i] - row[i];

		row[i] = own[i];
		own[i] = difference;
	}
#ifdef PLANT_NO_FOLD /* for tests/conform, which must notice it */
	if (t->nodes[group].dead)
		return true;
#endif
	for (uint32_t g = group; g != NO_NODE; g = t->nodes[g].parent) {
		row = writer_edit(t->writer, g);
		for (uint32_t i = 0; i < c->words; i++)
			row[i] += own[i];
	}
	return true;
}

/*
 * Bits of an epoch, and of the one before it: those groups were summed by the last flush, but on kernels
 * without commit 6eb350a22331 ("rseq: Protect event mask against membarrier IPI") a sequence may
 * miss the barrier, and so commit after that.
 */
static uint64_t dirty_in(const struct cells *c, struct cells_range range, uint64_t epoch,
			 uint32_t word)
{
	uint64_t bits = load_relaxed(cells_bits(c, epoch, c->slots, word));

	CELLS_EACH(slot, range)
		bits |= load_relaxed(cells_bits(c, epoch, slot, word)) |
			load_relaxed(cells_bits(c, epoch - 1, slot, word));
	return bits;
}

static void flush_groups(struct freshet_tree *t, uint64_t epoch)
{
	const uint32_t groups = t->control->used_groups;
	struct cells_range range = cells_range(&t->cells);

	for (uint32_t word = 0; word * 64 < groups; word++) {
		uint64_t bits = dirty_in(&t->cells, range, epoch, word);

		for (; bits; bits &= bits - 1) {
			uint32_t group = word * 64 + (uint32_t)__builtin_ctzll(bits);

			/* A bit may be left of a group that is gone. */
			if (group < groups && t->nodes[group].name && !flush_group(t, group))
				carry(t, epoch + 1, group);
		}
	}
}

static void clear_bits(struct freshet_tree *t, uint64_t epoch)
{
	const uint32_t words = (t->control->used_groups + 63) / 64;
	struct cells_range range = cells_range(&t->cells);

	CELLS_EACH(slot, range)
		for (uint32_t i = 0; i < words; i++)
			store_relaxed(&own_bits(t, epoch, slot)[i], 0);
	for (uint32_t i = 0; i < words; i++)
		store_relaxed(&own_bits(t, epoch, t->cells.slots)[i], 0);
}

int flush_locked(struct freshet_tree *t)
{
	uint64_t began = publish_wait(t);
	uint64_t epoch = t->hot->selector;
	int r;

	if (t->flipped) {
		epoch--;
	} else {
		/* Read without the lock by freshet_flush(), before the flip. */
		store_release(&t->flushes, t->flushes + 1);
#ifndef PLANT_LATE_FLIP /* for tests/conform, which must notice it */
		store_seq_cst(&t->hot->selector, epoch + 1);
#endif
	}
	t->flipped = true;
#ifdef PLANT_NO_BARRIER /* for tests/conform, which must notice it */
	if (0) {
#else
	if (t->rseq) {
#endif
		r = rseq_barrier();
		if (r)
			return r;
	}
	fence_seq_cst();
	t->ncarried = 0;
	carry_held(t, epoch + 1);
	flush_groups(t, epoch);
#ifdef PLANT_LATE_FLIP
	store_seq_cst(&t->hot->selector, epoch + 1);
#endif
	groups_bury(t, epoch);
	writer_epoch(t->writer, epoch + 1);
#ifdef PLANT_EARLY_CLEAR /* for tests/conform, which must notice it */
	clear_bits(t, epoch);
#endif
	publish(t, began);
#ifdef PLANT_CLEAR_NEW /* for tests/conform, which must notice it */
	clear_bits(t, epoch + 1);
#endif
	clear_bits(t, epoch + 2);
	t->flipped = false;
	return 0;
}

int freshet_flush(struct freshet_tree *t)
{
	uint64_t before;
	int r = 0;

	if (tree_is_childs(t))
		return -ECHILD;
	/* Pairs with flush_locked(), whose own fence stands behind the number's store: a flush that
	 * begins after this sees that the caller's updates on fallback slots are done. */
	fence_seq_cst();
	before = load_acquire(&t->flushes);
	pthread_mutex_lock(&t->lock);
	/* Another one's flush that flipped after this call will do; one that failed after its flip
	 * has to be brought to its end first. */
	if (t->flushes == before || t->flipped)
		publish_turn(t);
	while (r == 0 && (t->flushes == before || t->flipped))
		r = flush_locked(t);
	pthread_mutex_unlock(&t->lock);
	return r;
}
