/* SPDX-License-Identifier: MIT */
/* The benches. Each runs below supervise(), reports by report.h, and gives 0, or 1 after a message
 * on stderr. quick: a shorter run, at most 45 s. */
#ifndef FRESHET_BENCH_BENCHES_H
#define FRESHET_BENCH_BENCHES_H

#include <stdbool.h>

int bench_pass(bool quick);
int bench_scrape(bool quick);
int bench_update(bool quick);
int bench_read(bool quick);

#endif
