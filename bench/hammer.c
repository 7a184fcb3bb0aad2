/* SPDX-License-Identifier: MIT */
/*
 * The bench `hammer`: many pollers of this kernel's cgroups, in several ways; what a read costs them,
 * and what they cost the processes in the cgroups.
 *
 * Time is cut into short windows. Between any two windows of a method lies one in which the same
 * pollers spin and read nothing, and the daemon is stopped; what the workload did in a method's window
 * is compared with the mean of the two around it, and the figure is the median of such ratios over the
 * rounds. So noise that lasts longer than a window concerns both sides. What moves between
 * windows is left to settle before counting begins. The bench itself runs in real time, and mostly
 * sleeps.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "benches.h"
#include "cgroups.h"
#include "daemon.h"
#include "hammer_load.h"
#include "hammer_poll.h"
#include "perf_rstat.h"
#include "procs.h"
#include "report.h"
#include "stats.h"

#define INTERVAL     "4ms" /* a tick where HZ is 250: how old the kernel's own numbers may be */
#define WINDOW_NS    (150 * NSEC_PER_MSEC)
#define MANY_READERS 16u
#define SETTLE_NS    (10 * NSEC_PER_MSEC)
#define SPENT_NS     (400 * NSEC_PER_MSEC) /* what serve has saved up for passes on demand is spent */
#define START_NS     (300 * NSEC_PER_MSEC)
#define NONE_WINDOWS 8
#define LEAST_ROUNDS 3
#define QUICK_NS     (36 * NSEC_PER_SEC) /* then a quick run makes one more round of each kind */
#define PACE_US      1000u

#define MAX_SIZES   3
#define MAX_READERS 4
#define MAX_PACES   2

/* Where the bars are. */
#define BAR_CGROUPS 300u
#define BAR_READERS 8u

struct plan {
	uint32_t cgroups;
	unsigned readers[MAX_READERS + 1]; /* 0 ends */
	unsigned paces;                    /* the first so many of pace_us[] */
	double seconds[MAX_PACES];         /* for each number of readers */
};

static const unsigned pace_us[MAX_PACES] = { 0, PACE_US };

static const struct plan quick_plan[] = {
	{ 300, { 8 }, 2, { 16, 3 } },
	{ 4, { 2 }, 1, { 5 } },
};

static const struct plan full_plan[] = {
	{ 4, { 1, 2, 8, 32 }, 2, { 14, 14 } },
	{ 100, { 1, 2, 8, 32 }, 2, { 14, 14 } },
	{ 300, { 1, 2, 8, 32 }, 2, { 24, 14 } },
};

/* The cgroups of one size, and everything that runs. */
struct field {
	struct cgroups groups;
	struct hammer_load *load;
	struct daemon daemon;
	bool daemon_stopped;
	struct freshet_view *view; /* of its segment */
	struct perf_rstat *perf;   /* NULL: not allowed */
};

/* What one method did, over all its windows. */
struct result {
	unsigned windows;
	double seconds;
	struct stats read_ns; /* mean of each window */
	struct stats ratio;   /* of the workload's units, to the windows around */
	struct hammer_tally sum;
	struct hammer_load_sum load;
	double daemon_ns, daemon_sys_ns;
	uint64_t samples, in_rstat;
};

/* One combination of cgroups, readers and pace. */
struct run {
	struct field *f;
	struct hammer_poll *poll;
	unsigned readers, pace_us;
	uint64_t window_ns;
	bool has[HAMMER_METHODS];
	struct result *result; /* of each method */
};

/* For the tables, the plots and the bars. */
struct figure {
	uint32_t cgroups;
	unsigned readers, pace_us;
	double seconds[HAMMER_METHODS]; /* for 100,000 reads; NAN: not measured */
	double cpu_seconds[HAMMER_METHODS];
	double ratio[HAMMER_METHODS];
	double age_us[HAMMER_METHODS];
};
static struct figure figures[MAX_SIZES * MAX_READERS * MAX_PACES];
static unsigned nfigures;

/* ---- windows ---- */

static bool needs_daemon(enum hammer_method m)
{
	return m == HAMMER_SEGMENT || m == HAMMER_MAX_AGE_0;
}

