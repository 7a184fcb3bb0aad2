/* SPDX-License-Identifier: MIT */
/* Implements designs_summary.h. */
#include "designs_summary.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "designs_races.h"
#include "designs_run.h"
#include "report.h"
#include "stats.h"

#define LINE 310 /* of a note; most there can be */
#define ONE  120

static unsigned configurations;
static struct stats spread; /* of update_ns, per cent */

double outcome_reads_per_s(const struct outcome *o)
{
	return (double)o->live.own.count * 1e9 / (double)o->live.own_ns;
}

/* ---- who is best ---- */

static double update_ns(const struct outcome *o)
{
	return o->update_ns;
}

static double flush_us(const struct outcome *o)
{
	return o->flush_us;
}

static double read_p50(const struct outcome *o)
{
	return tails_quantile(&o->live.own, 0.5);
}

static double read_p99(const struct outcome *o)
{
	return tails_quantile(&o->live.own, 0.99);
}

static double pause_of_reads(const struct outcome *o)
{
	return 1 / outcome_reads_per_s(o);
}

static double slowdown(const struct outcome *o)
{
	return o->slowdown_pct;
}

/* The least is the best; NAN is none. */
static const struct metric {
	const char *what;
	double (*of)(const struct outcome *o);
} metrics[] = {
	{ "update_ns", update_ns },        { "flush_us", flush_us },
	{ "read_p50_ns", read_p50 },       { "read_p99_ns", read_p99 },
	{ "reads_per_s", pause_of_reads }, { "updater_slowdown_pct", slowdown },
};
_Static_assert(sizeof(metrics) / sizeof(metrics[0]) == SUMMARY_METRICS, "designs_entry.sum.best");

static void add_best(struct designs_entry *entry, const struct outcome *outcome, unsigned count)
{
	for (unsigned m = 0; m < SUMMARY_METRICS; m++) {
		double least = (double)INFINITY;
		unsigned best = count;

		for (unsigned i = 0; i < count; i++) {
			const double is = metrics[m].of(&outcome[i]);

			if (is < least) {
				least = is;
				best = i;
			}
		}
		if (best < count)
			entry[best].sum.best[m]++;
	}
}

void summary_add(struct designs_entry *entry, const struct outcome *outcome, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const struct outcome *o = &outcome[i];
		struct designs_entry *e = &entry[i];

		if (!configurations)
			e->sum.most_blocked_ms = (double)NAN;
		e->sum.stale += o->live.stale;
		e->sum.torn += o->live.torn;
		if (o->live.torn_max_skew > e->sum.torn_max_skew)
			e->sum.torn_max_skew = o->live.torn_max_skew;
		e->sum.backwards += o->live.backwards;
		e->sum.lost += o->live.lost;
		e->sum.excess += o->live.excess;
		e->sum.reads += o->live.checked;
		e->sum.updates += o->live.updates;
		e->sum.most_blocked_ms = fmax(e->sum.most_blocked_ms, o->blocked_ms);
		stats_add(&spread, o->update_spread);
	}
	add_best(entry, outcome, count);
	configurations++;
}

/* "4", "12.3 k", "2.8 M" */
static const char *short_number(uint64_t n, char *ret, size_t size)
{
	if (n >= 1000000)
		snprintf(ret, size, "%.1f M", (double)n / 1e6);
	else if (n >= 10000)
		snprintf(ret, size, "%.1f k", (double)n / 1e3);
	else
		snprintf(ret, size, "%llu", (unsigned long long)n);
	return ret;
}

/* "NAME 3 (2.8 M of 3.8 M reads stale)": none is named without what is wrong with its reads. */
static void print_best(const struct designs_entry *e, unsigned configs, char *ret, size_t size)
{
	char stale[24], torn[24], reads[24];

	short_number(e->sum.stale, stale, sizeof(stale));
	short_number(e->sum.torn, torn, sizeof(torn));
	short_number(e->sum.reads, reads, sizeof(reads));
	if (e->sum.stale && e->sum.torn)
		snprintf(ret, size, "%s %u (of %s reads %s stale, %s torn)", e->design->name,
			 configs, reads, stale, torn);
	else if (e->sum.stale || e->sum.torn)
		snprintf(ret, size, "%s %u (%s of %s reads %s)", e->design->name, configs,
			 e->sum.stale ? stale : torn, reads, e->sum.stale ? "stale" : "torn");
	else
		snprintf(ret, size, "%s %u", e->design->name, configs);
}

