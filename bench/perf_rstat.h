/* SPDX-License-Identifier: MIT */
/* Where in the kernel the CPUs spend their time: the share of it in the functions of rstat. */
#ifndef FRESHET_BENCH_PERF_RSTAT_H
#define FRESHET_BENCH_PERF_RSTAT_H

#include <stdint.h>

struct perf_rstat;

/* Samples all CPUs, a thousand times a second each, from now on. -errno: not allowed, or the kernel
 * tells no addresses of its functions. */
int perf_rstat_open(struct perf_rstat **ret);

/* Adds what was sampled since the last call: samples of busy CPUs, and those of them in whose kernel
 * call chain a function of rstat stands. */
void perf_rstat_take(struct perf_rstat *p, uint64_t *samples, uint64_t *in_rstat);

/* NULL is fine. */
void perf_rstat_close(struct perf_rstat *p);

#endif
