/* SPDX-License-Identifier: MIT */
/*
 * Updates, and the books of them (world.h). An update of a leaf that was removed meanwhile gives
 * -ENOENT and is taken back from the books; of any other group none may fail.
 */
#include <errno.h>
#include <string.h>

#include "conform/world.h"

struct target {
	struct group group;
	unsigned fixed; /* the lowest fixed group it counts in */
	int leaf;       /* or -1 */
	uint64_t incarnation;
};

static struct account *account_of(unsigned fixed, unsigned seat)
{
	return &world->account[fixed][seat];
}

/* The lowest group first, up to the root. */
#define EACH_ABOVE(f, from) \
	for (unsigned f = (from), more_ = 1; more_; more_ = f != 0, f = above(f))

static uint64_t leaf_count(uint64_t old, uint64_t incarnation)
{
	return old >> 32 == incarnation ? old : incarnation << 32;
}

static void begin(const struct target *g, unsigned seat, enum kind kind, uint64_t n)
{
	EACH_ABOVE(f, g->fixed)
	{
		uint64_t *w = &account_of(f, seat)->begun[kind];

		/* The update that follows is a release, which orders it for who reads the number. */
		store_relaxed(w, *w + n);
	}
	if (g->leaf >= 0 && kind != SEEN) {
		struct leaf_account *a = &world->leaf_account[g->leaf][seat];

		store_relaxed(&a->begun[kind], leaf_count(a->begun[kind], g->incarnation) + n);
		store_relaxed(&a->done[kind], leaf_count(a->done[kind], g->incarnation));
	}
}

/* done, or taken back. Pairs with the acquire loads in reader.c. */
static void end(const struct target *g, unsigned seat, enum kind kind, uint64_t n, bool counted)
{
	EACH_ABOVE(f, g->fixed)
	{
		struct account *a = account_of(f, seat);
		uint64_t *w = counted ? &a->done[kind] : &a->begun[kind];

		store_release(w, counted ? *w + n : *w - n);
	}
	if (g->leaf >= 0 && kind != SEEN) {
		struct leaf_account *a = &world->leaf_account[g->leaf][seat];
		uint64_t *w = counted ? &a->done[kind] : &a->begun[kind];

		store_release(w, counted ? *w + n : *w - n);
	}
}

/* Whether an update did what it said; a removed leaf says that it is one. */
static bool counted(const struct target *g, int r)
{
	struct tally *t = &world->tally[TALLY_PRODUCER];

	if (r == 0)
		return true;
	if (r != -ENOENT || g->leaf < 0 ||
	    load_acquire(&world->leaf[g->leaf].incarnation) == g->incarnation)
		check(t, EXACT, false, "an update gives %d", r);
	return false;
}

static void add_busy(const struct target *g, unsigned seat, int64_t n)
{
	if (!counted(g, design->add_busy(&g->group, n)))
		return;
	if (counted(g, design->add_busy(&g->group, -n)))
		return;
	/* Removed in between: that stays in the groups above. */
	EACH_ABOVE(f, g->fixed)
	account_of(f, seat)->busy += n;
}

static void observe(const struct target *g, unsigned seat, uint64_t value, const uint8_t *bucket_of)
{
	bool good;

	begin(g, seat, SEEN, 1);
	good = counted(g, design->observe(&g->group, value));
	EACH_ABOVE(f, g->fixed)
	{
		struct account *a = account_of(f, seat);

		*(good ? &a->sum : &a->unsure) += value;
		a->bucket[bucket_of[value]] += good;
	}
	end(g, seat, SEEN, 1, good);
}

static bool choose(struct target *g, uint64_t x, const struct group *handles)
{
	unsigned which = (unsigned)(x >> 40), crowd = which % CROWD;

	g->leaf = -1;
	switch (x % 16) {
	case 0: /* one of the fixed groups themselves */
		g->fixed = which % FIXED;
		g->group = handles[g->fixed];
		return true;
	case 1:
	case 2:
		g->fixed = service_of(crowd);
		g->group = handles[FIXED + crowd];
		return true;
	default:
		/* Mostly a few, so that several threads meet. */
		g->leaf = (int)(which % (x % 16 < 12 ? 3 : LEAVES));
		g->fixed = service_of((unsigned)g->leaf);
		return leaf_load((unsigned)g->leaf, &g->incarnation, &g->group);
	}
}

void updater_step(unsigned seat, uint64_t x, const struct group *handles, const uint8_t *bucket_of)
{
	uint64_t n = 1 + (x >> 8 & 3);
	unsigned what = x >> 4 & 7;
	struct target g;

	if (!choose(&g, x, handles))
		return;
	if ((what == 2 && !design->add_busy) || (what == 3 && !design->observe))
		what = 4;
	switch (what) {
	case 0:
	case 1:
		begin(&g, seat, OPS, n);
		end(&g, seat, OPS, n, counted(&g, design->add_ops(&g.group, n)));
		break;
	case 2:
		add_busy(&g, seat, (int64_t)n);
		break;
	case 3:
		observe(&g, seat, x >> 12 & 0x3f, bucket_of);
		break;
	default:
		begin(&g, seat, SETS, 1);
		end(&g, seat, SETS, 1, counted(&g, design->add_set(&g.group)));
		break;
	}
	store_relaxed(&world->seat[seat].steps, world->seat[seat].steps + 1);
}
