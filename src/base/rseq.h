/* SPDX-License-Identifier: MIT */
/* Restartable sequences (rseq(2)) as glibc has registered them for every thread, and the barrier that
 * interrupts them (membarrier(2)). */
#ifndef FRESHET_RSEQ_H
#define FRESHET_RSEQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rseq_place {
	ptrdiff_t area; /* of a thread's struct rseq, from its thread pointer */
	unsigned field; /* in it: the number of the CPU slot, mm_cid or cpu_id */
	bool dense;     /* mm_cid: at most as many as CPUs are online */
};

/* 0, or -EOPNOTSUPP: the calling thread has no rseq, or the kernel no barrier for it. */
int rseq_find(struct rseq_place *ret);

/* The calling thread's slot, or -1 if it is not registered. */
int rseq_slot(const struct rseq_place *place);

/*
 * When it returns 0, every sequence of this process that was under way has committed or will start
 * again, and its stores are seen. -errno. A system call; other CPUs that run the process are
 * interrupted.
 */
int rseq_barrier(void);

#endif
