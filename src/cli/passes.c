/* SPDX-License-Identifier: MIT */
/* Implements passes.h. */
#include "cli/passes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "source/collector.h"

#define ANSWER_NS   (500 * NSEC_PER_MSEC) /* a screen is not kept waiting for longer */
#define REQUEST_NS  (1 * NSEC_PER_SEC)
#define RESTART_NS  (2 * NSEC_PER_SEC)  /* what a producer is given to come back */
#define PATIENCE_NS (10 * NSEC_PER_SEC) /* with one that promises no interval */
#define LOOK_NS     (50 * NSEC_PER_MSEC)

/* The host's usual columns for what has CPU usage and is no program's. */
static void choose_columns(struct passes *p)
{
	size_t nstats, nhistograms;
	const struct freshet_stat *stats = freshet_stats(p->open.view, &nstats);
	const struct freshet_histogram *histograms = freshet_histograms(p->open.view, &nhistograms);

	if (!freshet_is_live(p->open.view) &&
	    freshet_stat_index(p->open.view, "cpu", "usage_usec") >= 0)
		top_columns_host(stats, nstats, &p->columns);
	else
		top_columns_program(stats, nstats, histograms, nhistograms, &p->columns);
}

int passes_open(const struct open_options *options, struct passes *ret)
{
	int r;

	*ret = (struct passes){ .options = *options };
	r = open_view(options, &ret->open);
	if (r < 0)
		return r;
	choose_columns(ret);
	r = freshet_snapshot_new(&ret->snapshot);
	if (r < 0) {
		complain("no memory", strerror(-r));
		open_view_close(&ret->open);
	}
	return r;
}

void passes_close(struct passes *p)
{
	freshet_snapshot_free(p->snapshot);
	open_view_close(&p->open);
}

uint64_t passes_age(const struct passes *p)
{
	struct freshet_moment moment;

	if (!freshet_snapshot_count(p->snapshot))
		return 0;
	freshet_snapshot_moment(p->snapshot, &moment);
	return clock_ns() - moment.begin_ns;
}

void passes_say_left_out(const struct passes *p)
{
	if (p->left_out)
		fprintf(stderr,
			"freshet: %" PRIu64 " group%s found no room in the segment "
			"(serve --max-groups is %" PRIu32 ")\n",
			p->left_out, p->left_out == 1 ? "" : "s", p->max_groups);
}

static void lacks(struct passes *p, enum passes_lack lack, const char *why)
{
	p->lack = lack;
	snprintf(p->stale, sizeof(p->stale), "%s", why);
}

/* Brings the view up to date, and says in p->stale what is in the way. */
static void advance(struct passes *p)
{
	int r;

	lacks(p, PASSES_CURRENT, "");
	if (p->open.collector) {
		if (!freshet_snapshot_count(p->snapshot))
			return; /* open_view() has just made one */
		r = collector_pass(p->open.collector);
		if (r < 0)
			lacks(p, PASSES_FAILED,
			      r == -ENODEV ? "the cgroup was removed" : strerror(-r));
		return;
	}
	r = freshet_producer(p->open.view);
	if (r == FRESHET_REPLACED)
		r = freshet_reattach(p->open.view) < 0 ? FRESHET_GONE : FRESHET_ALIVE;
	if (r == FRESHET_GONE) {
		lacks(p, PASSES_NO_PRODUCER, "the producer has ended");
	} else if (r < 0) {
		snprintf(p->stale, sizeof(p->stale), "the producer: %s", strerror(-r));
		p->lack = PASSES_FAILED;
	} else if (open_view_stopped(p->open.view, ANSWER_NS) > 0) {
		lacks(p, PASSES_STOPPED, "the producer does not publish");
	}
}

int passes_take(struct passes *p, struct top_model *m)
{
	struct freshet_producer_info info;
	struct top_pass pass = { 0 };
	int r;

	advance(p);
	if (p->lack != PASSES_NO_PRODUCER)
		p->lack_ns = 0;
	else if (!p->lack_ns)
		p->lack_ns = clock_ns();
	/* What is left of a program is as old as the last look at it while it lived. */
	if (p->lack == PASSES_NO_PRODUCER && freshet_is_live(p->open.view) &&
	    freshet_snapshot_count(p->snapshot))
		return 0;
	r = freshet_producer_info(p->open.view, &info);
	if (r == 0)
		r = freshet_snapshot_take(p->snapshot, p->open.view);
	if (r == -ENOMEM)
		return r;
	if (r == 0 && freshet_snapshot_find(p->snapshot, p->open.target, &p->first) < 0)
		r = -ENOENT;
	if (r < 0) {
		lacks(p, PASSES_FAILED, r == -ENOENT ? "the group was removed" : strerror(-r));
		return 0;
	}
	p->left_out = info.overflowed;
	p->max_groups = info.max_groups;
	p->anew = memcmp(p->identity, info.identity, sizeof(p->identity)) != 0;
	memcpy(p->identity, info.identity, sizeof(p->identity));
	pass.entries = freshet_snapshot_entries(p->snapshot);
	pass.first = p->first;
	if (p->anew)
		choose_columns(p);
	pass.columns = &p->columns;
	freshet_snapshot_moment(p->snapshot, &pass.moment);
	memcpy(pass.identity, info.identity, sizeof(pass.identity));
	return top_model_pass(m, &pass);
}

/* Sees from where there are passes now. 0, or -ECANCELED after a line on stderr. */
static int open_anew(struct passes *p)
{
	struct passes now;

	if (passes_open(&p->options, &now) < 0)
		return -ECANCELED;
	memcpy(now.identity, p->identity, sizeof(now.identity));
	passes_close(p);
	*p = now;
	return 0;
}

int passes_take_news(struct passes *p, struct top_model *m)
{
	static const struct timespec look = { .tv_nsec = LOOK_NS };
	uint64_t begin = clock_ns(), interval_ns;
	struct freshet_producer_info info;

	for (;;) {
		int r = passes_take(p, m);

		if (r < 0 || (r > 0 && p->lack == PASSES_CURRENT) || p->lack == PASSES_FAILED)
			return r < 0 ? r : p->lack == PASSES_CURRENT;
		interval_ns = freshet_producer_info(p->open.view, &info) ? 0 : info.interval_ns;
		if (p->open.collector || (p->lack == PASSES_CURRENT && !interval_ns &&
					  clock_ns() - begin > PATIENCE_NS)) {
			lacks(p, PASSES_FAILED, "no new pass came");
			return 0;
		}
		if (p->lack == PASSES_STOPPED ||
		    (p->lack == PASSES_NO_PRODUCER && clock_ns() - p->lack_ns > RESTART_NS)) {
			r = open_anew(p);
			if (r < 0)
				return r;
			continue;
		}
		if (p->lack == PASSES_NO_PRODUCER || freshet_refresh(p->open.view, 0, REQUEST_NS))
			clock_nanosleep(CLOCK_MONOTONIC, 0, &look, NULL);
	}
}
