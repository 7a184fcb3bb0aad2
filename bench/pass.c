/* SPDX-License-Identifier: MIT */
/*
 * The bench `pass`: nanoseconds per cgroup until its CPU numbers are usable, for each way of reading
 * them, and what a pass of 10,000 cgroups ten times a second costs the daemon.
 *
 * The methods take turns: once a round each, and which one begins changes from round to round, so
 * that all meet the same noise. In its turn, after a pause, a method is timed with cold caches, as one
 * that runs now and then, and again after a few more runs. Figures are medians over the rounds.
 * While it is measured one cgroup burns a CPU (the other one, where there are two), and every tenth
 * has used CPU time before.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <freshet/freshet.h>

#include "base/clock.h"
#include "benches.h"
#include "cgroups.h"
#include "daemon.h"
#include "flush.h"
#include "procs.h"
#include "reader.h"
#include "report.h"
#include "source/bpf_run.h"
#include "source/collector.h"
#include "stats.h"
#include "text.h"

#define ACTIVE_STEP 10
#define PAUSE_NS    (5 * NSEC_PER_MSEC)
#define WARMUPS     4
#define MAX_SIZES   6
#define SETTLE_NS   (2500 * NSEC_PER_MSEC) /* then a pass takes the tree for unchanged */

/* The cgroups of one size, and everything that reads them. */
struct field {
	uint32_t count;
	struct cgroups groups;
	struct toucher toucher;
	pid_t burner;
	struct text text;
	struct collector *collector;
	char segment[128];
	struct bpf_run *walk;
	struct flush *flush;  /* NULL: the kernel has no such kfunc */
	uint64_t id, id_step; /* of the last cgroup made, and from one made to the next */
};

/* ---- the methods; each 0 or -errno ---- */

static int run_open(struct field *f)
{
	return text_read_opening(&f->text);
}

static int run_pread(struct field *f)
{
	return text_read_kept(&f->text);
}

/* What the daemon does: walk, tree, removed cgroups, cputime arithmetic, publication. */
static int run_bpf(struct field *f)
{
	return collector_pass(f->collector);
}

static int run_walk(struct field *f)
{
	struct host_reading r;

	return bpf_run(f->walk, false, UINT64_MAX, 0, &r);
}

static int run_flush(struct field *f)
{
	int err = flush_run(f->flush);

	return err ? err : run_walk(f);
}

enum { OPEN, PREAD, BPF, BPF_WALK, BPF_FLUSH, NMETHODS };

static const struct {
	const char *name;
	int (*run)(struct field *f);
} methods[NMETHODS] = {
	[OPEN] = { "open", run_open },
	[PREAD] = { "pread", run_pread },
	[BPF] = { "bpf", run_bpf },
	[BPF_WALK] = { "bpf-walk", run_walk },
	[BPF_FLUSH] = { "bpf+flush", run_flush },
};

struct measured {
	struct stats cold; /* runs after a pause, in which others used the caches */
	struct stats warm; /* runs after WARMUPS of the same kind: what polling on costs */
};

/* Adds the time of one run, per cgroup. 0, or 1 after a message. */
static int time_run(struct field *f, int method, struct stats *to)
{
	uint64_t begin = clock_ns(), end;
	int err = methods[method].run(f);

	end = clock_ns();
	if (err) {
		fprintf(stderr, "freshet-bench: %s: %s\n", methods[method].name, strerror(-err));
		return 1;
	}
	stats_add(to, (double)(end - begin) / f->count);
	return 0;
}

/* Caches that others use, too, take several runs to hold what a method needs. */
static int warm_up(struct field *f, int method)
{
	int err = 0;

	for (int i = 0; i < WARMUPS && !err; i++)
		err = methods[method].run(f);
	return err;
}

/* In the pause the kernel does what the method before put off (freeing files, above all). */
static int measure(struct field *f, int method, struct measured *to)
{
	int failed;

	procs_sleep(PAUSE_NS);
	procs_realtime(2);
	failed = time_run(f, method, &to->cold) || warm_up(f, method) ||
		 time_run(f, method, &to->warm);
	procs_realtime(0);
	return failed;
}

static double report_times(const struct field *f, const char *name, struct stats *s)
{
	double median = stats_median(s);

	report_row();
	report_text("method", name);
	report_number("cgroups", f->count, 0);
	report_number("ns_per_cgroup", median, 1);
	report_number("spread_pct", stats_spread(s), 0);
	report_number("runs", (double)s->count, 0);
	return median;
}

