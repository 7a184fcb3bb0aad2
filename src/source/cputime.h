/* SPDX-License-Identifier: MIT */
/* User and system time as cpu.stat prints them: tick samples scaled to the exact run time. */
#ifndef FRESHET_CPUTIME_H
#define FRESHET_CPUTIME_H

#include <stdint.h>

/* What was said last, ns. user + system never falls; neither does each of them. */
struct cputime {
	uint64_t user;
	uint64_t system;
};

/*
 * exec: exact run time; utime, stime: tick samples; all ns, all non-decreasing from call to call.
 * Updates *said so that both parts are monotone and, unless they already claim more than exec,
 * sum to it. The kernel does the same when it prints (cputime_adjust, kernel/sched/cputime.c), with
 * its own memory of what it said: usage agrees exactly, the split within what the ticks differ by.
 */
void cputime_adjust(struct cputime *said, uint64_t exec, uint64_t utime, uint64_t stime);

#endif
