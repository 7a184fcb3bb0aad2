/* SPDX-License-Identifier: MIT */
/*
 * The bench `read`: what reading a program's tree costs, by how many groups were updated since the
 * last flush and on how many CPU slots; from inside the process and from another one; what a flush
 * costs; what a group takes of memory.
 *
 * In a round, every state of the tree is made once, read in every way, and flushed. Reads are timed
 * in batches (read_ways.h), small ones, so that a 99th percentile is one of few reads.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "benches.h"
#include "cgroups.h"
#include "procs.h"
#include "read_tree.h"
#include "read_ways.h"
#include "report.h"
#include "stats.h"

#define BIG         10000u
#define USUAL_DIRTY 100u /* the state in which everything is read */
#define MAX_DIRTIES 5
#define STORM_NS    (300 * NSEC_PER_MSEC)

enum beside { ALONE, POLLER, UPDATER };

/* What is read in each state, or in the usual one only. */
static const struct item {
	enum way way;
	bool outside, everywhere;
	enum beside beside; /* on the other CPU: a process that reads the root's set, or a thread
			     * that updates what is read, flat out */
} items[] = {
	{ WAY_LEAF, false, true, ALONE },        { WAY_LEAF, true, true, ALONE },
	{ WAY_ROOT, false, true, ALONE },        { WAY_ROOT, true, true, ALONE },
	{ WAY_LEAF_SET3, false, false, ALONE },  { WAY_LEAF_SET3, true, false, ALONE },
	{ WAY_ROOT_SET3, false, false, ALONE },  { WAY_ROOT_SET3, true, false, ALONE },
	{ WAY_LEAF_TOTAL, false, false, ALONE }, { WAY_LEAF_TOTAL, true, false, ALONE },
	{ WAY_ROOT_TOTAL, false, false, ALONE }, { WAY_ROOT_TOTAL, true, false, ALONE },
	{ WAY_SNAPSHOT, false, false, ALONE },   { WAY_SNAPSHOT, true, false, ALONE },
	{ WAY_LEAF, false, false, POLLER },      { WAY_ROOT, false, false, POLLER },
	{ WAY_LEAF, false, false, UPDATER },     { WAY_LEAF_SET3, false, false, UPDATER },
};
#define ITEMS (sizeof(items) / sizeof(items[0]))

struct state {
	unsigned dirty, slots;
	struct stats ns[ITEMS], flush;
	unsigned batch[ITEMS];
};

static struct plan {
	unsigned groups;
	unsigned threads; /* that update */
	enum freshet_backend backend;
	unsigned dirty[MAX_DIRTIES]; /* 0: no more */
	uint64_t group_bytes;
	unsigned cell_bytes, bytes_slots;
} plans[] = {
	/* The first ones while the process has but one thread: they have one CPU slot. */
	{ .groups = 100, .threads = 1, .dirty = { 1, 10, 100 } },
	{ .groups = BIG, .threads = 1, .dirty = { 1, 10, 100, 1000, BIG } },
	{ .groups = 100, .threads = 2, .dirty = { 1, 10, 100 } },
	{ .groups = BIG, .threads = 2, .dirty = { 1, 10, 100, 1000, BIG } },
	{ .groups = BIG, .threads = 8, .backend = FRESHET_FALLBACK, .dirty = { 100 } },
	{ .groups = BIG, .threads = 64, .backend = FRESHET_FALLBACK, .dirty = { 100 } },
};
#define PLANS (sizeof(plans) / sizeof(plans[0]))

/* Not in the plans, which are initialised: the program's file would have its megabytes. */
static struct state states[PLANS][MAX_DIRTIES];

static struct state *state_of(const struct plan *p, int d)
{
	return &states[p - plans][d];
}

/* ---- a thread that updates what is read ---- */

static struct {
	pthread_t thread;
	struct freshet_handle leaf;
	int running, stop;
} updater;

static void *update_leaf(void *unused)
{
	static const int64_t ones[READ_STATS - READ_SET] = { 1, 1, 1 };

	while (!load_relaxed(&updater.stop)) {
		freshet_add(&updater.leaf, READ_SINGLE, 1);
		freshet_add_set(&updater.leaf, READ_SET, READ_STATS - READ_SET, ones);
		store_relaxed(&updater.running, 1);
	}
	return unused;
}

static int updater_start(const struct read_tree *t)
{
	int err;

	updater.leaf = t->handle[t->groups - 1];
	updater.running = updater.stop = 0;
	err = procs_thread(&updater.thread, procs_last_cpu(), update_leaf, NULL);
	if (err)
		return err;
	while (!load_relaxed(&updater.running))
		;
	return 0;
}

