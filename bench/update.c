/* SPDX-License-Identifier: MIT */
/*
 * The bench `update`: what an update costs, Freshet's and others', on one and two threads, of one
 * counter and of a random one of 1,024, and while readers poll.
 *
 * Contenders take turns within a round, so that what the machine does in the meantime hits all of
 * them; a ratio is one round's, and its median is reported. With pollers, the updater runs without
 * them just before, and that is what it is compared to.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "benches.h"
#include "counters.h"
#include "loops.h"
#include "ours.h"
#include "peer.h"
#include "pollers.h"
#include "procs.h"
#include "report.h"
#include "stats.h"
#include "workers.h"

#define MAX_ENTRIES 16
#define POLLED      5 /* contenders that are polled */

#define PROMETHEUS "prometheus-cpp"

static const unsigned cell_counts[] = { 1, LOOPS_CELLS };
static const unsigned poller_counts[] = { 1, POLLERS_MAX };
static const char *const poll_names[POLLS] = { "own-5k", "other-flat", "own-flat" };

struct result {
	struct stats ns, of_plain, lock_add, prometheus;
	double last; /* of this round */
};

struct entry {
	const char *what, *how;
	const struct contender *contender; /* or the peer */
	struct peer *peer;
	struct result result[WORKERS][2];
};

struct polled {
	const struct contender *contender;
	struct {
		struct stats ns, slower, reads;
	} result[POLLS][2];
};

static struct bench_update {
	struct entry entry[MAX_ENTRIES];
	size_t entries;
	struct polled polled[POLLED];
	size_t polleds;
	struct entry *plain, *lock_add, *prometheus; /* prometheus: or NULL */
	struct peer peer;
	int peer_error;
	int workers;
} b;

static struct entry *add(const struct contender *c)
{
	struct entry *e = &b.entry[b.entries];

	if (!c->one)
		return NULL;
	b.entries++;
	e->what = c->what;
	e->how = c->how;
	e->contender = c;
	return e;
}

static void add_polled(const struct contender *c)
{
	if (c->one)
		b.polled[b.polleds++].contender = c;
}

static void add_all(void)
{
	size_t count;
	const struct contender *c = counters(&count);

	b.plain = add(&c[0]);
	for (int fallback = 0; fallback < 2; fallback++)
		for (int kind = 0; kind < OURS_KINDS; kind++)
			add(ours(fallback, kind));
	for (size_t i = 1; i < count; i++) {
		struct entry *e = add(&c[i]);

		if (e && !strcmp(e->what, "lock-add-private"))
			b.lock_add = e;
	}
	if (!b.peer_error) {
		b.prometheus = &b.entry[b.entries++];
		b.prometheus->what = PROMETHEUS;
		b.prometheus->how =
			"Counter::Increment() on a kept reference that threads share; a "
			"program of its own";
		b.prometheus->peer = &b.peer;
	}
}

static int measure(struct entry *e, unsigned threads, unsigned cells, uint64_t ns, double *ret)
{
	if (e->peer)
		return peer_measure(e->peer, threads, cells, ns, ret);
	*ret = workers_measure(e->contender, threads, cells, ns);
	return 0;
}

/* All contenders in turn. */
static int round_of(unsigned threads, unsigned c, uint64_t ns)
{
	for (size_t i = 0; i < b.entries; i++) {
		struct result *r = &b.entry[i].result[threads - 1][c];
		int err = measure(&b.entry[i], threads, cell_counts[c], ns, &r->last);

		if (err)
			return err;
		stats_add(&r->ns, r->last);
	}
	for (size_t i = 0; i < b.entries; i++) {
		struct result *r = &b.entry[i].result[threads - 1][c];

		stats_add(&r->of_plain, r->last / b.plain->result[threads - 1][c].last);
		stats_add(&r->lock_add, b.lock_add->result[threads - 1][c].last / r->last);
		if (b.prometheus)
			stats_add(&r->prometheus,
				  b.prometheus->result[threads - 1][c].last / r->last);
	}
	return 0;
}

