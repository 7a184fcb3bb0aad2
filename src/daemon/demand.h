/* SPDX-License-Identifier: MIT */
/*
 * When to make a pass that somebody asked for.
 *
 * A request wants a pass begun no earlier than a time T, which is never in the future; so one pass
 * that begins now satisfies every request there is, and the queue is one number: the latest T not
 * yet satisfied. Who waits for what is the business of those who ask (http.c, refresh.c).
 *
 * On-demand passes together spend at most a given share of one CPU, by a token bucket in ns of CPU
 * time: it fills with time, each on-demand pass takes what it cost, and one starts only when the
 * bucket holds what the last pass cost. Until then requests wait, for the bucket or for the
 * scheduled pass, whichever comes first. A pass costs what its thread has done since the pass before:
 * waking up, taking requests in and answering them are paid for, too. The HTTP server's thread is not
 * counted: rendering is shared by all who ask between two passes.
 *
 * Pure: no clock, no threads; the caller locks.
 */
#ifndef FRESHET_DEMAND_H
#define FRESHET_DEMAND_H

#include <stdint.h>

#define DEMAND_NEVER UINT64_MAX

struct demand {
	uint64_t since_ns; /* some request wants a pass begun at or after this; 0: none does */
	uint32_t percent;  /* of one CPU, 1 .. 100 */
	int64_t tokens_ns; /* may be negative: a pass cost more than was thought */
	int64_t capacity_ns;
	uint64_t filled_ns; /* time up to which the bucket was filled */
	uint64_t cost_ns;   /* of the last pass */
	uint64_t retry_ns;  /* none earlier, since the last one failed; 0: it did not */
};

/* percent 0: no on-demand passes at all. The bucket starts full and holds one second's share. */
void demand_init(struct demand *d, uint32_t percent, uint64_t now_ns);

/* Somebody wants a pass begun at or after since_ns (> 0). */
void demand_ask(struct demand *d, uint64_t since_ns);

/* When the next on-demand pass may start: now or a time to come; DEMAND_NEVER when none is wanted.
 */
uint64_t demand_due(struct demand *d, uint64_t now_ns);

/* A pass, on demand or scheduled, began at begin_ns and is published; it took cpu_ns of CPU time.
 */
void demand_done(struct demand *d, uint64_t begin_ns, uint64_t cpu_ns, int on_demand);

/* A pass failed: what it cost counts; what was asked for stays, and is tried again after a second.
 */
void demand_failed(struct demand *d, uint64_t now_ns, uint64_t cpu_ns, int on_demand);

#endif
