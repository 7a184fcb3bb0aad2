/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "benches.h"

int bench_hammer(bool quick)
{
	fprintf(stderr, "freshet-bench: hammer: to be written\n");
	return 1;
}