static int polled_round(struct polled *p, uint64_t ns)
{
	for (int poll = 0; poll < POLLS; poll++) {
		for (int n = 0; n < 2; n++) {
			double alone = workers_measure(p->contender, 1, 1, ns), with, reads;
			int err = pollers_start(p->contender, poll, poller_counts[n]);

			if (err)
				return err;
			with = workers_measure(p->contender, 1, 1, ns);
			err = pollers_stop(&reads);
			if (err)
				return err;
			stats_add(&p->result[poll][n].ns, with);
			stats_add(&p->result[poll][n].slower, (with / alone - 1) * 100);
			stats_add(&p->result[poll][n].reads, reads);
		}
	}
	return 0;
}

static int measure_all(bool quick)
{
	const int rounds = quick ? 15 : 41, polled_rounds = quick ? 11 : 31;
	const uint64_t ns = (quick ? 4 : 10) * NSEC_PER_MSEC;
	const uint64_t polled_ns = 10 * NSEC_PER_MSEC;
	int err = 0;

	for (int round = 0; round < rounds && !err; round++)
		for (unsigned threads = 1; threads <= (unsigned)b.workers && !err; threads++)
			for (unsigned c = 0; c < 2 && !err; c++)
				err = round_of(threads, c, ns);
	if (b.workers == 1)
		return err;
	for (int round = 0; round < polled_rounds && !err; round++)
		for (size_t i = 0; i < b.polleds && !err; i++)
			err = polled_round(&b.polled[i], polled_ns);
	return err;
}

static void report_ns(const char *what, unsigned threads, unsigned cells, unsigned pollers)
{
	report_row();
	report_text("what", what);
	report_number("threads", threads, 0);
	report_number("cells", cells, 0);
	report_number("pollers", pollers, 0);
}

static void report_rows(void)
{
	for (unsigned t = 0; t < (unsigned)b.workers; t++) {
		for (unsigned c = 0; c < 2; c++) {
			for (size_t i = 0; i < b.entries; i++) {
				struct result *r = &b.entry[i].result[t][c];

				report_ns(b.entry[i].what, t + 1, cell_counts[c], 0);
				report_number("ns", stats_median(&r->ns), 2);
				report_number("min_ns", stats_min(&r->ns), 2);
				report_number("spread_pct", stats_spread(&r->ns), 1);
				report_number("of_plain", stats_median(&r->of_plain), 2);
				report_number("lock_add_x", stats_median(&r->lock_add), 2);
				if (b.prometheus)
					report_number("prometheus_x", stats_median(&r->prometheus),
						      2);
			}
		}
	}
	for (size_t i = 0; i < b.polleds && b.workers > 1; i++) {
		for (int poll = 0; poll < POLLS; poll++) {
			for (int n = 0; n < 2; n++) {
				struct stats *ns = &b.polled[i].result[poll][n].ns;

				report_ns(b.polled[i].contender->what, 1, 1, poller_counts[n]);
				report_text("poll", poll_names[poll]);
				report_number("ns", stats_median(ns), 2);
				report_number("min_ns", stats_min(ns), 2);
				report_number("spread_pct", stats_spread(ns), 1);
				report_number("slower_pct",
					      stats_median(&b.polled[i].result[poll][n].slower), 1);
				report_number("reads_s",
					      stats_median(&b.polled[i].result[poll][n].reads), 0);
			}
		}
	}
}

