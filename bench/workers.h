/* SPDX-License-Identifier: MIT */
/*
 * Times updates on one thread, or on two at once, each pinned to a CPU of its own and running before
 * ordinary processes where that is allowed. For C and C++; one set of workers a process.
 */
#ifndef FRESHET_BENCH_WORKERS_H
#define FRESHET_BENCH_WORKERS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WORKERS 2u

/* One way to count. */
struct contender {
	const char *what;                                    /* in rows */
	const char *how;                                     /* one phrase: what an update is */
	void (*one)(void *cells, uint64_t from, uint64_t n); /* loops.h */
	void (*many)(void *cells, uint64_t from, uint64_t n);
	void *cells[WORKERS]; /* of each thread; the same where they share */
	void (*enter)(void);  /* in each thread, before and after; or NULL */
	void (*leave)(void);
	int (*read)(void *cells, unsigned cell); /* for pollers: 0 or -errno; or NULL */
};

/* Pins the caller, which is the first worker, and starts the second one where there is a second CPU.
 * How many there are, or -errno. */
int workers_begin(void);
void workers_end(void);

/* Runs the contender's loop for about `ns`, after a warm-up; all threads begin together and none
 * ends before the time is over. ns for an update, the mean of the threads'. */
double workers_measure(const struct contender *c, unsigned threads, unsigned cells, uint64_t ns);

#ifdef __cplusplus
}
#endif

#endif