/* Running again, it is back at work when this returns, with a pass that began since. */
static void run_daemon(struct field *f, bool run)
{
	uint64_t now = clock_ns(), end = now + NSEC_PER_SEC;
	struct freshet_moment pass = { 0 };

	if (run != f->daemon_stopped)
		return;
	f->daemon_stopped = !run;
	kill(f->daemon.pid, run ? SIGCONT : SIGSTOP);
	while (run && clock_ns() < end && pass.begin_ns < now) {
		procs_sleep(NSEC_PER_MSEC);
		if (freshet_last_pass(f->view, &pass) < 0)
			break;
	}
}

static double daemon_ns(const struct field *f)
{
	struct timespec ts = { 0 };

	clock_gettime(f->daemon.clock, &ts);
	return (double)ts.tv_sec * NSEC_PER_SEC + (double)ts.tv_nsec;
}

/* CPU time in the kernel, of which there is no clock. */
static double daemon_sys_ns(const struct field *f)
{
	char path[64], text[1024];
	unsigned long ticks = 0;
	const char *end;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)f->daemon.pid);
	stat = fopen(path, "re");
	end = stat && fgets(text, sizeof(text), stat) ? strrchr(text, ')') : NULL;
	if (end)
		sscanf(end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %lu", &ticks);
	if (stat)
		fclose(stat);
	return (double)ticks * NSEC_PER_SEC / (double)sysconf(_SC_CLK_TCK);
}

static void take_samples(struct field *f, struct result *r)
{
	uint64_t nothing[2];

	if (f->perf)
		perf_rstat_take(f->perf, r ? &r->samples : &nothing[0],
				r ? &r->in_rstat : &nothing[1]);
}

/* One window of a method; after it the pollers spin. *rate: units of the workload in a second. 0, or
 * -1 after a message. */
static int window(struct run *u, enum hammer_method m, double *rate)
{
	enum hammer_method after = m == HAMMER_NONE ? HAMMER_NONE : HAMMER_SPIN;
	struct result *r = &u->result[m];
	struct hammer_load_sum before, end;
	struct hammer_tally t;
	double cpu, sys, seconds;
	uint64_t begin;

	run_daemon(u->f, needs_daemon(m));
	if (m != HAMMER_SPIN && hammer_poll_tell(u->poll, m, u->pace_us, false, NULL) < 0)
		return -1;
	procs_sleep(m == HAMMER_MAX_AGE_0 ? SPENT_NS : SETTLE_NS);
	take_samples(u->f, NULL);
	cpu = daemon_ns(u->f);
	sys = daemon_sys_ns(u->f);
	hammer_poll_tell(u->poll, m, u->pace_us, true, NULL);
	begin = clock_ns();
	hammer_load_sum(u->f->load, &before);
	procs_sleep(u->window_ns);
	hammer_load_sum(u->f->load, &end);
	seconds = (double)(clock_ns() - begin) / NSEC_PER_SEC;
	r->daemon_ns += daemon_ns(u->f) - cpu;
	r->daemon_sys_ns += daemon_sys_ns(u->f) - sys;
	take_samples(u->f, r);
	if (hammer_poll_tell(u->poll, after, u->pace_us, false, &t) < 0)
		return -1;

	*rate = (double)(end.units - before.units) / seconds;
	r->load.units += end.units - before.units;
	r->load.switches += end.switches - before.switches;
	r->load.sys_ns += end.sys_ns - before.sys_ns;
	r->seconds += seconds;
	r->windows++;
	hammer_tally_add(&r->sum, &t);
	if (t.reads)
		stats_add(&r->read_ns, (double)t.read_ns / (double)t.reads);
	return 0;
}

/* When the bench should be at its end. */
static uint64_t limit_ns = UINT64_MAX;

static bool another_round(int rounds, uint64_t end_ns)
{
	const uint64_t now = clock_ns();

	return rounds == 0 || (now < limit_ns && (rounds < LEAST_ROUNDS || now < end_ns));
}

/* Rounds of all methods, spinning before and after each, until the time is over. 0, or -1 after a
 * message. */
