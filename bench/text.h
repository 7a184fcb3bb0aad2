/* SPDX-License-Identifier: MIT */
/* The two ways of reading cpu.stat as text, to the parsed numbers. */
#ifndef FRESHET_BENCH_TEXT_H
#define FRESHET_BENCH_TEXT_H

#include <stdint.h>

#include "cgroups.h"
#include "source/host_stats.h"

struct text {
	uint32_t count;
	char **file;                    /* cpu.stat of each cgroup */
	int *fd;                        /* the same, kept open */
	uint64_t (*value)[HOST_NSTATS]; /* what was read last */
};

/* Raises the limit of open files. 0, or -1 after a message. */
int text_open(struct text *t, const struct cgroups *c);
void text_close(struct text *t);

/* Every cpu.stat: open, read, close, parse. 0 or -errno. */
int text_read_opening(struct text *t);

/* Every cpu.stat: pread, parse. 0 or -errno. */
int text_read_kept(struct text *t);

#endif
