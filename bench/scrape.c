/* SPDX-License-Identifier: MIT */
/*
 * The bench `scrape`: the real daemon with 3,000 cgroups. How long the first answer after a pass
 * takes (it has to be rendered) and a repeated one, plain and compressed; memory; CPU time at one
 * and ten passes a second while nobody asks.
 *
 * That a pass is new is seen in the segment, which costs the daemon nothing; the request goes out
 * at once.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <freshet/freshet.h>

#include "base/clock.h"
#include "benches.h"
#include "cgroups.h"
#include "daemon.h"
#include "http.h"
#include "procs.h"
#include "report.h"
#include "stats.h"

#define CGROUPS     3000
#define ACTIVE_STEP 10
#define SETTLE_NS   (3 * NSEC_PER_SEC)
#define REPEATS     20

struct result {
	struct stats first, repeat, gzip_first;
	size_t bytes, gzip_bytes;
	long rss_kb;
	double pct_1hz, pct_10hz;
};

/* Returns just after the daemon has published a pass. 0, or -1 after a message. */
static int wait_for_pass(const struct freshet_view *view)
{
	uint64_t end = clock_ns() + 10 * NSEC_PER_SEC;
	struct freshet_moment before, now;
	int err = freshet_last_pass(view, &before);

	while (!err && clock_ns() < end) {
		err = freshet_last_pass(view, &now);
		if (!err && now.pass != before.pass)
			return 0;
		procs_sleep(200 * NSEC_PER_USEC);
	}
	fprintf(stderr, "freshet-bench: the daemon publishes nothing (%s)\n", strerror(-err));
	return -1;
}

/* After one pass a plain first answer and repeated ones, after the next a compressed first one. */
static int scrape_round(struct http *h, const struct freshet_view *view, struct result *r)
{
	struct http_answer a;

	if (wait_for_pass(view) < 0 || http_get(h, "/metrics", false, &a) < 0)
		return -1;
	stats_add(&r->first, a.ms);
	r->bytes = a.bytes;
	for (int i = 0; i < REPEATS; i++) {
		if (http_get(h, "/metrics", false, &a) < 0)
			return -1;
		stats_add(&r->repeat, a.ms);
	}
	if (wait_for_pass(view) < 0 || http_get(h, "/metrics", true, &a) < 0)
		return -1;
	if (!a.gzip) {
		fprintf(stderr, "freshet-bench: gzip was asked for and not given\n");
		return -1;
	}
	stats_add(&r->gzip_first, a.ms);
	r->gzip_bytes = a.bytes;
	return 0;
}

static int cpu_pct(const struct daemon *d, double seconds, double *ret)
{
	*ret = daemon_cpu_pct(d, seconds);
	if (*ret >= 0)
		return 0;
	fprintf(stderr, "freshet-bench: 'freshet serve' ended\n");
	return -1;
}

static int at_1hz(const char *root, bool quick, struct result *r)
{
	struct http h = { .socket = -1 };
	struct freshet_view *view = NULL;
	struct daemon d;
	int err = -1;

	if (daemon_start(&d, root, "1s") < 0)
		return -1;
	procs_sleep(SETTLE_NS);
	if (cpu_pct(&d, quick ? 8 : 30, &r->pct_1hz) < 0 || http_open(&h, d.port) < 0)
		goto out;
	err = freshet_attach(d.segment, &view);
	if (err) {
		fprintf(stderr, "freshet-bench: %s: %s\n", d.segment, strerror(-err));
		goto out;
	}
	for (int i = 0; i < (quick ? 4 : 20) && !err; i++)
		err = scrape_round(&h, view, r);
	r->rss_kb = daemon_rss_kb(&d);
out:
	freshet_detach(view);
	http_close(&h);
	daemon_stop(&d);
	return err;
}

static int at_10hz(const char *root, bool quick, struct result *r)
{
	struct daemon d;
	int err;

	if (daemon_start(&d, root, "100ms") < 0)
		return -1;
	procs_sleep(SETTLE_NS);
	err = cpu_pct(&d, quick ? 5 : 20, &r->pct_10hz);
	daemon_stop(&d);
	return err;
}

static void report(struct result *r)
{
	double first = stats_median(&r->first), repeat = stats_median(&r->repeat);

	report_row();
	report_number("cgroups", CGROUPS, 0);
	report_number("first_ms", first, 3);
	report_number("repeat_ms", repeat, 3);
	report_number("gzip_first_ms", stats_median(&r->gzip_first), 3);
	report_number("bytes", (double)r->bytes, 0);
	report_number("rss_kb", (double)r->rss_kb, 0);
	report_number("cpu_pct_at_1hz", r->pct_1hz, 3);
	report_number("cpu_pct_at_10hz", r->pct_10hz, 3);
	report_bar(BAR_BELOW, first, 10, " ms", "first answer after a pass");
	report_bar(BAR_BELOW, repeat, 1, " ms", "repeated answer");
	report_bar(BAR_BELOW, (double)r->rss_kb / 1024, 32, " MiB", "memory of the daemon (VmRSS)");
	report_bar(BAR_BELOW, r->pct_1hz, 0.5, " %", "CPU time at one pass a second");
	report_note("Medians of %zu first answers (%zu compressed: %zu bytes) and %zu repeated "
		    "ones, on "
		    "one kept connection; an answer's time ends with its last byte.",
		    r->first.count, r->gzip_first.count, r->gzip_bytes, r->repeat.count);
	report_note(
		"One cgroup burned a CPU and %d had used CPU time before. Nobody scraped while CPU "
		"time was measured.",
		CGROUPS / ACTIVE_STEP);
}

int bench_scrape(bool quick)
{
	struct result r = { 0 };
	struct toucher toucher;
	struct cgroups groups;
	pid_t burner = -1;
	int err = -1;

	if (cgroups_make(&groups, CGROUPS) < 0)
		return 1;
	if (toucher_start(&toucher, &groups) == 0 && toucher_touch(&toucher, ACTIVE_STEP) == 0)
		burner = procs_burn(groups.path[CGROUPS - 1], procs_last_cpu());
	if (burner > 0 && at_1hz(groups.path[0], quick, &r) == 0)
		err = at_10hz(groups.path[0], quick, &r);
	procs_kill(burner);
	toucher_stop(&toucher);
	cgroups_remove(&groups);
	if (err)
		return 1;
	report(&r);
	return 0;
}
