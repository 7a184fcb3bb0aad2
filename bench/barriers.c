/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "benches.h"

int bench_barriers(bool quick)
{
	fprintf(stderr, "freshet-bench: barriers: to be written\n");
	return 1;
}