static int run_windows(struct run *u, double seconds)
{
	uint64_t end = clock_ns() + (uint64_t)(seconds * NSEC_PER_SEC);
	double before, rate, after;

	if (hammer_poll_tell(u->poll, HAMMER_SPIN, u->pace_us, false, NULL) < 0 ||
	    window(u, HAMMER_SPIN, &before) < 0)
		return -1;
	for (int rounds = 0; another_round(rounds, end); rounds++)
		for (int m = HAMMER_OPEN; m < HAMMER_METHODS; m++) {
			if (!u->has[m])
				continue;
			if (window(u, m, &rate) < 0 || window(u, HAMMER_SPIN, &after) < 0)
				return -1;
			if (before + after > 0)
				stats_add(&u->result[m].ratio, 2 * rate / (before + after));
			before = after;
		}
	return 0;
}

/* ---- what is reported ---- */

static void report_result(struct run *u, enum hammer_method m, struct figure *to)
{
	struct result *r = &u->result[m];
	const bool reads = m != HAMMER_NONE;
	double per_100k = reads ? stats_median(&r->read_ns) * 1e5 / NSEC_PER_SEC : NAN;
	double cpu = reads && r->sum.reads
			     ? (double)r->sum.cpu_ns / (double)r->sum.reads * 1e5 / NSEC_PER_SEC
			     : NAN;
	double ratio = m == HAMMER_NONE ? NAN : m == HAMMER_SPIN ? 1 : stats_median(&r->ratio);
	double age = m > HAMMER_SPIN
			     ? (double)freshet_quantile(&hammer_ages, r->sum.ages, 0.99) / 1e3
			     : NAN;
	double system = ((double)r->sum.sys_ns + (double)r->load.sys_ns + r->daemon_sys_ns) /
			NSEC_PER_SEC / r->seconds;

	report_row();
	report_text("method", hammer_method_names[m]);
	report_number("cgroups", u->f->groups.count, 0);
	report_number("readers", reads ? u->readers : 0, 0);
	report_number("pace_us", u->pace_us, 0);
	report_number("mean_s_per_100k", per_100k, 5);
	report_number("worst_us", reads ? (double)r->sum.worst_ns / 1e3 : NAN, 1);
	report_number("workload_ratio", ratio, 3);
	report_number("sys_s", system, 3);
	report_number("rstat_pct",
		      r->samples ? (double)r->in_rstat / (double)r->samples * 100 : NAN, 2);
	report_number("age_p99_us", age, 1);
	report_number("daemon_cpu_pct",
		      needs_daemon(m) ? r->daemon_ns / NSEC_PER_SEC / r->seconds * 100 : NAN, 2);
	report_number("cpu_s_per_100k", cpu, 5);
	report_number("reads_s", reads ? (double)r->sum.reads / r->seconds : NAN, 0);
	report_number("switches_s", (double)r->load.switches / r->seconds, 0);
	report_number("units_s", (double)r->load.units / r->seconds, 0);
	report_number("spread_pct", reads ? stats_spread(&r->read_ns) : NAN, 0);
	report_number("ratio_spread_pct", m > HAMMER_SPIN ? stats_spread(&r->ratio) : NAN, 1);
	report_number("windows", r->windows, 0);
	to->seconds[m] = per_100k;
	to->cpu_seconds[m] = cpu;
	to->ratio[m] = ratio;
	to->age_us[m] = age;
	if (r->sum.late)
		report_note("%s, %u cgroups, %u readers, pace %u us: %llu of %llu passes asked for "
			    "did not come within a second.",
			    hammer_method_names[m], u->f->groups.count, u->readers, u->pace_us,
			    (unsigned long long)r->sum.late, (unsigned long long)r->sum.reads);
}

static void report_run(struct run *u)
{
	struct figure *to = &figures[nfigures++];

	to->cgroups = u->f->groups.count;
	to->readers = u->readers;
	to->pace_us = u->pace_us;
	for (int m = 0; m < HAMMER_METHODS; m++)
		to->seconds[m] = to->cpu_seconds[m] = to->ratio[m] = to->age_us[m] = NAN;
	for (int m = 0; m < HAMMER_METHODS; m++)
		if (u->result[m].windows)
			report_result(u, m, to);
}

static const struct figure *find_figure(uint32_t cgroups, unsigned readers, unsigned pace)
{
	for (unsigned i = 0; i < nfigures; i++)
		if (figures[i].cgroups == cgroups && figures[i].readers == readers &&
		    figures[i].pace_us == pace)
			return &figures[i];
	return NULL;
}

