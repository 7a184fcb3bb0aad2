/* SPDX-License-Identifier: MIT */
/*
 * The bench `designs`: every design of bench/designs/ in the same configurations, of which all designs
 * take one before the next, so that what else happens here hits them alike.
 *
 * The whole has a deadline, of which each design in each configuration gets an equal share: on a machine
 * that is too busy, turns are left out but for the first of each kind, and no configuration.
 *
 * A configuration's phases, each with all of its threads to itself: live checks (designs_live.h), which
 * come first as they keep books from zero; updates, flushes, polling beside them (designs_run.h); in
 * some, stopped flushers (designs_stop.h). Races are looked for before (designs_races.h).
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "benches.h"
#include "designs_live.h"
#include "designs_loc.h"
#include "designs_races.h"
#include "designs_run.h"
#include "designs_stop.h"
#include "designs_summary.h"
#include "procs.h"
#include "report.h"

#define PARK_MS 100u /* for blocked_ms */
#define NICE    (-15)

static const unsigned all_threads[] = { 1, 2, 8 }, all_owners[] = { 4, 300 },
		      all_slots[] = { 2, 64, 256 }, all_sets[] = { 1, 3, 16 };
#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* What the plots show; the first of the quick run's configurations. */
static const struct config corners[] = {
	{ 8, 300, 64, 3 },
	{ 2, 4, 2, 16 },
	{ 8, 300, 256, 16 },
};

/* How long and how often. */
static const struct plan {
	unsigned update_turns, flushes, polled_turns, parks;
	uint64_t own_ns, root_ns, search_ns, polled_ns, races_ns;
	uint64_t all_ns; /* at most, if the machine allows */
} quick_plan = {
	.update_turns = 5,
	.flushes = 3,
	.polled_turns = 5,
	.parks = 4,
	.own_ns = 200 * NSEC_PER_MSEC,
	.root_ns = 130 * NSEC_PER_MSEC,
	.search_ns = 400 * NSEC_PER_MSEC,
	.polled_ns = 2 * NSEC_PER_MSEC,
	.races_ns = 300 * NSEC_PER_MSEC,
	.all_ns = 38 * NSEC_PER_SEC,
}, full_plan = {
	.update_turns = 9,
	.flushes = 5,
	.polled_turns = 9,
	.parks = 5,
	.own_ns = 300 * NSEC_PER_MSEC,
	.root_ns = 150 * NSEC_PER_MSEC,
	.search_ns = 1 * NSEC_PER_SEC,
	.polled_ns = 4 * NSEC_PER_MSEC,
	.races_ns = 3 * NSEC_PER_SEC,
	.all_ns = 690 * NSEC_PER_SEC,
};
static struct plan plan;

static struct {
	uint64_t deadline;
	unsigned shares_left;
	uint64_t share_ns, share_end; /* of what is measured now */
	unsigned cut;                 /* how often turns were left out */
} budget;

static struct designs_entry entry[DESIGNS_MAX];
static unsigned entries;
static struct designs_tree tree;
static bool two_cpus;

