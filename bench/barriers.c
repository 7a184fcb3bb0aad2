/* SPDX-License-Identifier: MIT */
/*
 * The bench `barriers`: what a fence, an atomic addition, masking and nothing cost, in user space on
 * the library's own lookup path and in the kernel.
 *
 * Turns are short, and the base is measured before and after each: what an operation adds is the
 * turn's time minus the mean of the two, so that what the machine does for longer than a turn cancels
 * out. Medians over all rounds.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "barriers.h"
#include "base/clock.h"
#include "benches.h"
#include "cgroups.h"
#include "procs.h"
#include "report.h"
#include "stats.h"

#define MAX_LIST 24
#define PAUSE_NS (200 * NSEC_PER_USEC) /* in each round others may run, whom we run before */

struct result {
	struct stats with;  /* ns of the base and the operations in it */
	struct stats added; /* ns, by all of them together */
	struct stats of;    /* that, in per cent */
};

static struct family {
	const struct barriers *barriers;
	bool of_access; /* per cent of access(2) instead of the base */
	struct stats base;
	struct result result[MAX_LIST];
} families[BARRIERS_USER + 1];
#define FAMILIES (sizeof(families) / sizeof(families[0]))

static struct stats sides[BARRIERS_SIDES], access_ns;
static int side_error;

/* ---- measuring ---- */

static int round_of(struct family *f)
{
	const struct barriers *b = f->barriers;
	double before, after, with, whole = NAN;
	int err;

	if (!b->base.turn)
		return 0;
	if (f->of_access) {
		err = barriers_access(&whole);
		if (err)
			return err;
		stats_add(&access_ns, whole);
	}
	err = b->base.turn(&b->base, &before); /* warms up */
	if (!err)
		err = b->base.turn(&b->base, &before);
	if (!err)
		stats_add(&f->base, before);
	for (size_t i = 0; i < b->count && !err; i++, before = after) {
		struct result *r = &f->result[i];
		double base;

		after = before;
		if (!b->list[i].turn)
			continue;
		err = b->list[i].turn(&b->list[i], &with);
		if (!err)
			err = b->base.turn(&b->base, &after);
		if (err)
			break;
		base = (before + after) / 2;
		stats_add(&r->with, with);
		stats_add(&r->added, with - base);
		stats_add(&r->of, (with - base) / (f->of_access ? whole : base) * 100);
	}
	return err;
}

static int measure(bool quick)
{
	const int rounds = quick ? 300 : 2000, side_rounds = quick ? 20 : 100;
	int err = 0;

	for (int i = 0; i < rounds && !err; i++) {
		for (size_t k = 0; k < FAMILIES && !err; k++)
			err = round_of(&families[k]);
		procs_sleep(PAUSE_NS);
	}
	for (int i = 0; i < side_rounds && !err && !side_error; i++) {
		for (int side = 0; side < BARRIERS_SIDES && !side_error; side++) {
			double ns;

			side_error = barriers_other(side, &ns);
			/* A busy CPU may not have run the other thread at all. */
			if (!side_error && isfinite(ns))
				stats_add(&sides[side], ns);
		}
	}
	return err;
}

/* ---- reporting ---- */

static double or_nan(const struct stats *s, double value)
{
	return s->count ? value : NAN;
}

static void report_common(const char *where, const char *op, unsigned count, double ns, double pct,
			  double min_ns, double spread_ns, const char *beside)
{
	report_row();
	report_text("where", where);
	report_text("op", op);
	report_number("count", count, 0);
	report_number("ns", ns, 2);
	report_number("pct", pct, 2);
	report_number("min_ns", min_ns, 2);
	report_number("spread_ns", spread_ns, 2);
	report_text("beside", beside);
}

static double each_ns(struct family *f, size_t i)
{
	struct stats *s = &f->result[i].added;

	return or_nan(s, stats_median(s) / f->barriers->list[i].count);
}

static double quartiles(struct stats *s)
{
	return stats_quantile(s, 0.75) - stats_quantile(s, 0.25);
}

/* Per cent of access(2) as published, of one operation, or NAN. */
static double published(const char *op)
{
	static const struct {
		const char *op;
		double pct;
	} figures[] = { { "fence", 3.31 }, { "irq", 1.44 }, { "nothing", 0.63 } };

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		if (!strcmp(op, figures[i].op))
			return figures[i].pct;
	return NAN;
}

static void report_family(struct family *f)
{
	const struct barriers *b = f->barriers;

	for (size_t i = 0; i < b->count; i++) {
		struct result *r = &f->result[i];
		const struct barrier *l = &b->list[i];
		struct stats *s = &r->added;

		report_common(b->where, l->op, l->count, each_ns(f, i),
			      or_nan(s, stats_median(&r->of)),
			      or_nan(s, (stats_min(&r->with) - stats_min(&f->base)) / l->count),
			      or_nan(s, quartiles(s) / l->count), b->beside);
		if (f->of_access)
			report_number("published_pct", l->count == 1 ? published(l->op) : NAN, 2);
	}
}

static void report_sides(double lookup_ns)
{
	static const char *const name[BARRIERS_SIDES] = { "membarrier-idle", "membarrier",
							  "interrupted" };

	for (int i = 0; i < BARRIERS_SIDES; i++) {
		struct stats *s = &sides[i];
		double ns = or_nan(s, stats_median(s));

		report_common("user", name[i], 1, ns, ns / lookup_ns * 100, or_nan(s, stats_min(s)),
			      or_nan(s, quartiles(s)), "lookup");
	}
}

/* What adds no more than this part of the base is not told apart from nothing. */
#define LOST 0.005

static const char *verdict(double one, double many)
{
	return many < 0.9 * one ? "cheaper" : many > 1.1 * one ? "dearer" : "the same";
}

