/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "benches.h"

const struct option timeline_options[] = { { 0 } };
const char timeline_help[] = "";

int timeline_option(const char *name, const char *value)
{
	return 0;
}

int bench_timeline(bool quick)
{
	fprintf(stderr, "freshet-bench: timeline: to be written\n");
	return 1;
}
