/* SPDX-License-Identifier: MIT */
/* The real `freshet serve` as a child, and what it costs. */
#ifndef FRESHET_BENCH_DAEMON_H
#define FRESHET_BENCH_DAEMON_H

#include <sys/types.h>
#include <time.h>

struct daemon {
	pid_t pid;
	int port;          /* of 127.0.0.1 */
	char segment[128]; /* file name */
	clockid_t clock;   /* CPU time of all its threads */
};

/*
 * $FRESHET, or the program of that name beside this one, collecting below root at the interval
 * ("100ms"). It listens when this returns. 0, or -1 after a message.
 */
int daemon_start(struct daemon *d, const char *root, const char *interval);

/* SIGTERM, and waits; SIGKILL when it takes too long. */
void daemon_stop(struct daemon *d);

/* CPU time it used while we slept, in per cent of one CPU. -1: it ended. */
double daemon_cpu_pct(const struct daemon *d, double seconds);

/* VmRSS, or -1. */
long daemon_rss_kb(const struct daemon *d);

#endif