/* Which operation is the cheapest, and what became of each from one to many in succession. */
static void note_findings(struct family *f)
{
	const struct barriers *b = f->barriers;
	const double lost = LOST * stats_median(&f->base);
	size_t cheapest = b->count, len = 0;
	char text[240] = "";

	for (size_t i = 2; i < b->count; i++) {
		const char *plus = strchr(b->list[i].op, '+'),
			   *op = plus ? plus + 1 : b->list[i].op;
		double many = each_ns(f, i), one;

		/* The three counts follow each other. What is no instruction is not compared. */
		if (b->list[i].count != BARRIERS_MAX || !isfinite(many) ||
		    !strcmp(op, "asymmetric"))
			continue;
		one = each_ns(f, i - 2);
		if (cheapest == b->count || many < each_ns(f, cheapest))
			cheapest = i;
		if (len < sizeof(text))
			len += (size_t)snprintf(
				text + len, sizeof(text) - len, "%s%s %.1f, %.1f (%s)",
				len ? "; " : "", op, one, many,
				fabs(one) < lost ? "one is lost in the base" : verdict(one, many));
	}
	if (cheapest == b->count)
		return;
	report_note("%s, beside %s, ns each, one and %d in succession: %s.", b->where, b->beside,
		    BARRIERS_MAX, text);
	report_note("%s, beside %s: %d in succession are cheapest of %s, %.2f %% of %s.", b->where,
		    b->beside, BARRIERS_MAX, b->list[cheapest].op,
		    stats_median(&f->result[cheapest].of), f->of_access ? "access(2)" : b->beside);
}

static void note_how(const char *where, const struct barriers_how *(*get)(size_t *))
{
	size_t count;
	const struct barriers_how *how = get(&count);

	for (size_t i = 0; i < count; i++)
		report_note("%s, %s: %s.", where, how[i].op, how[i].how);
}

static void report_notes(const char *kernel_missing)
{
	struct family *lookup = &families[BARRIERS_LOOKUP], *opens = &families[BARRIERS_OPEN_CLOSE],
		      *kernel = &families[BARRIERS_USER];

	note_how("user", barriers_user_how);
	note_how("kernel", barriers_kernel_how);
	report_note("lookup: freshet_find() of a path of three parts among %u groups, the "
		    "operations, then freshet_read_total() of one number, which checks that the "
		    "group lives: %.1f ns without them. open-close: open(2) of a file on a tmpfs, "
		    "the operations, close(2): %.1f ns. Each calls the operations, or an empty "
		    "function.",
		    barriers_groups(), stats_median(&lookup->base), stats_median(&opens->base));
	report_note(
		"ns: what one of the `count` operations in succession adds (all of them, divided "
		"by count); pct: all of them, in per cent of what they are beside (kernel: of "
		"access(2)).");
	report_note(
		"Medians of %zu rounds, in each of which the base was measured before and after "
		"every row. min_ns: least with, minus least without. spread_ns: distance of the "
		"quartiles of single turns, divided by count; the median is known much better. "
		"What is no farther from 0 than nothing and asymmetric are, cannot be seen.",
		lookup->base.count);
	report_note(
		"membarrier-idle, membarrier: what the other side of an asymmetric barrier pays "
		"for a call while the process's other thread sleeps, or runs on the other CPU; "
		"interrupted: how long a running thread stands still for each. pct: of a lookup.");
	if (side_error)
		report_note("Missing: membarrier: %s.",
			    side_error == -ENODEV ? "one CPU" : strerror(-side_error));
	if (barriers_user_lacks_rseq())
		report_note("Missing: rseq: glibc or the kernel has no restartable sequences here.");
	if (kernel_missing[0])
		report_note("Missing: kernel: %s.", kernel_missing);
	for (size_t k = 0; k < FAMILIES; k++)
		note_findings(&families[k]);
	if (kernel->base.count)
		report_note(
			"access(2) of that file: %.1f ns. An empty turn of the loop in the kernel, "
			"a call included: %.2f ns, %.2f %% of it.",
			stats_median(&access_ns), stats_median(&kernel->base),
			stats_median(&kernel->base) / stats_median(&access_ns) * 100);
	report_note(
		"published_pct: figures published on the kernel list, in per cent of the time of "
		"access(2): smp_mb() 3.31, interrupts masked 1.44, nothing 0.63. So the function "
		"that held them took 0.63 by itself; the fence added 2.68, masking 0.81.");
}

static int make_file(char *path, size_t size)
{
	int fd;

	snprintf(path, size, "%s/file", cgroups_temporary());
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int bench_barriers(bool quick)
{
	char path[128], kernel_missing[160];
	int err = make_file(path, sizeof(path));

	if (!err)
		err = barriers_user_open(path);
	if (err)
		goto out;
	barriers_kernel_open(kernel_missing, sizeof(kernel_missing));
	for (int i = 0; i < BARRIERS_USER; i++)
		families[i].barriers = barriers_user(i);
	families[BARRIERS_USER].barriers = barriers_kernel();
	families[BARRIERS_USER].of_access = true;
	procs_pin(0, procs_first_cpu());
	procs_realtime(1);
	err = measure(quick);
	procs_realtime(0);
	procs_unpin();
	if (!err) {
		for (int i = 0; i < BARRIERS_USER; i++)
			report_family(&families[i]);
		report_sides(stats_median(&families[BARRIERS_LOOKUP].base));
		report_family(&families[BARRIERS_USER]);
		report_notes(kernel_missing);
	}
	barriers_kernel_close();
	barriers_user_close();
out:
	if (err)
		fprintf(stderr, "freshet-bench: barriers: %s\n", strerror(-err));
	return err ? 1 : 0;
}