static void report_speed_bars(void)
{
	static const double limit[OURS_KINDS] = { 1.2, 3, 4 };
	struct entry *single = NULL;

	for (size_t i = 0; i < b.entries; i++) {
		for (int kind = 0; kind < OURS_KINDS; kind++) {
			if (b.entry[i].contender != ours(0, kind))
				continue;
			for (int t = 0; t < b.workers; t++)
				report_bar(BAR_BELOW, stats_median(&b.entry[i].result[t][0].ns),
					   limit[kind], " ns", "%s, one cell, %s", b.entry[i].what,
					   t ? "two threads" : "one thread");
			if (kind == OURS_SINGLE)
				single = &b.entry[i];
		}
	}
	if (!single)
		return;
	report_bar(BAR_AT_LEAST, stats_median(&single->result[0][0].lock_add), 4, "x",
		   "rseq-single faster than lock-add-private");
	if (b.prometheus)
		report_bar(BAR_AT_LEAST, stats_median(&single->result[0][0].prometheus), 5, "x",
			   "rseq-single faster than prometheus-cpp");
}

static void report_polled_bars(void)
{
	for (size_t i = 0; i < b.polleds && b.workers > 1; i++) {
		for (int poll = 0; poll <= POLL_OTHER_FLAT; poll++) {
			double worst = -100;

			if (b.polled[i].contender != ours(0, OURS_SINGLE) &&
			    b.polled[i].contender != ours(0, OURS_SET3) &&
			    b.polled[i].contender != ours(0, OURS_HISTOGRAM))
				continue;
			for (int n = 0; n < 2; n++) {
				double slower = stats_median(&b.polled[i].result[poll][n].slower);

				worst = slower > worst ? slower : worst;
			}
			report_bar(BAR_BELOW, worst, 5, " %",
				   "%s slower, polled %s, 1 and 100 pollers",
				   b.polled[i].contender->what, poll_names[poll]);
		}
	}
}

static void report_notes(void)
{
	for (size_t i = 0; i < b.entries; i++)
		report_note("%s: %s.", b.entry[i].what, b.entry[i].how);
	for (size_t i = 0; counters_missing(i); i++)
		report_note("Missing: %s.", counters_missing(i));
	if (b.peer_error)
		report_note("Missing: " PROMETHEUS ": no freshet-bench-" PROMETHEUS
			    " beside this program (%s). It is built where prometheus-cpp and a C++ "
			    "compiler are, and not installed.",
			    strerror(-b.peer_error));
	report_note("Medians of %zu rounds (with pollers %zu), in which contenders took turns; the "
		    "spread is that of the quartiles. of_plain, lock_add_x, prometheus_x: how many "
		    "times plain's time it takes, and how many times faster than lock-add-private "
		    "and prometheus-cpp it is, medians of the rounds' ratios.",
		    b.plain->result[0][0].ns.count, b.polled[0].result[0][0].ns.count);
	report_note("One cell: its handle is in a local variable. 1,024: a random one each time, "
		    "by the same generator for all, handles in an array; nothing is subtracted.");
	report_note(
		"Pollers: threads on the other CPU. own-5k: the updated group, %u reads a second "
		"in all; other-flat: other groups without a pause, a single poller the group made "
		"next to it; own-flat: the updated group without a pause.",
		POLL_RATE);
	report_note(
		"slower_pct: than without pollers just before. own-flat slows down plain, too: "
		"the cache line travels. (Polling plain, its own is read by one load, others lie "
		"on other lines.)");
	if (b.workers == 1)
		report_note("One CPU: no second thread and no pollers.");
}

int bench_update(bool quick)
{
	int err;

	b.peer_error = peer_start(&b.peer, "freshet-bench-" PROMETHEUS);
	err = ours_open();
	if (err)
		goto out;
	b.workers = workers_begin();
	if (b.workers < 0) {
		err = b.workers;
		goto out;
	}
	add_all();
	add_polled(b.plain->contender);
	for (int kind = 0; kind < OURS_KINDS; kind++)
		add_polled(ours(0, kind));
	add_polled(ours(1, OURS_SINGLE));
	err = measure_all(quick);
	workers_end();
	if (!err) {
		report_rows();
		report_speed_bars();
		report_polled_bars();
		report_notes();
	}
out:
	if (err)
		fprintf(stderr, "freshet-bench: update: %s\n", strerror(-err));
	peer_stop(&b.peer);
	ours_close();
	return err ? 1 : 0;
}
