/* SPDX-License-Identifier: MIT */
/*
 * What runs in the cgroups that `hammer` polls: in every one a process that sleeps and wakes up now
 * and then; in some a runner, which works in short bursts; in some a pair that hands a byte to and
 * fro over pipes, a switch each time. Runners and pairs would use more than two CPUs; they all do
 * the same unit of work, and count. Sleepers wake by the clock and count none.
 */
#ifndef FRESHET_BENCH_HAMMER_LOAD_H
#define FRESHET_BENCH_HAMMER_LOAD_H

#include <stdint.h>

#include "cgroups.h"

struct hammer_load;

struct hammer_load_sum {
	uint64_t units;
	uint64_t switches; /* of context, of their own accord or not */
	uint64_t sys_ns;   /* CPU time in the kernel; sampled at ticks by most kernels */
};

/* 0, or -1 after a message. */
int hammer_load_start(struct hammer_load **ret, const struct cgroups *c);

/* Of all since they began. */
void hammer_load_sum(const struct hammer_load *l, struct hammer_load_sum *ret);

/* Kills them. NULL is fine. */
void hammer_load_stop(struct hammer_load *l);

#endif
