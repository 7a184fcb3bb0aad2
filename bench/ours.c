/* SPDX-License-Identifier: MIT */
/*
 * Implements ours.h. A tree holds what its contender updates and nothing else, as memory is for the
 * others: a counter; a set of three; a histogram, which needs a counter beside it. Threads share the
 * groups.
 */
#include "ours.h"

#include <errno.h>
#include <stdio.h>

#include <freshet/freshet.h>

#include "loops.h"

struct own_tree {
	struct freshet_handle handle[LOOPS_CELLS];
	struct freshet_tree *tree;
	struct contender contender;
};

static struct own_tree trees[2][OURS_KINDS];

static const int64_t ones[3] = { 1, 1, 1 };

#define OBSERVED 1024u
static uint64_t observed[OBSERVED]; /* so that all sizes of buckets are met, in no order */

#define HANDLE(cells, i) (((const struct own_tree *)(cells))->handle[i])

#define SINGLE(h, i)    freshet_add(&(h), 0, 1)
#define SET3(h, i)      freshet_add_set(&(h), 0, 3, ones)
#define HISTOGRAM(h, i) freshet_observe(&(h), 0, observed[(i) % OBSERVED])

LOOPS(single, struct freshet_handle, HANDLE, SINGLE)
LOOPS(set3, struct freshet_handle, HANDLE, SET3)
LOOPS(histogram, struct freshet_handle, HANDLE, HISTOGRAM)

static int read_stats(void *cells, unsigned cell, unsigned count)
{
	const struct own_tree *t = cells;
	uint64_t value[3], present;

	return freshet_read(freshet_view_of(t->tree), t->handle[cell].group, 0, count, value,
			    &present, NULL);
}

static int read_single(void *cells, unsigned cell)
{
	return read_stats(cells, cell, 1);
}

static int read_set3(void *cells, unsigned cell)
{
	return read_stats(cells, cell, 3);
}

static int read_histogram(void *cells, unsigned cell)
{
	const struct own_tree *t = cells;
	uint64_t bucket[FRESHET_MAX_WORDS], sum;

	return freshet_read_histogram(freshet_view_of(t->tree), t->handle[cell].group, 0, bucket,
				      &sum);
}

static const struct contender contenders[2][OURS_KINDS] = {
	{ { .what = "rseq-single",
	    .how = "freshet_add() of a counter, restartable sequence",
	    .one = single_one,
	    .many = single_many,
	    .read = read_single },
	  { .what = "rseq-set3",
	    .how = "freshet_add_set() of three counters, restartable sequence",
	    .one = set3_one,
	    .many = set3_many,
	    .read = read_set3 },
	  { .what = "rseq-histogram",
	    .how = "freshet_observe() of random values, 93 buckets, restartable sequences",
	    .one = histogram_one,
	    .many = histogram_many,
	    .read = read_histogram } },
	{ { .what = "atomic-single",
	    .how = "freshet_add() of a counter, fallback",
	    .one = single_one,
	    .many = single_many,
	    .read = read_single },
	  { .what = "atomic-set3",
	    .how = "freshet_add_set() of three counters, fallback",
	    .one = set3_one,
	    .many = set3_many,
	    .read = read_set3 },
	  { .what = "atomic-histogram",
	    .how = "freshet_observe() of random values, 93 buckets, fallback",
	    .one = histogram_one,
	    .many = histogram_many,
	    .read = read_histogram } },
};

static const struct freshet_stat counter[] = {
	{ .family = "bench", .name = "updates", .help = "Updates.", .kind = FRESHET_COUNTER },
};

static const struct freshet_stat set[] = {
	{ .family = "bench", .name = "a", .help = "Updates.", .kind = FRESHET_COUNTER, .set = 1 },
	{ .family = "bench", .name = "b", .help = "Updates.", .kind = FRESHET_COUNTER, .set = 1 },
	{ .family = "bench", .name = "c", .help = "Updates.", .kind = FRESHET_COUNTER, .set = 1 },
};

static const struct freshet_histogram latency[] = {
	{ .family = "bench",
	  .name = "latency",
	  .help = "Values.",
	  .unit = FRESHET_NANOSECONDS,
	  .precision = 2,
	  .lowest = 10,
	  .highest = 34 },
};

static const struct freshet_schema schemas[OURS_KINDS] = {
	{ .size = sizeof(struct freshet_schema), .stats = counter, .nstats = 1 },
	{ .size = sizeof(struct freshet_schema), .stats = set, .nstats = 3 },
	{ .size = sizeof(struct freshet_schema),
	  .stats = counter,
	  .nstats = 1,
	  .histograms = latency,
	  .nhistograms = 1 },
};

static int make(struct own_tree *t, enum freshet_backend backend, enum ours_kind kind)
{
	const struct freshet_options options = { .size = sizeof(options),
						 .producer = "freshet-bench",
						 .max_groups = LOOPS_CELLS + 1,
						 .backend = backend };
	struct freshet_handle root;
	int err = freshet_open(NULL, &schemas[kind], &options, &t->tree);

	if (err)
		return err;
	root = freshet_tree_root(t->tree);
	for (unsigned i = 0; i < LOOPS_CELLS && !err; i++) {
		char name[16];

		snprintf(name, sizeof(name), "tenant%u", i);
		err = freshet_create(t->tree, &root, name, i + 1 < LOOPS_CELLS ? FRESHET_LATER : 0,
				     &t->handle[i]);
	}
	if (err)
		return err;
	t->contender = contenders[backend == FRESHET_FALLBACK][kind];
	for (unsigned i = 0; i < WORKERS; i++)
		t->contender.cells[i] = t;
	return 0;
}

int ours_open(void)
{
	int err = 0;

	for (unsigned i = 0; i < OBSERVED; i++)
		observed[i] = (loops_random(i) >> 30) >> (i % 20);
	for (unsigned k = 0; k < OURS_KINDS && !err; k++) {
		err = make(&trees[0][k], FRESHET_RSEQ, k);
		if (err == -EOPNOTSUPP)
			err = 0;
		if (!err)
			err = make(&trees[1][k], FRESHET_FALLBACK, k);
	}
	return err;
}

void ours_close(void)
{
	for (unsigned k = 0; k < OURS_KINDS; k++) {
		freshet_close(trees[0][k].tree);
		freshet_close(trees[1][k].tree);
	}
}

const struct contender *ours(int fallback, enum ours_kind kind)
{
	return &trees[fallback][kind].contender;
}
