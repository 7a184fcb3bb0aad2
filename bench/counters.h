/* SPDX-License-Identifier: MIT */
/* The contenders of `update` that are not Freshet and are written in C. */
#ifndef FRESHET_BENCH_COUNTERS_H
#define FRESHET_BENCH_COUNTERS_H

#include <stddef.h>

#include "workers.h"

/* `plain` comes first. Theirs for good. */
const struct contender *counters(size_t *count);

/* Which are missing, and why: a line each, or NULL at the end. */
const char *counters_missing(size_t i);

#endif