/* In the shape in which the list published it. */
static void report_table(void)
{
	report_note("Mean seconds for 100,000 reads (before: open; after: segment; beside it "
		    "segment-max-age-0):");
	report_note("%8s %8s %8s | %10s | %10s | %8s | %10s", "cgroups", "readers", "pace us",
		    "before", "after", "ratio", "max-age-0");
	for (unsigned i = 0; i < nfigures; i++) {
		const struct figure *g = &figures[i];
		char fresh[16] = "-";

		if (isfinite(g->seconds[HAMMER_MAX_AGE_0]))
			snprintf(fresh, sizeof(fresh), "%.3f", g->seconds[HAMMER_MAX_AGE_0]);
		report_note("%8u %8u %8u | %10.4f | %10.5f | %7.0fx | %10s", g->cgroups, g->readers,
			    g->pace_us, g->seconds[HAMMER_OPEN], g->seconds[HAMMER_SEGMENT],
			    g->seconds[HAMMER_OPEN] / g->seconds[HAMMER_SEGMENT], fresh);
	}
}

static void report_lines(void)
{
	for (int m = HAMMER_SPIN; m < HAMMER_METHODS; m++) {
		double x[MAX_READERS], read[MAX_READERS], ratio[MAX_READERS];
		int n = 0;

		for (unsigned i = 0; i < nfigures; i++) {
			const struct figure *g = &figures[i];

			if (g->cgroups != BAR_CGROUPS || g->pace_us || !isfinite(g->seconds[m]))
				continue;
			x[n] = g->readers;
			read[n] = g->seconds[m];
			ratio[n++] = g->ratio[m];
		}
		if (n && m != HAMMER_SPIN)
			report_line("hammer-read", hammer_method_names[m], x, read, n);
		if (n)
			report_line("hammer-workload", hammer_method_names[m], x, ratio, n);
	}
}

static void report_bars(void)
{
	const struct figure *g = find_figure(BAR_CGROUPS, BAR_READERS, 0);
	const struct figure *paced = find_figure(BAR_CGROUPS, BAR_READERS, PACE_US);

	if (!g)
		return;
	report_bar(BAR_AT_LEAST, g->seconds[HAMMER_OPEN] / g->seconds[HAMMER_SEGMENT], 50, "x",
		   "segment takes less time a read than open, by");
	report_bar(BAR_BELOW, g->age_us[HAMMER_SEGMENT], 6000.5, " us",
		   "segment: age of what was read, p99");
	report_bar(BAR_AT_LEAST, g->ratio[HAMMER_SEGMENT], 0.97, "",
		   "segment: the workload keeps, of what spinning leaves it");
	report_note("Bars: %u cgroups, %u readers without a pause. By CPU time a read of segment "
		    "is %.0fx cheaper than open.",
		    BAR_CGROUPS, BAR_READERS,
		    g->cpu_seconds[HAMMER_OPEN] / g->cpu_seconds[HAMMER_SEGMENT]);
	report_note("There, polling cpu.stat leaves the workload %.3f of what spinning leaves it "
		    "(open; kept: %.3f; bpf+flush: %.3f; segment: %.3f; segment-max-age-0: %.3f).",
		    g->ratio[HAMMER_OPEN], g->ratio[HAMMER_KEPT], g->ratio[HAMMER_BPF_FLUSH],
		    g->ratio[HAMMER_SEGMENT], g->ratio[HAMMER_MAX_AGE_0]);
	if (paced)
		report_note("With a read every millisecond: open %.3f, segment %.3f.",
			    paced->ratio[HAMMER_OPEN], paced->ratio[HAMMER_SEGMENT]);
}

static void report_how(void)
{
	report_note(
		"mean_s_per_100k, worst_us: as a poller sees it, waiting for a CPU included; of "
		"segment and spin without a pause by batches of 128, of which worst_us is the "
		"longest. cpu_s_per_100k: all CPU time of the pollers, by reads; at a pace of "
		"1000 us mostly of going to sleep and waking up (see spin).");
	report_note("workload_ratio: units of work in the cgroups, to those in windows before and "
		    "after in which the same pollers spin and the daemon is stopped; median. none: "
		    "no pollers.");
	report_note("age_p99_us: of segment from the begin of the pass to the end of the read; of "
		    "others, whose numbers are of the read, its own duration. sys_s: system CPU "
		    "seconds a second, pollers, workload and daemon, by ticks. rstat_pct: of "
		    "samples of all busy CPUs.");
}

/* ---- preparing ---- */

