/* SPDX-License-Identifier: MIT */
/*
 * What the inline updates leave over: a group's first update in an epoch on a CPU slot, interrupted
 * sequences, threads without rseq, and what is not allowed.
 *
 * With rseq: mark() sets the group's dirty bit and stamps the cell in a sequence of its own, and the
 * update is tried again. After MAX_ABORTS failures (a debugger stepping through) a fallback slot.
 *
 * Fallback slots: claimed by one compare-exchange, written by their holder alone, given back. The
 * owner word names the group, so that a flush knows what may be changing under it. A holder that stands
 * still keeps its slot and nobody waits for it; when all are held, the update gives up.
 *
 * Nothing here locks or allocates, so that signal handlers may update: one that interrupts an update
 * uses another fallback slot, or makes the interrupted sequence start again.
 */
#include <errno.h>
#include <sched.h>

#include "base/atomics.h"
#include "engine/tree.h"

#define MAX_ABORTS   16
#define CLAIM_ROUNDS 64 /* over all fallback slots, each followed by a sched_yield() */

uint32_t *owner_at(const struct freshet_tree *t, uint32_t fallback)
{
	return (void *)(t->owners + (size_t)fallback * SEG_OWNER_STRIDE);
}

/* Raises a high-water mark. Before the slot's first bit; pairs with cells_range(). */
static void slot_used(uint32_t *mark, uint32_t slots)
{
	uint32_t have = load_relaxed(mark);

	while (have < slots && !cas_seq_cst(mark, &have, slots))
		;
}

static uint64_t *word_at(const struct freshet_tree *t, uint32_t slot, uint32_t group)
{
	return (uint64_t *)(uintptr_t)cells_cell(&t->cells, slot, group);
}

static uint64_t *bits_at(const struct freshet_tree *t, uint64_t epoch, uint32_t slot,
			 uint32_t group)
{
	return (uint64_t *)(uintptr_t)cells_bits(&t->cells, epoch, slot, group / 64);
}

#if FRESHET_HAVE_RSEQ
/* Makes the group's cell on this CPU slot ready for updates. 0: try again; 1: no rseq for this
 * thread; -ENOENT. */
static int mark(const struct freshet_tree *t, const struct freshet_handle *h)
{
	const uint32_t group = h->group.slot;
	const uint64_t *tag = &t->tags[group];
	uint64_t epoch = load_relaxed(&t->hot->selector);
	int slot = rseq_slot(&t->place);

	if (slot < 0 || (uint32_t)slot >= t->cells.rseq_slots)
		return 1;
	if (load_relaxed(tag) != h->tag)
		return -ENOENT;
	slot_used(&t->control->used_rseq, (uint32_t)slot + 1);
	/* If it does not commit, one of the things it compares has changed. */
	freshet_seq_mark(h, (unsigned)slot, epoch, tag, bits_at(t, epoch, (uint32_t)slot, group),
			 1ull << group % 64, word_at(t, (uint32_t)slot, group));
	return 0;
}

/* Adds n to a word of the cell or, if count is more than 1, to the set that begins there. 0; 1: it
 * takes a fallback slot; -ENOENT. */
static int by_sequence(const struct freshet_tree *t, const struct freshet_handle *h, unsigned word,
		       unsigned count, const int64_t *n)
{
	int r;

	for (unsigned i = 0; t->rseq && i < MAX_ABORTS; i++) {
		if (count > 1 ? freshet_seq_set(h, word, count, n)
			      : freshet_seq_add(h, word, (uint64_t)n[0]))
			return 0;
		r = mark(t, h);
		if (r)
			return r;
	}
	return 1;
}
#else
static int by_sequence(const struct freshet_tree *t, const struct freshet_handle *h, unsigned word,
		       unsigned count, const int64_t *n)
{
	return 1;
}
#endif

/* Fallback slot that this thread found the last time. initial-exec: no allocation at first use. */
static _Thread_local uint32_t found_last __attribute__((tls_model("initial-exec")));

void update_prefer(uint32_t fallback)
{
	found_last = fallback;
}

/* A fallback slot, held for the group; or -1. */
static int claim(const struct freshet_tree *t, uint32_t group)
{
	const uint32_t n = t->cells.fallback_slots;

	for (unsigned round = 0; round < CLAIM_ROUNDS; round++) {
		for (uint32_t i = 0; i < n; i++) {
			uint32_t slot = (found_last + i) % n, free = 0;
			uint32_t *owner = owner_at(t, slot);

			if (load_relaxed(owner))
				continue;
			/* Before the selector and the tag are loaded; pairs with the seq_cst
			 * stores of both, and loads of the owner, in flush.c and groups.c. */
			if (cas_seq_cst(owner, &free, group + 1)) {
				found_last = slot;
				slot_used(&t->control->used_fallback, slot + 1);
				return (int)slot;
			}
		}
		sched_yield();
	}
	return -1;
}

static void release(const struct freshet_tree *t, int fallback)
{
	/* The update is done; pairs with carry_held(). */
	store_release(owner_at(t, (uint32_t)fallback), 0);
}

/* Claims a slot, and sets the group's bit there. 0, or -errno: nothing is held. */
static int begin(const struct freshet_tree *t, const struct freshet_handle *h, int *fallback,
		 uint64_t **cell)
{
	const uint32_t group = h->group.slot;
	uint64_t *bits, epoch, bit = 1ull << group % 64;
	uint32_t slot;

	*fallback = claim(t, group);
	if (*fallback < 0)
		return -EAGAIN;
	if (load_seq_cst(&t->tags[group]) != h->tag) {
		release(t, *fallback);
		return -ENOENT;
	}
	epoch = load_seq_cst(&t->hot->selector);
	slot = t->cells.rseq_slots + (uint32_t)*fallback;
	bits = bits_at(t, epoch, slot, group);
	if (!(load_relaxed(bits) & bit))
		store_relaxed(bits, load_relaxed(bits) | bit);
	*cell = word_at(t, slot, group);
	return 0;
}

