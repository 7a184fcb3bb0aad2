/* SPDX-License-Identifier: MIT */
/*
 * A contender that is a program of its own, beside freshet-bench: freshet-bench-prometheus-cpp. It
 * runs the same workers, and measures when asked: a line "threads cells ns" on its standard input
 * is answered by the ns for an update.
 */
#ifndef FRESHET_BENCH_PEER_H
#define FRESHET_BENCH_PEER_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct peer {
	pid_t pid; /* 0: not there */
	FILE *to, *from;
};

/* Before the caller is pinned. 0; -ENOENT: there is no such program. */
int peer_start(struct peer *p, const char *name);

/* 0, or -EPIPE: it ended. */
int peer_measure(struct peer *p, unsigned threads, unsigned cells, uint64_t ns, double *ret);

void peer_stop(struct peer *p);

#endif
