/* SPDX-License-Identifier: MIT */
/* Implements cpus.h. */
#include "base/cpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

unsigned cpus_possible(void)
{
	FILE *f = fopen("/sys/devices/system/cpu/possible", "re");
	int n = get_nprocs_conf();
	char line[256] = "";

	if (f) {
		/* Ranges, "0-3" or "0,2-5"; the last number is the highest. */
		if (fgets(line, sizeof(line), f)) {
			const char *end = line + strcspn(line, "\n"), *p = end;

			while (p > line && p[-1] >= '0' && p[-1] <= '9')
				p--;
			if (p < end && atoi(p) + 1 > n)
				n = atoi(p) + 1;
		}
		fclose(f);
	}
	return n > 0 ? (unsigned)n : 1;
}

unsigned cpus_online(void)
{
	int n = get_nprocs();

	return n > 0 ? (unsigned)n : 1;
}
