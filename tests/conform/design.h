/* SPDX-License-Identifier: MIT */
/*
 * What tests/conform asks of a design of hierarchical statistics, so that one body can check the
 * promises of each: ours, on both of its paths (design_freshet.c), and those of bench/designs
 * (design_rival.c). Every group has one counter on its own (ops), one gauge (busy), one set of
 * three counters (set) and one histogram. A design without gauges, histograms or snapshots has
 * NULL for their functions.
 *
 * A design makes some of the promises, and none of them may be seen broken. Of others it says that it
 * lacks them: their breach must be seen, or the checks would be too weak to tell designs apart.
 *
 * Functions of the tree may be called by any thread of the process that opened it, the updates also
 * in signal handlers. Functions of a reader are called by one thread, which has it alone. Results
 * are 0 or -errno; -ENOENT is a group that was removed.
 */
#ifndef CONFORM_DESIGN_H
#define CONFORM_DESIGN_H

#include <stdint.h>

enum promise { EXACT, FRESH, WHOLE, MONOTONE, UNBLOCKED, QUIET, PROMISES };

#define BUCKETS 13u
#define VALUES  64u /* values that are observed lie below; the last bucket gets none of them */

struct group {
	uint64_t ref; /* for readers, in other processes too; never 0 */
	_Alignas(8) char handle[56];
};

struct numbers {
	uint64_t ops;
	uint64_t set[3];
	int64_t busy;
	uint64_t apart; /* not 0: members that are not shown here differ from those that are */
};

struct distribution {
	uint64_t bucket[BUCKETS];
	uint64_t sum;
};

/* One group of a snapshot, parents first. parent_ref 0: the root. */
typedef void see_group(void *arg, uint64_t ref, uint64_t parent_ref, const struct numbers *,
		       const struct distribution *);

struct design {
	const char *name;
	unsigned promises; /* bit by enum promise */
	unsigned lacks;    /* of the others, those whose breach must be seen */

	/* Before the reading process makes the updating one. NULL: nothing to do. */
	int (*prepare)(unsigned groups);
	int (*open)(const char *path, unsigned groups, void **tree);
	void (*close)(void *tree);
	struct group (*root)(void *tree);
	/* later: need not be found by name at once. */
	int (*create)(void *tree, const struct group *parent, const char *name, int later,
		      struct group *ret);
	int (*remove)(void *tree, const struct group *);
	int (*flush)(void *tree);
	int (*add_ops)(const struct group *, uint64_t n);
	int (*add_busy)(const struct group *, int64_t n);
	int (*add_set)(const struct group *); /* +1, +1, +1 */
	int (*observe)(const struct group *, uint64_t value);

	/* tree: this process's own, or NULL: what another process has at the path. */
	int (*attach)(void *tree, const char *path, void **reader);
	void (*detach)(void *reader);
	int (*read)(void *reader, uint64_t ref, struct numbers *); /* fresh */
	int (*read_flushed)(void *reader, uint64_t ref,
			    struct numbers *); /* as of the last flush */
	int (*read_distribution)(void *reader, uint64_t ref, struct distribution *);
	int (*snapshot)(void *reader, see_group *, void *arg);
	/* 1 if a read writes to the memory, else 0; called at rest. NULL: it reads a mapping of the
	 * file at the path, and cannot. */
	int (*read_writes)(void *reader);

	/* The largest value of a bucket. */
	uint64_t (*upper)(void *reader, unsigned bucket);
	/* How often an update was interrupted and started again, as far as it was noticed; or NULL. */
	uint64_t (*restarts)(void);
};

extern const struct design freshet_rseq, freshet_fallback;
/* One of bench/designs by its name, or NULL. */
const struct design *rival_find(const char *name);

#endif
