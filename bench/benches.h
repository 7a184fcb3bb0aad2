/* SPDX-License-Identifier: MIT */
/* The benches. Each runs below supervise(), reports by report.h, and gives 0, or 1 after a message
 * on stderr. quick: a shorter run, at most 50 s. */
#ifndef FRESHET_BENCH_BENCHES_H
#define FRESHET_BENCH_BENCHES_H

#include <getopt.h>
#include <stdbool.h>

int bench_pass(bool quick);
int bench_scrape(bool quick);
int bench_update(bool quick);
int bench_read(bool quick);
int bench_all_designs(bool quick); /* `designs` */
int bench_hammer(bool quick);
int bench_barriers(bool quick);
int bench_timeline(bool quick);

extern const struct option timeline_options[];
extern const char timeline_help[];
int timeline_option(const char *name, const char *value);

#endif
