/* SPDX-License-Identifier: MIT */
/*
 * freshet-bench-designs-tsan DESIGN NS: runs a design's live checks for so long, built with
 * ThreadSanitizer; for `freshet-bench designs` (designs_races.h). Prints the seconds that 1M reads
 * took. Exit codes: 0, 1 failed, 3 it cannot run the design (which has assembly in it, say).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "designs_races.h"
#include "tails.h"

int main(int argc, char **argv)
{
	const struct bench_design *design = argc == 3 ? bench_design_find(argv[1]) : NULL;
	double seconds = 0;
	int err;

	if (!design)
		return 1;
	tails_begin();
	err = races_plain(design, strtoull(argv[2], NULL, 10), &seconds);
	if (err == -EOPNOTSUPP)
		return RACES_CANNOT;
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	printf("%.6f\n", seconds);
	return 0;
}