static void note_best_at(const struct designs_entry *entry, unsigned count, unsigned metric)
{
	const char *what = metrics[metric].what;
	char line[LINE], one[ONE];
	size_t len = (size_t)snprintf(line, sizeof(line),
				      "Best %s, in how many of %u "
				      "configurations:",
				      what, configurations);
	const size_t head = len;

	for (unsigned i = 0; i < count; i++) {
		if (!entry[i].sum.best[metric])
			continue;
		print_best(&entry[i], entry[i].sum.best[metric], one, sizeof(one));
		if (len + strlen(one) + 3 > sizeof(line)) {
			report_note("%s;", line);
			len = (size_t)snprintf(line, sizeof(line), "Best %s, too:", what);
		}
		len += (size_t)snprintf(line + len, sizeof(line) - len, "%s %s",
					line[len - 1] == ':' ? "" : ",", one);
	}
	report_note("%s%s", line, len == head ? " none." : ".");
}

static void note_best(const struct designs_entry *entry, unsigned count)
{
	for (unsigned m = 0; m < SUMMARY_METRICS; m++)
		note_best_at(entry, count, m);
}

/* ---- bars, and what is expected of others ---- */

typedef void (*reporter)(enum report_bar kind, double value, double limit, const char *unit,
			 const char *what, ...);

static bool is_ours(const struct bench_design *d)
{
	return !strncmp(d->name, "freshet", strlen("freshet"));
}

/* Reads and updates that break what the design promises. */
static double broken(const struct designs_entry *e)
{
	const unsigned promises = e->design->promises;
	uint64_t sum = 0;

	sum += promises & DESIGN_EXACT ? e->sum.lost + e->sum.excess : 0;
	sum += promises & DESIGN_FRESH ? e->sum.stale : 0;
	sum += promises & DESIGN_WHOLE ? e->sum.torn : 0;
	sum += promises & DESIGN_MONOTONE ? e->sum.backwards : 0;
	return (double)sum;
}

static void report_bars(const struct designs_entry *e)
{
	const char *name = e->design->name;
	const reporter report = is_ours(e->design) ? report_bar : report_check;

	report(BAR_BELOW, broken(e), 1, "", "%s: reads and sums against its promises", name);
	if (e->design->lacks & DESIGN_WHOLE)
		report_check(BAR_AT_LEAST, (double)e->sum.torn, 1, "", "%s: torn reads", name);
	if (e->design->lacks & DESIGN_FRESH)
		report_check(BAR_AT_LEAST, (double)e->sum.stale, 1, "", "%s: stale reads", name);
	if (isnan(e->sum.most_blocked_ms))
		return;
	if (e->design->lacks & DESIGN_UNBLOCKED)
		report_check(BAR_AT_LEAST, e->sum.most_blocked_ms, 90, " ms",
			     "%s: a read, flusher stopped for 100 ms", name);
	if (e->design->promises & DESIGN_UNBLOCKED)
		report(BAR_BELOW, e->sum.most_blocked_ms, 5, " ms",
		       "%s: a read, flusher stopped for 100 ms", name);
}

/* ---- notes ---- */

static void note_designs(const struct designs_entry *e)
{
	report_note(
		"%s: %s. %.0f lines of code. %llu reads checked beside %llu updates: stale %llu, "
		"torn %llu (by %llu at most), lost %llu, backwards %llu.",
		e->design->name, e->design->models, e->loc, (unsigned long long)e->sum.reads,
		(unsigned long long)e->sum.updates, (unsigned long long)e->sum.stale,
		(unsigned long long)e->sum.torn, (unsigned long long)e->sum.torn_max_skew,
		(unsigned long long)e->sum.lost, (unsigned long long)e->sum.backwards);
}

