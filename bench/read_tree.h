/* SPDX-License-Identifier: MIT */
/* The tree that the bench `read` reads: a root, tenants, services below them; a counter and a set of
 * three counters each. */
#ifndef FRESHET_BENCH_READ_TREE_H
#define FRESHET_BENCH_READ_TREE_H

#include <stdint.h>

#include <freshet/freshet.h>

struct read_tree {
	char path[128];
	struct freshet_tree *tree;
	unsigned groups;               /* with the root */
	struct freshet_handle *handle; /* 0: the root; the last is a leaf */
	uint64_t bytes;                /* of the file when only the root was there */
};

enum { READ_SINGLE = 0, READ_SET = 1, READ_STATS = 4 }; /* columns; the set has the rest */

/* Below directory. 0 or -errno; nothing is left on failure. */
int read_tree_open(struct read_tree *t, const char *directory, unsigned groups,
		   enum freshet_backend backend);
void read_tree_close(struct read_tree *t);

/* The leaf's path in the tree. */
int read_tree_leaf(const struct read_tree *t, char *buf, size_t size);

/*
 * Updates `dirty` groups spread over the tree, the leaf among them, once each from every one of
 * `threads` threads at the same time: the caller and others, pinned to the last CPU. 0 or -errno.
 */
int read_tree_touch(struct read_tree *t, unsigned dirty, unsigned threads);

/* Lets that many threads, all but the caller on the last CPU, update the leaf without a pause for a
 * while: fallback slots come into use when a thread is interrupted in the middle of an update. */
int read_tree_storm(struct read_tree *t, unsigned threads, uint64_t ns);

/* CPU slots that updates have ever used, as the segment says; 0 if it does not. */
unsigned read_tree_slots(const struct read_tree *t);

/* Memory of the file, bytes. */
uint64_t read_tree_bytes(const struct read_tree *t);

/* Bytes of one group's cell on one CPU slot; 0 if the segment does not say. */
unsigned read_tree_cell(const struct read_tree *t);

#endif