static bool same(const struct config *a, const struct config *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* ---- time ---- */

#define SEARCH_MOST (2 * NSEC_PER_SEC)

/* Where plots are measured, too, it takes twice as long. */
static unsigned shares(const struct config *c)
{
	return same(c, &corners[0]) ? 2 : 1;
}

static void begin_share(const struct config *c)
{
	const uint64_t now = clock_ns();
	const uint64_t left = now < budget.deadline ? budget.deadline - now : 0;

	budget.share_ns = left * shares(c) / budget.shares_left;
	budget.share_end = now + budget.share_ns;
	budget.shares_left -= shares(c);
}

/* Whether turn i is still made: at least the first is. */
static bool in_time(unsigned i)
{
	if (i == 0 || clock_ns() < budget.share_end)
		return true;
	budget.cut++;
	return false;
}

static uint64_t at_most(uint64_t ns, uint64_t most)
{
	return ns < most ? ns : most;
}

/*
 * In the small configuration with large sets, where it is likeliest, one looks for torn and stale reads:
 * for search_ns with a design that promises neither shows, for up to SEARCH_MOST with one that lacks
 * that, until it was seen.
 */
static struct live_times live_times(const struct bench_design *design, const struct config *c)
{
	struct live_times t = {
		.own_ns = at_most(plan.own_ns, budget.share_ns / 3 + 20 * NSEC_PER_MSEC),
		.root_ns = at_most(plan.root_ns, budget.share_ns / 6 + 20 * NSEC_PER_MSEC),
	};

	if (!same(c, &corners[1]))
		return t;
	if (design->lacks & (DESIGN_FRESH | DESIGN_WHOLE))
		t.most_ns = SEARCH_MOST;
	else
		t.root_ns = at_most(plan.search_ns, budget.share_ns / 3 + 20 * NSEC_PER_MSEC);
	return t;
}

/* ---- one design in one configuration ---- */

static int measure_updates(const struct config *c, struct outcome *o)
{
	struct stats ns = { .count = 0 };
	int err = 0;

	for (unsigned i = 0; i < plan.update_turns && in_time(i) && !err; i++) {
		double turn;

		err = run_updates(&tree, c->threads, &turn);
		if (!err)
			stats_add(&ns, turn);
	}
	o->update_ns = stats_median(&ns);
	o->update_spread = stats_spread(&ns);
	return err;
}

static int measure_flushes(struct outcome *o)
{
	struct stats cpu_us = { .count = 0 }, hold_us = { .count = 0 };
	int err = 0;

	procs_realtime(1);
	for (unsigned i = 0; i < plan.flushes && in_time(i) && !err; i++) {
		double cpu, hold;

		err = run_flush(&tree, &cpu, &hold);
		if (!err)
			stats_add(&cpu_us, cpu);
		if (!err && !isnan(hold))
			stats_add(&hold_us, hold);
	}
	procs_realtime(0);
	o->flush_us = stats_median(&cpu_us);
	o->hold_us = hold_us.count ? stats_median(&hold_us) : (double)NAN;
	return err;
}

/* How much slower updates of all owners, or of the others, are while one is polled. */
static int measure_slowdown(bool others, struct stats *pct)
{
	double without = 0, with = 0;
	int err = run_polled(&tree, 0, others, plan.polled_ns, &without);

	if (!err)
		err = run_polled(&tree, 1, others, plan.polled_ns, &with);
	if (!err)
		stats_add(pct, (without / with - 1) * 100);
	return err;
}

static int measure_polled(struct outcome *o)
{
	static struct tails alone, beside;
	struct stats all = { .count = 0 }, others = { .count = 0 };
	int err = 0;

	memset(&alone, 0, sizeof(alone));
	memset(&beside, 0, sizeof(beside));
	o->slowdown_pct = o->others_slowdown_pct = (double)NAN;
	o->other_p99 = o->other_alone_p99 = (double)NAN;
	if (!two_cpus)
		return 0;
	procs_realtime(1);
	for (unsigned i = 0; i < plan.polled_turns && in_time(i) && !err; i++) {
		err = measure_slowdown(false, &all);
		if (!err)
			err = measure_slowdown(true, &others);
		if (!err)
			err = run_other(&tree, 0, plan.polled_ns, &alone);
		if (!err)
			err = run_other(&tree, 1, plan.polled_ns, &beside);
	}
	procs_realtime(0);
	o->slowdown_pct = stats_median(&all);
	o->others_slowdown_pct = stats_median(&others);
	o->other_p99 = tails_quantile(&beside, 0.99);
	o->other_alone_p99 = tails_quantile(&alone, 0.99);
	return err;
}

static int measure_stopped(struct outcome *o)
{
	uint64_t longest;
	int err = stop_run(&tree, PARK_MS * NSEC_PER_MSEC, plan.parks, &longest);

	if (!err)
		o->blocked_ms = (double)longest / NSEC_PER_MSEC;
	return err == -ETIMEDOUT ? 0 : err; /* it could not be had */
}

static bool is_corner(const struct config *c)
{
	for (size_t i = 0; i < LENGTH(corners); i++)
		if (same(c, &corners[i]))
			return true;
	return false;
}

/* ---- what plots show ---- */

static void plot_latency(const struct designs_entry *e, const struct tails *t)
{
	static const double share[] = { 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999 };
	double x[LENGTH(share)], y[LENGTH(share)];

	for (size_t i = 0; i < LENGTH(share); i++) {
		x[i] = 1 / (1 - share[i]);
		/* Of ten slower ones at least. */
		y[i] = (double)t->count * (1 - share[i]) >= 10 ? tails_quantile(t, share[i])
							       : (double)NAN;
	}
	report_line("read-latency", e->design->name, x, y, LENGTH(share));
}

static int plot_pollers(const struct designs_entry *e)
{
	static const double pollers[] = { 0, 1, 2, 4, 8 };
	static struct stats rate[LENGTH(pollers)];
	double y[LENGTH(pollers)];
	int err = 0;

	memset(rate, 0, sizeof(rate));
	procs_realtime(1);
	for (unsigned turn = 0; turn < 5 && in_time(turn); turn++) {
		for (size_t i = 0; i < LENGTH(pollers) && !err; i++) {
			err = run_polled(&tree, (unsigned)pollers[i], false, 2 * plan.polled_ns,
					 &y[i]);
			stats_add(&rate[i], y[i]);
		}
	}
	procs_realtime(0);
	for (size_t i = 0; i < LENGTH(pollers); i++)
		y[i] = stats_median(&rate[i]);
	if (!err)
		report_line("pollers", e->design->name, pollers, y, LENGTH(pollers));
	return err;
}

/* The longest stop is the row's. */
static int plot_stopped(const struct designs_entry *e, double blocked_ms)
{
	static const double ms[] = { 1, 3, 10, 30, PARK_MS };
	double y[LENGTH(ms)];
	int err = 0;

	y[LENGTH(ms) - 1] = blocked_ms;
	for (size_t i = 0; i + 1 < LENGTH(ms) && !err; i++) {
		uint64_t longest = 0;

		err = stop_run(&tree, (uint64_t)ms[i] * NSEC_PER_MSEC, in_time(1) ? plan.parks : 1,
			       &longest);
		y[i] = err ? (double)NAN : (double)longest / NSEC_PER_MSEC;
		err = err == -ETIMEDOUT ? 0 : err;
	}
	if (!err)
		report_line("stopped-flusher", e->design->name, ms, y, LENGTH(ms));
	return err;
}

static int plots(const struct designs_entry *e, const struct outcome *o)
{
	int err;

	plot_latency(e, &o->live.own);
	if (!two_cpus)
		return 0;
	err = plot_pollers(e);
	return err ? err : plot_stopped(e, o->blocked_ms);
}

/* ---- rows ---- */

static const char *const group_keys[] = { "threads", "owners", "slots", "set_size", NULL };
static const char *const cost_keys[] = { "design",      "update_ns",   "flush_us",
					 "hold_max_us", "read_p50_ns", "read_p99_ns",
					 "read_max_us", "reads_per_s", NULL };
static const char *const wrong_keys[] = { "design",    "checked_reads", "stale",
					  "torn",      "torn_max_skew", "lost",
					  "backwards", "excess",        "blocked_ms",
					  NULL };
static const char *const beside_keys[] = { "design",
					   "updater_slowdown_pct",
					   "others_slowdown_pct",
					   "other_read_p99_ns",
					   "other_alone_p99_ns",
					   NULL };
static const struct report_table tables[] = {
	{ "what it costs", cost_keys },
	{ "what is wrong with reads, and how long one waited for a stopped flusher", wrong_keys },
	{ "what polling does to others", beside_keys },
};

static void report_outcome(const struct designs_entry *e, const struct config *c,
			   const struct outcome *o)
{
	const struct live *l = &o->live;

	report_row();
	report_text("design", e->design->name);
	report_text("backend", e->design->backend);
	report_number("threads", c->threads, 0);
	report_number("owners", c->owners, 0);
	report_number("slots", c->slots, 0);
	report_number("set_size", c->set_size, 0);
	report_number("update_ns", o->update_ns, 2);
	report_number("flush_us", o->flush_us, 1);
	report_number("hold_max_us", o->hold_us, 1);
	report_number("read_p50_ns", tails_quantile(&l->own, 0.5), 0);
	report_number("read_p99_ns", tails_quantile(&l->own, 0.99), 0);
	report_number("read_max_us", (double)l->own.max / 1e3, 1);
	report_number("reads_per_s", outcome_reads_per_s(o), 0);
	report_number("stale", (double)l->stale, 0);
	report_number("torn", (double)l->torn, 0);
	report_number("torn_max_skew", (double)l->torn_max_skew, 0);
	report_number("lost", (double)l->lost, 0);
	report_number("backwards", (double)l->backwards, 0);
	report_number("blocked_ms", o->blocked_ms, 3);
	report_number("updater_slowdown_pct", o->slowdown_pct, 1);
	report_number("tsan_races", e->races, 0);
	report_number("loc", e->loc, 0);
	report_number("excess", (double)l->excess, 0);
	report_number("checked_reads", (double)l->checked, 0);
	report_number("update_spread_pct", o->update_spread, 1);
	report_number("others_slowdown_pct", o->others_slowdown_pct, 1);
	report_number("other_read_p99_ns", o->other_p99, 0);
	report_number("other_alone_p99_ns", o->other_alone_p99, 0);
	report_number("tsan_off_s", e->tsan_off, 3);
	report_number("tsan_on_s", e->tsan_on, 3);
}

static int measure(struct designs_entry *e, const struct config *c, struct outcome *o)
{
	const struct live_times times = live_times(e->design, c);
	int err = designs_tree_open(&tree, e->design, c->owners, c->slots, c->set_size);

	memset(o, 0, sizeof(*o));
	o->blocked_ms = (double)NAN;
	if (err)
		return err;
	err = live_run(&tree, c->threads, &times, &o->live);
	if (!err)
		err = measure_updates(c, o);
	if (!err)
		err = measure_polled(o);
	if (!err && is_corner(c) && two_cpus)
		err = measure_stopped(o);
	if (!err && same(c, &corners[0]))
		err = plots(e, o);
	if (!err)
		err = measure_flushes(o); /* from here on locks are timed, which takes time */
	designs_tree_close(&tree);
	if (!err)
		report_outcome(e, c, o);
	return err;
}

/* ---- all of them ---- */

static int run_config(const struct config *c)
{
	static struct outcome outcome[DESIGNS_MAX];

	for (unsigned i = 0; i < entries; i++) {
		int err;

		begin_share(c);
		err = measure(&entry[i], c, &outcome[i]);
		if (err) {
			fprintf(stderr,
				"freshet-bench: designs: %s, %u threads, %u owners, "
				"%u slots, sets of %u: %s\n",
				entry[i].design->name, c->threads, c->owners, c->slots, c->set_size,
				strerror(-err));
			return err;
		}
	}
	summary_add(entry, outcome, entries);
	return 0;
}

static int run_all(void)
{
	int err = 0;

	budget.shares_left =
		(LENGTH(all_owners) * LENGTH(all_slots) * LENGTH(all_sets) * LENGTH(all_threads) +
		 1) *
		entries;
	for (size_t o = 0; o < LENGTH(all_owners); o++)
		for (size_t s = 0; s < LENGTH(all_slots); s++)
			for (size_t k = 0; k < LENGTH(all_sets); k++)
				for (size_t t = 0; t < LENGTH(all_threads) && !err; t++) {
					const struct config c = { all_threads[t], all_owners[o],
								  all_slots[s], all_sets[k] };

					err = run_config(&c);
				}
	return err;
}

static int run_corners(void)
{
	int err = 0;

	budget.shares_left = (LENGTH(corners) + 1) * entries;
	for (size_t i = 0; i < LENGTH(corners) && !err; i++)
		err = run_config(&corners[i]);
	return err;
}

/* Those that can run here, and what is to be known of each before. */
static int find_designs(void)
{
	int err = 0;

	for (unsigned i = 0; bench_designs[i] && !err; i++) {
		struct designs_entry *e = &entry[entries];
		struct races races;

		*e = (struct designs_entry){ .design = bench_designs[i] };
		err = races_plain(e->design, plan.races_ns / 2, &e->tsan_off);
		if (err == -EOPNOTSUPP) {
			report_note("Left out, as this machine cannot run it: %s.",
				    e->design->name);
			err = 0;
			continue;
		}
		e->loc = designs_loc(e->design->name);
		e->races_error = races_run(e->design->name, plan.races_ns, &races);
		e->races = e->races_error ? (double)NAN : races.reports;
		e->tsan_on = e->races_error ? (double)NAN : races.seconds_per_1m;
		if (err)
			fprintf(stderr, "freshet-bench: designs: %s: %s\n", e->design->name,
				strerror(-err));
		if (++entries == DESIGNS_MAX)
			break;
	}
	return err;
}

int bench_all_designs(bool quick)
{
	int err;

	plan = quick ? quick_plan : full_plan;
	budget.deadline = clock_ns() + plan.all_ns;
	/* What else runs here has to wait, where that is allowed; all threads and programs inherit it. */
	setpriority(PRIO_PROCESS, 0, NICE);
	two_cpus = procs_first_cpu() != procs_last_cpu();
	tails_begin();
	err = find_designs();
	procs_pin(0, procs_first_cpu());
	if (!err)
		err = quick ? run_corners() : run_all();
	procs_unpin();
	if (err)
		return 1;
	report_tables(group_keys, tables, LENGTH(tables));
	if (budget.cut)
		report_note("To end in time, turns were left out %u times: the medians then are of "
			    "fewer, or of one.",
			    budget.cut);
	summary_report(entry, entries);
	return 0;
}
