/* SPDX-License-Identifier: MIT */
/* Asking the kernel to flush a cgroup's statistics, by its kfunc (flush.bpf.c). */
#ifndef FRESHET_BENCH_FLUSH_H
#define FRESHET_BENCH_FLUSH_H

#include <stdint.h>

struct flush;

/* -errno: this kernel has no such kfunc, or BPF is not allowed. */
int flush_open(int cgroup_fd, struct flush **ret);
void flush_close(struct flush *f); /* NULL is fine */

/* Flushes the cgroup and all below it. */
int flush_run(struct flush *f);

/* Flushes, and gives the cgroup's CPU time. */
int flush_read(struct flush *f, uint64_t *usage_ns);

#endif
