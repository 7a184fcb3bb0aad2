/* SPDX-License-Identifier: MIT */
/* Threads that read while others update: all pinned to the last CPU, at ordinary priority. */
#ifndef FRESHET_BENCH_POLLERS_H
#define FRESHET_BENCH_POLLERS_H

#include "workers.h"

#define POLLERS_MAX 100u

enum poll {
	POLL_OWN_5K,     /* the updated group, POLL_RATE times a second, all pollers together */
	POLL_OTHER_FLAT, /* other groups, each poller its own, without a pause */
	POLL_OWN_FLAT,   /* the updated group, without a pause */
	POLLS,
};

#define POLL_RATE 5000u

/* Reads cell 0 of the contender's, or others. Returns once they read. 0 or -errno. */
int pollers_start(const struct contender *c, enum poll poll, unsigned count);

/* 0, or the first error of a read. reads_s: reads a second, of all. */
int pollers_stop(double *reads_s);

#endif
