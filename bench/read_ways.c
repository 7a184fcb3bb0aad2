/* SPDX-License-Identifier: MIT */
/* Implements read_ways.h. */
#include "read_ways.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "procs.h"
#include "read_tree.h"

#define BATCH_NS  NSEC_PER_USEC /* at least; the clock takes some tens */
#define BATCH_MAX 64u

const char *const way_names[WAYS] = {
	[WAY_LEAF] = "leaf",         [WAY_LEAF_SET3] = "leaf-set3", [WAY_LEAF_TOTAL] = "leaf-total",
	[WAY_ROOT] = "root",         [WAY_ROOT_SET3] = "root-set3", [WAY_ROOT_TOTAL] = "root-total",
	[WAY_SNAPSHOT] = "snapshot",
};

static inline int read_once(struct reads *r, enum way way)
{
	uint64_t value[READ_STATS], present;

	switch (way) {
	case WAY_LEAF:
		return freshet_read(r->view, r->leaf, READ_SINGLE, 1, value, &present, NULL);
	case WAY_LEAF_SET3:
		return freshet_read(r->view, r->leaf, READ_SET, READ_STATS - READ_SET, value,
				    &present, NULL);
	case WAY_LEAF_TOTAL:
		return freshet_read_total(r->view, r->leaf, READ_SINGLE, 1, value, &present, NULL);
	case WAY_ROOT:
		return freshet_read(r->view, r->root, READ_SINGLE, 1, value, &present, NULL);
	case WAY_ROOT_SET3:
		return freshet_read(r->view, r->root, READ_SET, READ_STATS - READ_SET, value,
				    &present, NULL);
	case WAY_ROOT_TOTAL:
		return freshet_read_total(r->view, r->root, READ_SINGLE, 1, value, &present, NULL);
	case WAY_SNAPSHOT:
		return freshet_snapshot_take(r->snapshot, r->view);
	case WAYS:
		break;
	}
	return -EINVAL;
}

/* ns of n reads */
static uint64_t time_batch(struct reads *r, enum way way, unsigned n, int *error)
{
	uint64_t begin = clock_ns();

	for (unsigned i = 0; i < n; i++) {
		int err = read_once(r, way);

		if (err)
			*error = err;
	}
	return clock_ns() - begin;
}

void way_time(struct reads *r, enum way way, uint64_t budget_ns, struct timing *ret)
{
	uint64_t end;

	ret->error = 0;
	ret->count = 0;
	ret->batch = 1;
	time_batch(r, way, 1, &ret->error); /* warms up */
	while (ret->batch < BATCH_MAX && time_batch(r, way, ret->batch, &ret->error) < BATCH_NS)
		ret->batch *= 2;
	end = clock_ns() + budget_ns;
	while (ret->count < TIMING_MAX && (ret->count < 10 || clock_ns() < end)) {
		uint64_t ns = time_batch(r, way, ret->batch, &ret->error);

		ret->ns[ret->count++] = (double)ns / ret->batch;
	}
}

static int attach(struct reads *r, const char *segment, const char *leaf)
{
	struct freshet_view *view;
	int err = freshet_attach(segment, &view);

	memset(r, 0, sizeof(*r));
	if (!err) {
		r->view = view; /* until the process ends */
		err = freshet_root(view, &r->root);
	}
	if (!err)
		err = freshet_find(view, leaf, &r->leaf);
	if (!err)
		err = freshet_snapshot_new(&r->snapshot);
	return err;
}

struct request {
	enum way way;
	uint64_t budget_ns;
};

static void serve(int s, const char *segment, const char *leaf)
{
	static struct timing t;
	struct request q;
	struct reads r;
	int err = attach(&r, segment, leaf);

	while (recv(s, &q, sizeof(q), 0) == sizeof(q)) {
		if (err)
			t.error = err;
		else
			way_time(&r, q.way, q.budget_ns, &t);
		if (send(s, &t, sizeof(t), MSG_NOSIGNAL) != sizeof(t))
			break;
	}
}

int outside_start(struct outside *o, const char *segment, const char *leaf)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	o->pid = procs_fork();
	if (o->pid == 0) {
		close(pair[0]);
		procs_realtime(1);
		serve(pair[1], segment, leaf);
		_exit(0);
	}
	close(pair[1]);
	o->socket = pair[0];
	if (o->pid > 0)
		return 0;
	close(pair[0]);
	return -EAGAIN;
}

int outside_time(struct outside *o, enum way way, uint64_t budget_ns, struct timing *ret)
{
	const struct request q = { .way = way, .budget_ns = budget_ns };

	if (send(o->socket, &q, sizeof(q), MSG_NOSIGNAL) != sizeof(q) ||
	    recv(o->socket, ret, sizeof(*ret), 0) != sizeof(*ret))
		return -EPIPE;
	return ret->error;
}

void outside_stop(struct outside *o)
{
	if (o->pid <= 0)
		return;
	close(o->socket);
	procs_kill(o->pid);
	o->pid = 0;
}

pid_t outside_poll(const char *segment, const char *leaf, enum way way)
{
	pid_t pid = procs_fork();
	struct reads r;

	if (pid == 0) {
		procs_pin(0, procs_last_cpu());
		if (attach(&r, segment, leaf) == 0)
			while (read_once(&r, way) == 0)
				;
		_exit(1);
	}
	return pid < 0 ? -errno : pid;
}
