/* SPDX-License-Identifier: MIT */
/* Ways to read a program's tree, and their timing, inside its process and in another one. */
#ifndef FRESHET_BENCH_READ_WAYS_H
#define FRESHET_BENCH_READ_WAYS_H

#include <stdint.h>
#include <sys/types.h>

#include <freshet/freshet.h>

enum way {
	WAY_LEAF,       /* freshet_read() of a counter */
	WAY_LEAF_SET3,  /* of a set of three */
	WAY_LEAF_TOTAL, /* freshet_read_total() of a counter */
	WAY_ROOT,
	WAY_ROOT_SET3,
	WAY_ROOT_TOTAL,
	WAY_SNAPSHOT, /* freshet_snapshot_take() */
	WAYS,
};

extern const char *const way_names[WAYS];

struct reads {
	const struct freshet_view *view;
	struct freshet_group leaf, root;
	struct freshet_snapshot *snapshot;
};

#define TIMING_MAX 128u /* so that there is room for 31 rounds: stats.h */

/* ns of a read, of each batch */
struct timing {
	int error; /* of a read */
	unsigned batch, count;
	double ns[TIMING_MAX];
};

/* Reads for about budget_ns, but ten batches at least. */
void way_time(struct reads *r, enum way way, uint64_t budget_ns, struct timing *ret);

/* A process that attaches the segment. Runs on the caller's CPU, as what it does for it. */
struct outside {
	pid_t pid;
	int socket;
};

/* leaf: its path. 0 or -errno. */
int outside_start(struct outside *o, const char *segment, const char *leaf);
int outside_time(struct outside *o, enum way way, uint64_t budget_ns, struct timing *ret);
void outside_stop(struct outside *o);

/* A process that does nothing but read in that way, on the last CPU. Its pid, for procs_kill(), or
 * -errno. */
pid_t outside_poll(const char *segment, const char *leaf, enum way way);

#endif