static void updater_stop(void)
{
	store_relaxed(&updater.stop, 1);
	pthread_join(updater.thread, NULL);
}

/* ---- measuring ---- */

struct run {
	struct plan *plan;
	struct read_tree tree;
	struct reads inside;
	struct outside outside;
	char leaf[64];
	uint64_t budget_ns;
	uint64_t flush_ns; /* of the last one */
};

static bool wanted(const struct plan *p, const struct state *s, const struct item *i)
{
	bool two = procs_first_cpu() != procs_last_cpu();

	if (i->beside == UPDATER && p->threads == 1)
		return false; /* its thread would use a second slot */
	return (i->everywhere || s->dirty == USUAL_DIRTY) && (i->beside == ALONE || two);
}

static int time_item(struct run *r, struct state *s, size_t item)
{
	static struct timing t;
	const struct item *i = &items[item];
	pid_t poller = 0;
	int err = 0;

	if (i->beside == POLLER) {
		poller = outside_poll(r->tree.path, r->leaf, WAY_ROOT_SET3);
		procs_sleep(2 * NSEC_PER_MSEC); /* it attaches */
		err = poller < 0 ? poller : 0;
	} else if (i->beside == UPDATER) {
		err = updater_start(&r->tree);
	}
	if (err)
		return err;
	if (i->outside) {
		err = outside_time(&r->outside, i->way, r->budget_ns, &t);
	} else {
		way_time(&r->inside, i->way, r->budget_ns, &t);
		err = t.error;
	}
	procs_kill(poller);
	if (i->beside == UPDATER)
		updater_stop();
	for (unsigned k = 0; k < t.count && !err; k++)
		stats_add(&s->ns[item], t.ns[k]);
	s->batch[item] = t.batch;
	return err;
}

/* A flush waits until four times the former's duration have passed; this one finds that they have. */
static int time_flush(struct run *r, struct stats *ns)
{
	uint64_t begin;
	int err;

	procs_sleep(5 * r->flush_ns + NSEC_PER_MSEC);
	begin = clock_ns();
	err = freshet_flush(r->tree.tree);
	r->flush_ns = clock_ns() - begin;
	stats_add(ns, (double)r->flush_ns);
	return err;
}

static int one_round(struct run *r)
{
	struct plan *p = r->plan;
	int err = 0;

	for (int d = 0; d < MAX_DIRTIES && p->dirty[d] && !err; d++) {
		struct state *s = state_of(p, d);

		s->dirty = p->dirty[d];
		err = read_tree_touch(&r->tree, s->dirty, p->threads);
		s->slots = read_tree_slots(&r->tree);
		for (size_t i = 0; i < ITEMS && !err; i++)
			if (wanted(p, s, &items[i]))
				err = time_item(r, s, i);
		if (!err)
			err = time_flush(r, &s->flush);
	}
	return err;
}

static int prepare(struct run *r)
{
	struct plan *p = r->plan;
	int err = read_tree_open(&r->tree, cgroups_temporary(), p->groups, p->backend);

	if (err)
		return err;
	r->inside.view = freshet_view_of(r->tree.tree);
	r->inside.root = r->tree.handle[0].group;
	r->inside.leaf = r->tree.handle[p->groups - 1].group;
	err = freshet_snapshot_new(&r->inside.snapshot);
	if (!err)
		err = read_tree_leaf(&r->tree, r->leaf, sizeof(r->leaf));
	if (!err)
		err = read_tree_touch(&r->tree, p->groups, p->threads);
	if (!err && p->threads > 2)
		err = read_tree_storm(&r->tree, p->threads, STORM_NS);
	if (!err)
		err = freshet_flush(r->tree.tree);
	if (err)
		return err;
	p->group_bytes = (read_tree_bytes(&r->tree) - r->tree.bytes) / (p->groups - 1);
	p->cell_bytes = read_tree_cell(&r->tree);
	p->bytes_slots = read_tree_slots(&r->tree);
	return outside_start(&r->outside, r->tree.path, r->leaf);
}

static int run_plan(struct plan *p, bool quick)
{
	struct run r = { .plan = p,
			 .budget_ns = quick ? NSEC_PER_MSEC : 2 * NSEC_PER_MSEC,
			 .flush_ns = 20 * NSEC_PER_MSEC };
	int err = prepare(&r);

	for (int round = 0; round < (quick ? 9 : 31) && !err; round++)
		err = one_round(&r);
	outside_stop(&r.outside);
	freshet_snapshot_free(r.inside.snapshot);
	read_tree_close(&r.tree);
	return err;
}

