/* SPDX-License-Identifier: MIT */
/*
 * The pollers of `hammer`: processes of which each reads one cgroup's CPU numbers again and again, by
 * the method and at the pace that they are told.
 */
#ifndef FRESHET_BENCH_HAMMER_POLL_H
#define FRESHET_BENCH_HAMMER_POLL_H

#include <stdbool.h>
#include <stdint.h>

#include <freshet/freshet.h>

#include "cgroups.h"

enum hammer_method {
	HAMMER_NONE, /* the pollers sleep */
	HAMMER_SPIN, /* they read nothing */
	HAMMER_OPEN,
	HAMMER_KEPT,
	HAMMER_BPF_FLUSH,
	HAMMER_SEGMENT,
	HAMMER_MAX_AGE_0,
	HAMMER_METHODS,
};

extern const char *const hammer_method_names[HAMMER_METHODS];

/* How old the numbers were when the read ended, in ns: of text and bpf+flush, which are as of the
 * read, the read's own duration. */
#define HAMMER_AGE_BUCKETS 833u
extern const struct freshet_histogram hammer_ages;

/* What the pollers did in a window. */
struct hammer_tally {
	uint64_t reads;
	uint64_t read_ns;  /* that they took, as a poller sees it: waiting for a CPU, too */
	uint64_t worst_ns; /* the longest read, or batch of reads */
	uint64_t cpu_ns;   /* of the pollers, all that they do */
	uint64_t sys_ns;   /* in the kernel; sampled at ticks by most kernels */
	uint64_t late;     /* passes asked for that did not come within a second */
	uint64_t ages[HAMMER_AGE_BUCKETS];
};

void hammer_tally_add(struct hammer_tally *to, const struct hammer_tally *t);

struct hammer_poll;

/*
 * `count` pollers of cgroups that lie apart, or, if there are fewer, of all in turn. segment: the
 * living segment of them. They sleep at first. 0, or -1 after a message.
 */
int hammer_poll_start(struct hammer_poll **ret, const struct cgroups *c, const char *segment,
		      unsigned count);

/* A poller misses bpf+flush here, -errno; else 0. */
int hammer_poll_lacks_flush(const struct hammer_poll *p);

/*
 * From now on by this method, every pace_us (0: without a pause). count: what they read from now on
 * counts, until the next call: returns at once. Else returns when all have taken it in, and what counted
 * before is in *ret (NULL: not wanted). 0, or -1 after a message: one failed, or some process ended
 * that should not have.
 */
int hammer_poll_tell(struct hammer_poll *p, enum hammer_method method, unsigned pace_us, bool count,
		     struct hammer_tally *ret);

/* Kills them. NULL is fine. */
void hammer_poll_stop(struct hammer_poll *p);

#endif