static void note_races(const struct designs_entry *e)
{
	if (e->races_error == -EOPNOTSUPP)
		report_note("ThreadSanitizer off | on: %-18s %7.2f | -, as it cannot see into "
			    "restartable sequences",
			    e->design->name, e->tsan_off);
	else if (e->races_error)
		report_note("ThreadSanitizer off | on: %-18s %7.2f | - (%s)", e->design->name,
			    e->tsan_off,
			    e->races_error == -ENOENT ? "no " RACES_PROGRAM " was built"
						      : strerror(-e->races_error));
	else
		report_note("ThreadSanitizer off | on | ratio: %-18s %7.2f | %7.2f | %5.1f",
			    e->design->name, e->tsan_off, e->tsan_on, e->tsan_on / e->tsan_off);
}

static void note_updates_and_flushes(void)
{
	report_note("update_ns: %u updates in a row on a slot below the number of CPUs, a loop "
		    "without a call, after a round over the leaves that is not timed; without "
		    "entering the slot. Median; mean of the threads; no reader, no flush. The "
		    "turns' quartiles are %.1f %% apart (median of all).",
		    RUN_BATCH, stats_median(&spread));
	report_note("flush_us: CPU time of one flush of the root after every leaf was updated on "
		    "every slot; median. hold_max_us: the longest that a lock was held in one; "
		    "median of the flushes; -: there is no lock that holds readers up.");
}

static void note_reads(void)
{
	report_note("Reads: `threads` threads, each polling its own owner without a pause, each "
		    "read timed. Beside them, on the same CPUs, one thread updates all leaves on "
		    "all slots and one flushes the root up to %u times a second: read_max_us has "
		    "time slices in it. All this at nice -15 where allowed, before what else runs.",
		    LIVE_FLUSHES_S);
	report_note("stale, torn, backwards, excess: counted in each of those reads and of others, "
		    "of the root in turn with owners, before each of which its reader updates its "
		    "owner. lost: at the end, at rest and flushed. torn_max_skew: by how many "
		    "updates two counters of a set differed.");
	report_note(
		"With 2 threads, 4 owners, 2 slots and sets of 16 the root is polled longer by "
		"all, and for up to 2 s by who is said to give torn or stale reads, until there "
		"were %u of each: when one is seen is luck, that there are some is not.",
		LIVE_ENOUGH);
}

static void note_polling(void)
{
	report_note("updater_slowdown_pct: of a thread that updates all leaves on one slot, while "
		    "one owner is polled without a pause on another CPU, against alone: where "
		    "readers look at cells, cache lines travel. others_slowdown_pct: of one that "
		    "updates the other owners.");
	report_note(
		"Plot of pollers: from two on they are ordinary threads, which can be interrupted "
		"with a slot's lock held; the updater then waits for them.");
	report_note("other_read_p99_ns: reads of another owner, both being updated, while one is "
		    "polled without a pause; other_alone_p99_ns: while nobody polls.");
	report_note("blocked_ms: the longest read on another CPU while a flusher of the root was "
		    "stopped for 100 ms at a random moment inside a flush; in some configurations. "
		    "What a slot's own lock holds up counts, too.");
}

void summary_report(const struct designs_entry *entry, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		report_bars(&entry[i]);
	note_best(entry, count);
	for (unsigned i = 0; i < count; i++)
		note_designs(&entry[i]);
	report_note("Lines of code: without blank ones and comments, with what a design shares "
		    "with others (bench/designs/rstat.c, locked.c); freshet's are the engine, the "
		    "parts of src/core that update, flush and read, and the inline sequences.");
	for (unsigned i = 0; i < count; i++)
		note_races(&entry[i]);
	report_note("Those are seconds of CPU time for 1M reads by one of %u readers polling %u "
		    "owners; "
		    "tsan_races: the data races that were reported meanwhile, each pair of stacks "
		    "once.",
		    RACES_READERS, RACES_OWNERS);
	note_updates_and_flushes();
	note_reads();
	note_polling();
}
