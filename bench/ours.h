/* SPDX-License-Identifier: MIT */
/* Freshet as a contender of `update`: each kind of update on both backends, each on a tree of its own
 * with LOOPS_CELLS groups. */
#ifndef FRESHET_BENCH_OURS_H
#define FRESHET_BENCH_OURS_H

#include <stddef.h>

#include "workers.h"

enum ours_kind { OURS_SINGLE, OURS_SET3, OURS_HISTOGRAM, OURS_KINDS };

/* In the order of enum ours_kind: by rseq (if there is any here), then those of the fallback; one of
 * each, and a failure is an error. 0 or -errno. Which are missing: a NULL `one`. */
int ours_open(void);
void ours_close(void);

const struct contender *ours(int fallback, enum ours_kind kind);

#endif
