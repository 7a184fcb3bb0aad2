/* SPDX-License-Identifier: MIT */
/*
 * What the collector asks of a source of cgroup numbers (bpf.c, files.c): whole passes over a tree.
 *
 * A source keeps its tree from pass to pass, so that a pass over an unchanged tree costs little:
 * the collector looks at `shape` and at each group's `changed`, and copies only what moved.
 * One thread. Nothing here is shared with another process: that is the segment's work.
 */
#ifndef FRESHET_SOURCE_H
#define FRESHET_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "source/host_stats.h"

struct source_group {
	uint64_t id;                 /* inode number of the cgroup's directory */
	uint32_t parent;             /* position; of the root: 0 */
	const char *name;            /* last part of the path, "" for the root; the source's */
	uint32_t slot;               /* the collector's: UINT32_MAX in a group new to the tree */
	uint64_t changed;            /* number of the pass that last changed value[] or present */
	uint64_t present;            /* bit per column */
	uint64_t value[HOST_NSTATS]; /* in the units of host_stats: times in ns; absent: 0 */
};

/* The tree after a pass; the source's, valid until the next pass. */
struct source_tree {
	uint64_t pass;  /* rises by one with each successful pass, from 1 */
	uint64_t shape; /* changes whenever the array below is another list of groups */
	struct source_group **group; /* in pre-order; [0] is the root */
	uint32_t count;
	uint32_t gone;     /* groups that vanished while this pass looked at them */
	uint32_t left_out; /* groups that found no room, or whose name is not known yet */
	uint64_t begin_ns; /* CLOCK_MONOTONIC before the first number was read */
};

struct source;

struct source_ops {
	const char *name; /* "bpf", "files" */
	/* One pass. 0: *tree is filled. -errno: nothing changed, and a later pass may succeed
	 * (-ENODEV: the root itself is gone). */
	int (*pass)(struct source *s, struct source_tree *tree);
	void (*free)(struct source *s);
};

struct source {
	const struct source_ops *ops;
};

struct source_options {
	const char *root; /* absolute directory of the cgroup the tree starts at */
	int is_top;       /* root is the hierarchy's real root, whose numbers are the machine's */
	uint32_t max_groups;
};

/*
 * On failure: -errno, and `why` (at least 256 bytes) says in one line what is missing and what to
 * do about it.
 * bpf:   -EPERM no privilege; -EOPNOTSUPP this kernel has no way; -errno of what failed.
 * files: -errno of opening the root.
 */
int source_bpf_open(const struct source_options *options, struct source **ret, char *why,
		    size_t why_size);
int source_files_open(const struct source_options *options, struct source **ret, char *why,
		      size_t why_size);

#endif
