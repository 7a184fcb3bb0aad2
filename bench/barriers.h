/* SPDX-License-Identifier: MIT */
/*
 * What the bench `barriers` measures: operations that order or protect (a fence, an atomic addition,
 * masking), some of them in succession, in the middle of something that is called their base.
 */
#ifndef FRESHET_BENCH_BARRIERS_H
#define FRESHET_BENCH_BARRIERS_H

#include <stdbool.h>
#include <stddef.h>

#include "barriers_count.h"

struct barrier {
	const char *op;
	unsigned count;
	/* Some ten or hundred microseconds of the base with the operations in it: *ns for each time.
	 * 0 or -errno. NULL: cannot be had here. */
	int (*turn)(const struct barrier *b, double *ns);
	void (*run)(void); /* barriers_user.c: the operations */
	unsigned program;  /* barriers_kernel.c: which one */
};

struct barriers {
	const char *where;  /* "user", "kernel" */
	const char *beside; /* what the base is */
	struct barrier base;
	const struct barrier *list;
	size_t count;
};

struct barriers_how {
	const char *op, *how; /* what it is, a phrase */
};

/*
 * In user space. LOOKUP: finding a group of a program's tree by its path and reading one of its
 * numbers, which checks that the group still lives; the operations stand between the two. OPEN_CLOSE:
 * of the file `path`; between the two as well.
 */
enum { BARRIERS_LOOKUP, BARRIERS_OPEN_CLOSE, BARRIERS_USER };

/* Makes the tree. path must stay. 0 or -errno. */
int barriers_user_open(const char *path);
void barriers_user_close(void);
const struct barriers *barriers_user(int family);
const struct barriers_how *barriers_user_how(size_t *count);
unsigned barriers_groups(void); /* of the tree, without the root */
bool barriers_user_lacks_rseq(void);

/* access(2) of that path: what the kernel's are set in proportion to. */
int barriers_access(double *ns);

/*
 * In the kernel: BPF programs, the base being a loop that does nothing. Always usable; what this
 * kernel or this user cannot have has no turn, and why says so in a line ("" if all is there).
 */
void barriers_kernel_open(char *why, size_t size);
void barriers_kernel_close(void);
const struct barriers *barriers_kernel(void);
const struct barriers_how *barriers_kernel_how(size_t *count);

/*
 * The other side of an asymmetric barrier: membarrier(2) by the caller, ns a call, while the process's
 * other thread sleeps, and while it runs on another CPU; and how long a running thread stands still
 * for each call that another one makes. One measurement takes some 20 ms. 0 or -errno: -ENODEV with
 * one CPU.
 */
enum barriers_side { SIDE_ASLEEP, SIDE_RUNNING, SIDE_INTERRUPTED, BARRIERS_SIDES };
int barriers_other(enum barriers_side side, double *ns);

#endif
