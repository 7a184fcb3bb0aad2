/* SPDX-License-Identifier: MIT */
/*
 * A design of hierarchical statistics, as those who measure it (bench/designs.c) and check it
 * (tests/conform) see it: a tree of groups, each with two families of counters (the kernel's cpu and
 * memory, say), which are updated on CPU slots and read by anybody.
 *
 * A family is a set: one update adds n to every counter of it. So a read whose counters differ is
 * torn, and what is torn, stale or lost can be seen from outside.
 *
 * CPU slots stand for CPUs, of which there can be more than this machine has. Whoever updates "runs
 * on" a slot from enter() to leave(): nobody else updates on it meanwhile, as on a CPU with
 * interrupts masked. Threads that want the same slot take turns. (Where a design lets several threads
 * update on one slot, they can be on it together.)
 *
 * Any thread may call any function, but for open and close; update functions with a slot it has
 * entered, others without one. None may be called in a signal handler that interrupted
 * another one: the kernel masks interrupts there. Results are 0 or -errno; -ENOENT: the group was
 * removed. A design with memory works from any process that has that memory at the same address.
 */
#ifndef FRESHET_BENCH_DESIGN_H
#define FRESHET_BENCH_DESIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DESIGN_FAMILIES 2u
#define DESIGN_MAX_SET  16u

/* DESIGN section 1, in the order of enum promise of tests/conform. */
enum design_promise {
	DESIGN_EXACT = 1 << 0,
	DESIGN_FRESH = 1 << 1,
	DESIGN_WHOLE = 1 << 2,
	DESIGN_MONOTONE = 1 << 3,
	DESIGN_UNBLOCKED = 1 << 4,
	DESIGN_QUIET = 1 << 5,
};

struct design_shape {
	uint32_t groups;   /* at a time at most, with the root */
	uint32_t slots;    /* CPU slots */
	uint32_t set_size; /* counters in a family, 1 .. DESIGN_MAX_SET */
};

struct bench_design {
	const char *name;
	const char *backend;
	const char *models; /* one phrase: what and where from */
	unsigned promises;  /* kept */
	unsigned lacks;     /* of the others, those whose breach can be seen in a short run */

	/* Bytes of zeroed memory, aligned to a page, that open() wants and that stay until close();
	 * NULL: it has its own, of this process. open: -EOPNOTSUPP where this machine cannot run it,
	 * which is to be left out then. */
	size_t (*size)(const struct design_shape *);
	int (*open)(const struct design_shape *, void *memory, void **tree);
	void (*close)(void *tree);

	/* Groups by a number that is never given twice, and never 0. May block. */
	uint64_t (*root)(void *tree);
	int (*create)(void *tree, uint64_t parent, uint64_t *ret);
	int (*remove)(void *tree, uint64_t group); /* which has no children (any more) */

	/* The slot that was entered: `wanted` if it is free, else the next one that is. May block. */
	unsigned (*enter)(void *tree, unsigned wanted);
	void (*leave)(void *tree, unsigned slot);
	/* Adds n to each counter of the family. */
	int (*update)(void *tree, unsigned slot, uint64_t group, unsigned family, uint64_t n);
	/* `count` updates by 1, of groups in turn: a loop without a call, to be timed. */
	void (*update_many)(void *tree, unsigned slot, const uint64_t *groups, unsigned ngroups,
			    unsigned family, uint64_t count);

	/* Brings the group's subtree up to date, as far as the design has that to do. */
	int (*flush)(void *tree, uint64_t group, unsigned family);
	/* What a poll of the group's file does: set_size values. */
	int (*read)(void *tree, uint64_t group, unsigned family, uint64_t *values);
	/* The same as of the last flush. */
	int (*read_total)(void *tree, uint64_t group, unsigned family, uint64_t *values);

	/* NULL: no lock that holds readers up. Else: starts to time how long it is held, and says the
	 * longest time since the last call, ns. */
	uint64_t (*longest_hold)(void *tree);
};

/* All, ours last; NULL at the end. */
extern const struct bench_design *const bench_designs[];
const struct bench_design *bench_design_find(const char *name);

#endif
