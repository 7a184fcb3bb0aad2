/* SPDX-License-Identifier: MIT */
/* Implements passes.h. */
#include "cli/passes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "source/collector.h"

int passes_open(const struct open_options *options, struct passes *ret)
{
	int r;

	*ret = (struct passes){ 0 };
	r = open_view(options, &ret->open);
	if (r < 0)
		return r;
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

int passes_refresh(struct passes *p, uint64_t max_age_ns, uint64_t timeout_ns)
{
	return p->open.collector ? 0 : freshet_refresh(p->open.view, max_age_ns, timeout_ns);
}

/* Brings the view up to date, and says in p->stale what is in the way. */
static void advance(struct passes *p)
{
	int r;

	p->stale[0] = '\0';
	if (p->open.collector) {
		if (!freshet_snapshot_count(p->snapshot))
			return; /* open_view() has just made one */
		r = collector_pass(p->open.collector);
		if (r < 0)
			snprintf(p->stale, sizeof(p->stale), "%s",
				 r == -ENODEV ? "the cgroup was removed" : strerror(-r));
		return;
	}
	r = freshet_producer(p->open.view);
	if (r == FRESHET_REPLACED)
		r = freshet_reattach(p->open.view) < 0 ? FRESHET_GONE : FRESHET_ALIVE;
	if (r == FRESHET_GONE)
		snprintf(p->stale, sizeof(p->stale), "the producer has ended");
	else if (r < 0)
		snprintf(p->stale, sizeof(p->stale), "the producer: %s", strerror(-r));
}

static int column_of(const struct freshet_view *view, const char *key)
{
	size_t count;
	const struct freshet_stat *stats = freshet_stats(view, &count);
	int i = freshet_stat_index(view, "cpu", key);

	return i >= 0 && stats[i].unit == FRESHET_NANOSECONDS ? i : -1;
}

int passes_take(struct passes *p, struct top_model *m)
{
	static const char *const keys[TOP_NCOLUMNS] = { [TOP_USAGE] = "usage_usec",
							[TOP_USER] = "user_usec",
							[TOP_SYSTEM] = "system_usec",
							[TOP_THROTTLED] = "throttled_usec" };
	struct freshet_producer_info info;
	struct top_pass pass = { 0 };
	uint64_t limit_ns;
	int r;

	advance(p);
	r = freshet_producer_info(p->open.view, &info);
	if (r == 0)
		r = freshet_snapshot_take(p->snapshot, p->open.view);
	if (r == -ENOMEM)
		return r;
	if (r == 0 && freshet_snapshot_find(p->snapshot, p->open.target, &p->first) < 0)
		r = -ENOENT;
	if (r < 0) {
		snprintf(p->stale, sizeof(p->stale), "%s",
			 r == -ENOENT ? "the group was removed" : strerror(-r));
		return 0;
	}
	p->left_out = info.overflowed;
	p->max_groups = info.max_groups;
	limit_ns = open_view_stale_after(info.interval_ns);
	if (!p->stale[0] && limit_ns && passes_age(p) > limit_ns)
		snprintf(p->stale, sizeof(p->stale), "the producer does not publish");
	pass.entries = freshet_snapshot_entries(p->snapshot);
	pass.first = p->first;
	for (unsigned c = 0; c < TOP_NCOLUMNS; c++)
		pass.column[c] = column_of(p->open.view, keys[c]);
	freshet_snapshot_moment(p->snapshot, &pass.moment);
	memcpy(pass.identity, info.identity, sizeof(pass.identity));
	return top_model_pass(m, &pass);
}