/* ---- preparing ---- */

static int collector_begin(struct field *f)
{
	struct collector_options options = {
		.size = sizeof(options),
		.root = f->groups.path[0],
		.source = COLLECT_BPF,
		.segment = f->segment,
		.producer = "freshet-bench",
	};
	char why[512];

	snprintf(f->segment, sizeof(f->segment), "%s/pass", cgroups_temporary());
	if (collector_open(&options, &f->collector, why, sizeof(why)) < 0) {
		fprintf(stderr, "freshet-bench: %s\n", why);
		return 1;
	}
	return 0;
}

static int walk_begin(struct field *f)
{
	int fd = open(f->groups.path[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	char why[512] = "no root";

	if (fd < 0 || bpf_run_open(fd, &f->walk, why, sizeof(why)) < 0) {
		fprintf(stderr, "freshet-bench: %s\n", why);
		if (fd >= 0)
			close(fd);
		return 1;
	}
	err = flush_open(fd, &f->flush);
	if (err)
		report_note("Missing: bpf+flush: BPF programs cannot flush here (%s): they need "
			    "root and Linux 6.1 with BTF.",
			    strerror(-err));
	close(fd);
	return 0;
}

/* The id that a cgroup made now gets: the kernel counts what it makes in all cgroups. 0: none. */
static uint64_t next_id(const struct field *f)
{
	struct stat st = { 0 };
	char path[4400];

	snprintf(path, sizeof(path), "%s/probe", f->groups.path[0]);
	if (mkdir(path, 0755) == 0 && stat(path, &st) == 0 && rmdir(path) == 0)
		return st.st_ino;
	return 0;
}

/* About how many cgroups others have made since the field was. */
static unsigned made_by_others(const struct field *f)
{
	uint64_t id = next_id(f);

	if (!f->id_step || id <= f->id)
		return 0;
	return (unsigned)((id - f->id + f->id_step / 2) / f->id_step - 1);
}

static void field_free(struct field *f)
{
	procs_kill(f->burner);
	toucher_stop(&f->toucher);
	text_close(&f->text);
	collector_close(f->collector);
	bpf_run_close(f->walk);
	flush_close(f->flush);
	cgroups_remove(&f->groups);
}

static int field_make(struct field *f, uint32_t count)
{
	*f = (struct field){ .count = count };
	if (cgroups_make(&f->groups, count) < 0)
		return 1;
	if (toucher_start(&f->toucher, &f->groups) < 0 ||
	    toucher_touch(&f->toucher, ACTIVE_STEP) < 0)
		goto fail;
	f->burner = procs_burn(f->groups.path[count - 1], procs_last_cpu());
	if (f->burner < 0 || text_open(&f->text, &f->groups) < 0 || collector_begin(f) != 0 ||
	    walk_begin(f) != 0 || run_bpf(f) < 0)
		goto fail;
	f->id = next_id(f);
	f->id_step = next_id(f) - f->id;
	f->id += f->id_step;
	procs_sleep(SETTLE_NS);
	return 0;
fail:
	field_free(f);
	return 1;
}

/* ---- measuring ---- */

/*
 * At rest all must say the same, or the figures mean nothing. Returns how many cgroups have used
 * CPU time, or -1 after a message.
 */
static int check_values(struct field *f)
{
	size_t skip = strlen(f->groups.path[0]);
	struct freshet_view *view = NULL;
	int err, active = 0;

	kill(f->burner, SIGSTOP);
	procs_sleep(50 * NSEC_PER_MSEC);
	err = run_pread(f);
	if (!err)
		err = run_bpf(f);
	if (!err)
		err = freshet_attach(f->segment, &view);
	for (uint32_t i = 0; i < f->count && !err; i++) {
		const char *path = f->groups.path[i] + skip;
		struct freshet_group g;
		uint64_t usage = 0, present;

		err = freshet_find(view, *path ? path : "/", &g);
		if (!err)
			err = freshet_read_total(view, g, HOST_USAGE, 1, &usage, &present, NULL);
		if (!err && usage / 1000 != f->text.value[i][HOST_USAGE] / 1000)
			err = -EBADMSG;
		active += usage > 0;
	}
	freshet_detach(view);
	kill(f->burner, SIGCONT);
	if (err)
		fprintf(stderr, "freshet-bench: the segment and cpu.stat do not agree (%s)\n",
			strerror(-err));
	return err ? -1 : active;
}

/* Rows of all methods, and their medians, ns a cgroup. */
static int time_methods(struct field *f, int rounds, double *cold, double *warm)
{
	struct measured *m = calloc(NMETHODS, sizeof(*m));
	int n = f->flush ? NMETHODS : BPF_FLUSH, failed = !m;
	unsigned others;

	for (int round = 0; round < rounds && !failed; round++)
		for (int i = 0; i < n && !failed; i++)
			failed = measure(f, (i + round) % n, &m[(i + round) % n]);
	others = made_by_others(f);
	for (int i = 0; i < n && !failed; i++) {
		warm[i] = report_times(f, methods[i].name, &m[i].warm);
		cold[i] = stats_median(&m[i].cold);
		report_number("cold_ns", cold[i], 1);
	}
	free(m);
	if (!failed && others)
		report_note("%u cgroups: others made about %u cgroups meanwhile, so that many "
			    "passes of bpf "
			    "read what removed cgroups left, too, as those of bpf-ledger do.",
			    f->count, others);
	return failed;
}

/* What the plot shows of one size after the other: ns of a whole pass. */
struct curve {
	double cgroups[MAX_SIZES], ns[BPF + 1][MAX_SIZES];
	int count;
};

static int add_point(struct curve *c, struct field *f, int rounds, double *cold, double *warm)
{
	if (time_methods(f, rounds, cold, warm) != 0)
		return 1;
	c->cgroups[c->count] = f->count;
	for (int i = OPEN; i <= BPF; i++)
		c->ns[i][c->count] = warm[i] * f->count;
	c->count++;
	return 0;
}

static int measure_methods(struct field *f, int rounds, struct curve *c)
{
	double cold[NMETHODS], warm[NMETHODS];

	if (add_point(c, f, rounds, cold, warm) != 0)
		return 1;
	report_bar(BAR_AT_LEAST, warm[OPEN] / warm[BPF], 25, "x",
		   "%u cgroups: bpf cheaper than open, by", f->count);
	report_bar(BAR_AT_LEAST, warm[PREAD] / warm[BPF], 10, "x",
		   "%u cgroups: bpf cheaper than pread, by", f->count);
	report_note(
		"%u cgroups, cold caches (cold_ns): bpf %.1fx cheaper than open, %.1fx than pread.",
		f->count, cold[OPEN] / cold[BPF], cold[PREAD] / cold[BPF]);
	return 0;
}

/* A pass after every single cgroup has changed. */
static int measure_all_changed(struct field *f, int rounds)
{
	struct stats s = { 0 };
	int failed = 0;

	for (int i = 0; i < rounds && !failed; i++) {
		failed = toucher_touch(&f->toucher, 1) < 0;
		procs_realtime(2);
		failed = failed || time_run(f, BPF, &s);
		procs_realtime(0);
	}
	if (!failed)
		report_times(f, "bpf-all-changed", &s);
	return failed;
}

/*
 * What a tree that does not stand still costs. bpf-churn: the pass in which a cgroup has just
 * appeared or gone; lists are built anew. bpf-ledger: a pass soon after that; it changes nothing,
 * but for some time each pass also reads what removed cgroups left in their parents.
 */
static int measure_churn(struct field *f, int rounds)
{
	struct stats churn = { 0 }, ledger = { 0 };
	char path[4400];
	int failed = 0;

	snprintf(path, sizeof(path), "%s/churn", f->groups.path[f->count / 2]);
	for (int i = 0; i < rounds && !failed; i++) {
		if ((i % 2 ? rmdir(path) : mkdir(path, 0755)) < 0) {
			fprintf(stderr, "freshet-bench: %s: %s\n", path, strerror(errno));
			return 1;
		}
		procs_realtime(2);
		failed = time_run(f, BPF, &churn) || warm_up(f, BPF) || time_run(f, BPF, &ledger);
		procs_realtime(0);
	}
	if (!failed) {
		report_times(f, "bpf-churn", &churn);
		report_times(f, "bpf-ledger", &ledger);
	}
	return failed;
}

static int publish(void *f)
{
	return run_bpf(f);
}

static int measure_segment(struct field *f, int samples)
{
	const char *path = f->groups.path[f->count / 2] + strlen(f->groups.path[0]);
	struct stats s;
	int err;

	procs_pin(f->burner, procs_first_cpu()); /* the reader has the last one for itself */
	err = reader_measure(f->segment, path, procs_last_cpu(), (size_t)samples, publish, f, &s);
	procs_pin(f->burner, procs_last_cpu());
	if (err) {
		fprintf(stderr, "freshet-bench: reading the segment: %s\n",
			err == -EPERM ? "the reader made a system call" : strerror(-err));
		return 1;
	}
	report_bar(BAR_BELOW, report_times(f, "segment", &s), 45, " ns",
		   "%u cgroups: reading one group's CPU set", f->count);
	return 0;
}

/* A size of which nothing but the methods' cost is asked. */
static int bench_point(uint32_t count, struct curve *c)
{
	double cold[NMETHODS], warm[NMETHODS];
	struct field f;
	int failed;

	procs_pin(0, procs_first_cpu());
	if (field_make(&f, count) != 0)
		return 1;
	failed = add_point(c, &f, count > 1000 ? 15 : 50, cold, warm);
	field_free(&f);
	procs_unpin();
	return failed;
}

static int bench_size(uint32_t count, bool quick, struct curve *c)
{
	struct field f;
	int active, failed;

	procs_pin(0, procs_first_cpu());
	if (field_make(&f, count) != 0)
		return 1;
	failed = measure_methods(&f, quick ? 15 : 200, c);
	active = failed ? -1 : check_values(&f);
	failed = active < 0 || measure_churn(&f, quick ? 20 : 100) ||
		 measure_segment(&f, quick ? 200 : 500) ||
		 measure_all_changed(&f, (quick ? 1 : 4) * (count < 1000 ? 10 : 3));
	field_free(&f);
	procs_unpin();
	if (!failed)
		report_note(
			"%u cgroups: %d have used CPU time (%u in bpf-all-changed: since the last "
			"pass), one burns during all timing; at rest segment and cpu.stat agreed "
			"on every one.",
			count, active, count);
	return failed;
}

static int serve(uint32_t count, bool quick)
{
	struct cgroups groups;
	struct toucher toucher;
	struct daemon d;
	pid_t burner = -1;
	double pct = -1;
	int failed = 1;

	if (cgroups_make(&groups, count) < 0)
		return 1;
	if (toucher_start(&toucher, &groups) < 0 || toucher_touch(&toucher, ACTIVE_STEP) < 0)
		goto out;
	burner = procs_burn(groups.path[count - 1], procs_last_cpu());
	if (burner < 0 || daemon_start(&d, groups.path[0], "100ms") < 0)
		goto out;
	procs_sleep(SETTLE_NS);
	pct = daemon_cpu_pct(&d, quick ? 5 : 10);
	daemon_stop(&d);
	if (pct < 0) {
		fprintf(stderr, "freshet-bench: 'freshet serve' ended\n");
		goto out;
	}
	report_row();
	report_text("method", "serve-10hz");
	report_number("cgroups", count, 0);
	report_number("cpu_pct", pct, 2);
	report_bar(BAR_BELOW, pct, 5, " %", "%u cgroups at 10 Hz: CPU time of freshet serve",
		   count);
	failed = 0;
out:
	procs_kill(burner);
	toucher_stop(&toucher);
	cgroups_remove(&groups);
	return failed;
}

/* All sizes; a quick run has two. */
static int bench_sizes(bool quick)
{
	struct curve c = { 0 };
	int failed;

	failed = (!quick && (bench_point(10, &c) || bench_point(100, &c))) ||
		 bench_size(300, quick, &c) || (!quick && bench_point(1000, &c)) ||
		 bench_size(3000, quick, &c) || (!quick && bench_point(10000, &c));
	for (int i = OPEN; i <= BPF; i++)
		report_line("pass-cost", methods[i].name, c.cgroups, c.ns[i], c.count);
	return failed;
}

int bench_pass(bool quick)
{
	report_note(
		"open, pread: parsing included. bpf: tree, removed cgroups, cputime arithmetic and "
		"publication included. segment: in another process, which a seccomp filter would "
		"have "
		"killed at its first system call.");
	if (procs_first_cpu() == procs_last_cpu())
		report_note(
			"One CPU only: what should run beside the measured code ran between it.");
	return bench_sizes(quick) || serve(10000, quick);
}
