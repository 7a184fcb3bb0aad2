/* SPDX-License-Identifier: MIT */
/*
 * Writing a segment: one process, one thread.
 *
 * A pass is: writer_begin(); then, when the tree's shape changed, writer_shape(); then writer_row()
 * for groups whose numbers changed; then writer_publish(). Rows not given keep their values.
 */
#ifndef FRESHET_WRITER_H
#define FRESHET_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <freshet/freshet.h>

#include "core/segment.h"

struct writer;

struct writer_options {
	size_t size;             /* of this structure */
	const char *producer;    /* at most 63 bytes */
	const char *socket;      /* file name of the refresh socket beside the segment, or NULL */
	const struct freshet_stat *stats;
	unsigned nstats;
	unsigned max_groups;
	unsigned nbanks;         /* 0: 4 */
	uint64_t interval_ns;
	uint64_t first_pass;     /* its number; 0: 1 */

	/* Of a tree with cells (core/cells.h); elsewhere all of these are 0. */
	unsigned row_words;      /* of a row, of which the first nstats are the columns'; 0: nstats */
	const struct freshet_histogram *histograms;
	unsigned nhistograms;
	const struct seg_section *sections; /* further ones: type, count, size, stride */
	unsigned nsections;
	/* Fills those sections, before the file lies at its path. 0 or -errno. */
	int (*prepare)(void *arg, struct writer *w);
	/* Reserves what else the slots from .. to-1 need, before any of them is given out. 0 or
	 * -errno; then it is called again for them. */
	int (*reserve)(void *arg, uint32_t from, uint32_t to);
	void *arg;
};

/*
 * path NULL: an anonymous segment (memfd), for a reader in the same process. Otherwise the file is
 * made under another name in the same directory (O_NOFOLLOW, O_EXCL, mode 0640), locked, and
 * renamed to path; `path.lock` is held for the writer's lifetime.
 * -EBUSY: a living writer has it; -ENOSPC: no room; -EPERM: the directory belongs to another user
 * or others may write to it; -EINVAL.
 */
int writer_open(const char *path, const struct writer_options *options, struct writer **ret);

/* Marks the segment closed and removes the file (of an anonymous one: nothing). NULL is fine. */
void writer_close(struct writer *w);

/* In a forked child: closes the descriptors, so that the locks end with the parent. The writer can
 * only be closed then, which leaves the file and its state alone. Async-signal-safe. */
void writer_disown(struct writer *w);

/* The segment's descriptor; the writer's. For freshet_attach_fd(). */
int writer_fd(const struct writer *w);

struct writer_node {
	uint64_t id;
	const char *name;    /* at most FRESHET_NAME_MAX bytes; read only when the node is new */
	uint32_t parent;     /* position in the same array; of the root (position 0): 0 */
	uint32_t slot;       /* WRITER_NEW: assign one; else what an earlier call put here */
};
#define WRITER_NEW UINT32_MAX

/* A slot that has had so many groups is not used again. */
#define WRITER_MAX_GENERATION ((1u << 24) - 1)

/* Starts a pass. begin_ns: CLOCK_MONOTONIC before the first number was read. */
void writer_begin(struct writer *w, uint64_t begin_ns);

/*
 * The whole tree, in pre-order. New nodes get their slot written into them; slots of nodes no longer
 * listed are freed, and reused once no bank shows them. *overflowed is how many nodes were left out
 * (with all their descendants) because there was no room, no memory, or because their path does not
 * fit into FRESHET_PATH_MAX; their slot stays WRITER_NEW.
 */
void writer_shape(struct writer *w, struct writer_node *nodes, uint32_t count,
		  uint32_t *overflowed);

/* Groups that the producer itself had no room for, and so never lists: the segment's header counts
 * them as overflowed, together with those of writer_shape(). */
void writer_left_out(struct writer *w, uint32_t groups);

/* For a producer that needs a group's slot before the pass that shows it: takes one for a node to
 * come, under whose .slot it is to be given to writer_shape(). 0, -ENOSPC, -errno of the reservation. */
int writer_take(struct writer *w, uint64_t id, const char *name, uint32_t *slot,
		uint32_t *generation);

/* The section of a type, mapped. */
void *writer_section(const struct writer *w, uint32_t type);

/* Memory for [at, at + size) of the mapping, where size >= 1. 0 or -errno. */
int writer_reserve(const struct writer *w, const void *at, size_t size);

/* The words of a row, to be changed before the next publication. */
uint64_t *writer_edit(struct writer *w, uint32_t slot);

/* Number of the pass in preparation. */
uint64_t writer_pass(const struct writer *w);

/* seg_bank.epoch of this pass and those that follow. */
void writer_epoch(struct writer *w, uint64_t epoch);

/* A node's numbers; values has nstats words. Slot as assigned by writer_shape. */
void writer_row(struct writer *w, uint32_t slot, const uint64_t *values, uint64_t present);

/* Makes the pass visible. Returns its number. */
uint64_t writer_publish(struct writer *w, uint64_t end_ns);

#endif
