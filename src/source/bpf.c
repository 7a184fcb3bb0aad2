/* SPDX-License-Identifier: MIT */
/*
 * The source `bpf`: passes over the kernel's own per-CPU counters, without the rstat lock and
 * without a flush (src/bpf/pass.bpf.c), kept as a tree (host_tree.c).
 *
 * A pass is one run while nothing appears or vanishes, be it between two passes (host_reading.born).
 * A change begins a round: runs with the ledger, which shows what vanished cgroups left in their
 * parents, until every group's has been proved once since (ledger.h). So does each pass in the
 * LEDGER_NS that follow, and the first one after, because a release takes the kernel a moment: its
 * work item first takes the cgroup off its parent's list, then flushes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "source/bpf_run.h"
#include "source/host_tree.h"
#include "source/parse.h"
#include "source/source.h"

#define LEDGER_NS    (200 * NSEC_PER_MSEC)
#define LEDGER_TRIES 6  /* readings in one pass; then what has not settled waits for the next */
#define TORN_TRIES   16 /* walks that were no tree */
#define NAME_SLACK   (PASS_MAX_NAMES / 4) /* cgroups that may go from one run to the next */

struct bpf_source {
	struct source base;
	struct bpf_run *run;
	struct host_tree *tree;
	int root_stat;       /* cpu.stat of the real root, or -1 */
	uint32_t born;       /* as of the last run: host_reading.born */
	uint32_t round;      /* of the ledger */
	bool owing;          /* the round is not settled */
	bool unquiet;        /* the next pass makes a round, changed or not */
	uint64_t changed_ns; /* CLOCK_MONOTONIC */
	uint64_t root_value[HOST_NSTATS];
	uint64_t root_present;
};

static void bpf_free(struct source *s)
{
	struct bpf_source *b = (struct bpf_source *)s;

	host_tree_free(b->tree);
	bpf_run_close(b->run);
	if (b->root_stat >= 0)
		close(b->root_stat);
	free(b);
}

/*
 * The real root's numbers are the machine's: its cpu.stat adds up /proc/stat's counters in ns and,
 * unlike every other cgroup's, takes no rstat lock and flushes nothing. Two readers at once could
 * tear it from 6.11 to 6.14 (static buffer in the kernel), so no column may fall here.
 */
static int read_root(struct bpf_source *b)
{
	uint64_t value[HOST_NSTATS] = { 0 }, present;
	char text[4096];
	ssize_t len;
	int err;

	len = pread(b->root_stat, text, sizeof(text), 0);
	if (len < 0)
		return -errno;
	err = parse_cpu_stat(text, (size_t)len, value, &present);
	if (err)
		return err;
	for (int i = 0; i < HOST_NSTATS; i++)
		if (value[i] > b->root_value[i])
			b->root_value[i] = value[i];
	b->root_present = present;
	return 0;
}

static void begin_round(struct bpf_source *b)
{
	b->round++;
	b->owing = true;
}

/* Whether this run saw a change; the passes to come will look at the ledger. */
static bool note_change(struct bpf_source *b, const struct host_reading *r, int bits)
{
	bool changed = bits & TREE_CHANGED || r->born != b->born;

	/* That iterator hides the dying, who live on in the ledger alone. */
	if (bits & TREE_LOSING && bpf_run_holds_mutex(b->run))
		changed = true;
	b->born = r->born;
	if (changed) {
		b->changed_ns = r->at_ns;
		b->unquiet = true;
	} else if (r->at_ns - b->changed_ns >= LEDGER_NS) {
		b->unquiet = false;
	}
	return changed;
}

/* Runs until the tree is named and the round settled, or tries are used up. */
static int run_all(struct bpf_source *b)
{
	unsigned torn = 0, naming = 0, readings = 0;
	bool again = false;
	uint64_t known;
	uint32_t from;

	if (b->unquiet)
		begin_round(b);
	host_tree_unnamed(b->tree, &known, &from);
	from = 0;
	for (;;) {
		bool ledger = b->owing;
		struct host_reading r;
		bool changed;
		int bits, err;

		err = bpf_run(b->run, ledger, known, from, &r);
		if (err)
			return err;
		r.round = b->round;
		bits = host_tree_take(b->tree, &r);
		if (bits == -EAGAIN && ++torn < TORN_TRIES)
			continue;
		if (bits < 0)
			return bits;

		changed = note_change(b, &r, bits);
		readings += ledger;
		if (ledger)
			b->owing = bits & TREE_UNSETTLED;
		/* Once in a pass: it answers for what was before it began, and where cgroups come and
		 * go all the time it would never end. The next pass looks again. */
		if (changed && !again) {
			again = true;
			begin_round(b);
		}

		/* What goes in front of the first unnamed one meanwhile, moves it forward. */
		host_tree_unnamed(b->tree, &known, &from);
		from -= from < NAME_SLACK ? from : NAME_SLACK;
		if (bits & TREE_UNNAMED && naming++ <= 2 * r.count / PASS_MAX_NAMES + 1)
			continue;
		if (!b->owing || readings >= LEDGER_TRIES)
			return 0;
		if (readings > 1)
			bpf_run_wait(b->run);
	}
}

static int bpf_pass(struct source *s, struct source_tree *tree)
{
	struct bpf_source *b = (struct bpf_source *)s;
	uint64_t begin = clock_ns();
	int err;

	err = run_all(b);
	if (!err && b->root_stat >= 0)
		err = read_root(b);
	if (err)
		return err;
	host_tree_finish(b->tree, b->root_value, b->root_present, tree);
	tree->begin_ns = begin;
	tree->gone = 0; /* what goes while the pass walks is simply not met */
	return 0;
}

static const struct source_ops bpf_ops = {
	.name = "bpf",
	.pass = bpf_pass,
	.free = bpf_free,
};

int source_bpf_open(const struct source_options *options, struct source **ret, char *why,
		    size_t why_size)
{
	struct bpf_source *b = calloc(1, sizeof(*b));
	struct stat st = { 0 };
	int dir = -1, err;

	if (!b)
		return -ENOMEM;
	b->base.ops = &bpf_ops;
	b->root_stat = -1;
	dir = open(options->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) < 0) {
		err = -errno;
		snprintf(why, why_size, "%s: %s", options->root, strerror(errno));
		goto out;
	}
	if (options->is_top) {
		b->root_stat = openat(dir, "cpu.stat", O_RDONLY | O_CLOEXEC);
		if (b->root_stat < 0) {
			err = -errno;
			snprintf(why, why_size, "%s/cpu.stat: %s", options->root, strerror(-err));
			goto out;
		}
	}
	err = bpf_run_open(dir, &b->run, why, why_size);
	if (!err)
		err = host_tree_new(bpf_run_has(b->run), options->is_top, st.st_ino, &b->tree);
	if (err)
		goto out;
	snprintf(why, why_size, "bpf: per-CPU counters read in place, no rstat lock, no flush%s",
		 bpf_run_holds_mutex(b->run) ? " (this kernel's walk holds cgroup_mutex)" : "");
	*ret = &b->base;
	b = NULL;
out:
	if (dir >= 0)
		close(dir);
	if (b)
		bpf_free(&b->base);
	return err;
}
