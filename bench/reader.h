/* SPDX-License-Identifier: MIT */
/* What reading one group from a segment costs another process. */
#ifndef FRESHET_BENCH_READER_H
#define FRESHET_BENCH_READER_H

#include "stats.h"

/*
 * Starts a process on the CPU that attaches the segment and reads the CPU set (the columns of set 0) of
 * the group at path, in samples of many reads, until *ns is filled with `samples` of them; publish()
 * is called here every 100 ms meanwhile.
 *
 * From before its first read until after its last that process may make no system call at all: a
 * seccomp filter kills it at the first one. -EPERM: that happened; -errno; 0.
 */
int reader_measure(const char *segment, const char *path, int cpu, size_t samples,
		   int (*publish)(void *arg), void *arg, struct stats *ns);

#endif
