/* SPDX-License-Identifier: MIT */
/*
 * What ThreadSanitizer says of a design. freshet-bench-designs-tsan, beside freshet-bench, is the
 * designs and designs_live.c built with it; it runs RACES_READERS readers on a small tree.
 */
#ifndef FRESHET_BENCH_DESIGNS_RACES_H
#define FRESHET_BENCH_DESIGNS_RACES_H

#include <stdint.h>

#include "designs/design.h"

#define RACES_READERS 2u
#define RACES_OWNERS  4u
#define RACES_SLOTS   4u
#define RACES_SET     3u
#define RACES_PROGRAM "freshet-bench-designs-tsan"
#define RACES_CANNOT  3 /* its exit code: it cannot run the design */

struct races {
	unsigned reports;      /* of data races, each pair of places in the code once */
	double seconds_per_1m; /* CPU time of a reader for 1M reads of an owner */
};

/* With it, for about `ns`. 0; -ENOENT: no such program; -EOPNOTSUPP: it cannot run the design;
 * -EPROTO: it failed. */
int races_run(const char *design, uint64_t ns, struct races *ret);

/* The same load in this process. 0 or -errno. */
int races_plain(const struct bench_design *design, uint64_t ns, double *seconds_per_1m);

#endif
