/* SPDX-License-Identifier: MIT */
/* Text of cgroup files into numbers: pure functions of (text, length), no file access. */
#ifndef FRESHET_PARSE_H
#define FRESHET_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include "source/host_stats.h"

/*
 * cpu.stat: flat "key value" lines in any order; unknown keys, malformed lines and lines cut short
 * by the end of the text are skipped. Fills value[] (times converted to ns) and *present for the
 * columns of family "cpu" that were there. -ENODATA: none was.
 */
int parse_cpu_stat(const char *text, size_t len, uint64_t value[HOST_NSTATS], uint64_t *present);

/* A whole unsigned decimal number, no sign, no overflow. 0 or -EINVAL / -ERANGE. */
int parse_u64(const char *text, size_t len, uint64_t *ret);

/* "0-3,5,7-8": CPU numbers, ascending, into cpu[] (at most capacity). Count or -EINVAL / -E2BIG. */
int parse_cpu_list(const char *text, size_t len, uint32_t *cpu, size_t capacity);

#endif
