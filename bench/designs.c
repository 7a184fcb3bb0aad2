/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "benches.h"

int bench_designs(bool quick)
{
	fprintf(stderr, "freshet-bench: designs: to be written\n");
	return 1;
}