static void field_free(struct field *f)
{
	if (f->daemon_stopped)
		kill(f->daemon.pid, SIGCONT);
	daemon_stop(&f->daemon);
	freshet_detach(f->view);
	hammer_load_stop(f->load);
	perf_rstat_close(f->perf);
	cgroups_remove(&f->groups);
}

static int field_make(struct field *f, uint32_t cgroups)
{
	static bool said;
	int err;

	*f = (struct field){ 0 };
	if (cgroups_make(&f->groups, cgroups) < 0)
		return -1;
	if (daemon_start(&f->daemon, f->groups.path[0], INTERVAL) < 0 ||
	    hammer_load_start(&f->load, &f->groups) < 0) {
		field_free(f);
		return -1;
	}
	err = freshet_attach(f->daemon.segment, &f->view);
	if (err) {
		fprintf(stderr, "freshet-bench: %s: %s\n", f->daemon.segment, strerror(-err));
		field_free(f);
		return -1;
	}
	err = perf_rstat_open(&f->perf);
	if (err && !said) {
		report_note("Missing: rstat_pct: %s; it needs root or kernel.perf_event_paranoid "
			    "below 1, and kernel.kptr_restrict below 2.",
			    strerror(-err));
		said = true;
	}
	procs_sleep(START_NS);
	return 0;
}

/* Which methods: all, but in a quick run at a pace those alone that the table shows. */
static void choose(struct run *u, bool quick)
{
	int no_flush = hammer_poll_lacks_flush(u->poll);
	static bool said;

	for (int m = HAMMER_OPEN; m < HAMMER_METHODS; m++)
		u->has[m] = !quick || !u->pace_us || m == HAMMER_OPEN || m == HAMMER_SEGMENT;
	if (no_flush && !said) {
		report_note("Missing: bpf+flush: BPF programs cannot flush here (%s): they need "
			    "root and Linux 6.1 with BTF.",
			    strerror(-no_flush));
		said = true;
	}
	if (no_flush)
		u->has[HAMMER_BPF_FLUSH] = false;
}

/* 0, or -1 after a message. */
static int run_one(struct run *u, double seconds, bool quick, bool with_none)
{
	int failed = 0;
	double rate;

	u->result = calloc(HAMMER_METHODS, sizeof(*u->result));
	if (!u->result) {
		fprintf(stderr, "freshet-bench: %s\n", strerror(ENOMEM));
		return -1;
	}
	choose(u, quick);
	u->window_ns = WINDOW_NS * (u->readers >= MANY_READERS && !u->pace_us ? 2 : 1);
	for (int i = 0; with_none && i < NONE_WINDOWS && !failed; i++)
		failed = window(u, HAMMER_NONE, &rate);
	if (!failed)
		failed = run_windows(u, seconds);
	if (!failed)
		report_run(u);
	free(u->result);
	return failed;
}

static int run_plan(const struct plan *p, bool quick)
{
	struct field f;
	int failed = 0;

	if (field_make(&f, p->cgroups) < 0)
		return -1;
	for (int i = 0; p->readers[i] && !failed; i++) {
		struct run u = { .f = &f, .readers = p->readers[i] };

		run_daemon(&f, true);
		failed = hammer_poll_start(&u.poll, &f.groups, f.daemon.segment, u.readers);
		for (unsigned k = 0; k < p->paces && !failed; k++) {
			u.pace_us = pace_us[k];
			failed = run_one(&u, p->seconds[k], quick, i == 0 && k == 0);
		}
		hammer_poll_stop(u.poll);
	}
	field_free(&f);
	return failed;
}

int bench_hammer(bool quick)
{
	const struct plan *plan = quick ? quick_plan : full_plan;
	const size_t count = quick ? sizeof(quick_plan) / sizeof(quick_plan[0])
				   : sizeof(full_plan) / sizeof(full_plan[0]);
	bool failed = false;

	if (quick)
		limit_ns = clock_ns() + QUICK_NS;
	/* Also to begin and to end: who is not before hundreds of busy processes waits for each one. */
	procs_realtime(2);
	for (size_t i = 0; i < count && !failed; i++)
		failed = run_plan(&plan[i], quick) < 0;
	procs_realtime(0);
	if (failed)
		return 1;
	report_how();
	report_bars();
	report_table();
	report_lines();
	return 0;
}