static void add(uint64_t *word, uint64_t n)
{
	/* Pairs with the fence in cells_sum(): a decrease is seen after its increase, and a number
	 * after its bit. */
	store_release(word, load_relaxed(word) + n);
}

/* The version and banks: inline.h and cells.c. */
static void add_set(uint64_t *set, unsigned count, const int64_t *n)
{
	const uint64_t deepest = 1ull << (FRESHET_BANKS - 1);
	uint64_t version = load_relaxed(&set[0]);
	const uint64_t *from = set + 1 + (unsigned)__builtin_ctzll(version | deepest) * count;
	uint64_t *to = set + 1 + (unsigned)__builtin_ctzll((version + 1) | deepest) * count;

#ifdef PLANT_SEQCOUNT /* for tests/conform, which must notice it: one bank, odd while it changes */
	store_relaxed(&set[0], version + 1);
	fence_release();
	for (unsigned i = 0; i < count; i++)
		store_relaxed(&set[1 + i], load_relaxed(&set[1 + i]) + (uint64_t)n[i]);
	store_release(&set[0], version + 2);
	return;
#endif
	/* After the version; pairs with the fence in set_sum(). */
	fence_release();
	for (unsigned i = 0; i < count; i++)
		store_relaxed(&to[i], load_relaxed(&from[i]) + (uint64_t)n[i]);
	/* After the bank; pairs with the load of the version there. */
	store_release(&set[0], version + 1);
}

/* As by_sequence(). */
static int by_fallback(const struct freshet_tree *t, const struct freshet_handle *h, unsigned word,
		       unsigned count, const int64_t *n)
{
	uint64_t *cell;
	int slot, r = begin(t, h, &slot, &cell);

	if (r)
		return r;
	if (count > 1)
		add_set(&cell[word], count, n);
	else
		add(&cell[word], (uint64_t)n[0]);
	release(t, slot);
	return 0;
}

static int add_words(const struct freshet_tree *t, const struct freshet_handle *h, unsigned word,
		     unsigned count, const int64_t *n)
{
	int r = by_sequence(t, h, word, count, n);

	return r <= 0 ? r : by_fallback(t, h, word, count, n);
}

static int add_word(const struct freshet_tree *t, const struct freshet_handle *h, unsigned word,
		    uint64_t n)
{
	const int64_t amount = (int64_t)n;

	return add_words(t, h, word, 1, &amount);
}

/* NULL in a forked child. */
static const struct freshet_tree *tree_of(const struct freshet_handle *h)
{
	return load_relaxed(&h->hot->tree);
}

int freshet_add_word_slow(const struct freshet_handle *h, unsigned word, uint64_t n)
{
	const struct freshet_tree *t = tree_of(h);

	return t ? add_word(t, h, word, n) : -ECHILD;
}

int freshet_add_slow(const struct freshet_handle *h, unsigned stat, int64_t n)
{
	const struct freshet_tree *t = tree_of(h);

	if (!t)
		return -ECHILD;
	if (stat >= t->schema.nstats)
		return -EINVAL;
	if (n < 0 && t->schema.down)
		return add_word(t, h, 1 + t->schema.nstats + stat, 0 - (uint64_t)n);
	return add_word(t, h, 1 + stat, (uint64_t)n);
}

int freshet_add_set_slow(const struct freshet_handle *h, unsigned first, unsigned count,
			 const int64_t *n)
{
	const struct freshet_tree *t = tree_of(h);

	if (!t)
		return -ECHILD;
	if (first >= t->schema.nstats)
		return -EINVAL;
	if (count == 1 && t->schema.stats[first].set == first && t->schema.set[first].count == 0)
		return freshet_add_slow(h, first, n[0]);
	if (count < 2 || t->schema.set[first].count != count)
		return -EINVAL;
	return add_words(t, h, t->schema.set[first].offset, count, n);
}

int update_on_fallback(const struct freshet_handle *h, unsigned first, unsigned count,
		       const int64_t *n)
{
	const struct freshet_tree *t = tree_of(h);

	if (!t)
		return -ECHILD;
	return by_fallback(t, h, count > 1 ? t->schema.set[first].offset : 1 + first, count, n);
}

int freshet_observe_slow(const struct freshet_handle *h, unsigned histogram, uint64_t value)
{
	const struct freshet_tree *t = tree_of(h);
	unsigned offset, last, bucket;
	uint64_t *cell;
	int slot, r;

	if (!t)
		return -ECHILD;
	if (histogram >= t->schema.nhistograms)
		return -EINVAL;
	offset = t->schema.histogram[histogram];
	last = t->schema.histograms[histogram].buckets - 1u;
	bucket = freshet_bucket_of(t->schema.histograms[histogram].precision,
				   t->schema.histograms[histogram].lowest, last, value);
#if FRESHET_HAVE_RSEQ
	for (unsigned i = 0; t->rseq && i < MAX_ABORTS; i++) {
		int done = freshet_seq_observe(h, offset + last + 1, value, offset + bucket);

		if (done)
			return done == 2 ? 0 : add_word(t, h, offset + bucket, 1);
		r = mark(t, h);
		if (r < 0)
			return r;
		if (r)
			break;
	}
#endif
	/* One slot for both, so that neither is counted if there is none. */
	r = begin(t, h, &slot, &cell);
	if (r)
		return r;
	add(&cell[offset + last + 1], value);
	add(&cell[offset + bucket], 1);
	release(t, slot);
	return 0;
}