/* ---- reporting ---- */

static const char *name_beside(const struct item *i)
{
	if (i->beside == UPDATER)
		return i->way == WAY_LEAF ? "leaf-updated" : "leaf-set3-upd";
	return way_names[i->way];
}

static void report_state(const struct plan *p, struct state *s)
{
	for (size_t i = 0; i <= ITEMS; i++) {
		bool flush = i == ITEMS;
		struct stats *ns = flush ? &s->flush : &s->ns[i];

		if (!ns->count)
			continue;
		report_row();
		report_text("what", flush ? "flush" : name_beside(&items[i]));
		report_text("from", !flush && items[i].outside ? "outside" : "inside");
		report_number("groups", p->groups, 0);
		report_number("dirty", s->dirty, 0);
		report_number("slots", s->slots, 0);
		report_number("pollers", !flush && items[i].beside == POLLER, 0);
		report_number("batch", flush ? 1 : s->batch[i], 0);
		report_number("ns", stats_median(ns), 0);
		report_number("min_ns", stats_min(ns), 0);
		report_number("p99_ns", stats_quantile(ns, 0.99), 0);
	}
}

static void report_memory(const struct plan *p)
{
	report_row();
	report_text("what", "memory");
	report_number("groups", p->groups, 0);
	report_number("slots", p->bytes_slots, 0);
	report_number("bytes_per_group", (double)p->group_bytes, 0);
	report_number("cell_bytes", p->cell_bytes, 0);
}

static void report_bars(struct plan *p)
{
	for (int d = 0; d < MAX_DIRTIES && p->backend == FRESHET_AUTO && p->groups == BIG; d++) {
		struct state *s = state_of(p, d);

		if (s->dirty != USUAL_DIRTY)
			continue;
		report_bar(BAR_BELOW, stats_median(&s->ns[0]), 100 + 10 * s->slots, " ns",
			   "leaf, %u slot%s", s->slots, s->slots == 1 ? "" : "s");
		report_bar(BAR_BELOW, stats_median(&s->ns[2]) / 1000, 10, " us",
			   "root, %u groups, %u dirty, %u slot%s", p->groups, s->dirty, s->slots,
			   s->slots == 1 ? "" : "s");
	}
}

static void report_all(void)
{
	for (size_t i = 0; i < PLANS; i++)
		for (int d = 0; d < MAX_DIRTIES && plans[i].dirty[d]; d++)
			report_state(&plans[i], state_of(&plans[i], d));
	for (size_t i = 0; i < PLANS; i++)
		if (plans[i].groups == BIG)
			report_memory(&plans[i]);
	for (size_t i = 0; i < PLANS; i++)
		report_bars(&plans[i]);
	report_note(
		"leaf, root: freshet_read() of one counter of the group; -set3: of a set of three; "
		"-total: freshet_read_total(), as of the last flush; snapshot: "
		"freshet_snapshot_take(); -updated, -upd: while a thread on the other CPU updates "
		"that very leaf flat out. flush: freshet_flush(), without the wait between two.");
	report_note(
		"dirty: groups updated since the last flush, the leaf among them, each on all "
		"slots "
		"in use (slots; beyond two they are fallback slots). outside: in another process, "
		"attached to the segment. pollers: processes that read the root's set without a "
		"pause on the other CPU.");
	report_note("ns and p99_ns are of batches of `batch` reads, over all rounds; min_ns the "
		    "least of "
		    "them. Groups lie in a tree: root, one tenant for each %u, services.",
		    100u);
	report_note("bytes_per_group: what the segment's file grew by while the groups were made, "
		    "updated "
		    "on all slots and flushed, for each. cell_bytes: of them in a cell, of which "
		    "there is "
		    "one on each slot.");
}

int bench_read(bool quick)
{
	int err = 0;

	procs_pin(0, procs_first_cpu());
	procs_realtime(1);
	for (size_t i = 0; i < PLANS && !err; i++)
		if (plans[i].threads == 1 || procs_first_cpu() != procs_last_cpu())
			err = run_plan(&plans[i], quick);
	procs_realtime(0);
	procs_unpin();
	if (err) {
		fprintf(stderr, "freshet-bench: read: %s\n", strerror(-err));
		return 1;
	}
	report_all();
	return 0;
}
