/* SPDX-License-Identifier: MIT */
/*
 * The host collector: passes of a source, published into a segment. What `freshet serve` runs, and
 * what ls, show and top run in-process when no daemon is there.
 * One thread at a time; readers of the segment need no coordination with it.
 */
#ifndef FRESHET_COLLECTOR_H
#define FRESHET_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum collector_source { COLLECT_AUTO, COLLECT_BPF, COLLECT_FILES };

struct collector_options {
	size_t size;      /* of this structure */
	const char *root; /* as mount_resolve() takes it; NULL: the whole hierarchy */
	enum collector_source source;
	const char *segment;  /* path of the segment; NULL: anonymous */
	const char *socket;   /* file name of the refresh socket beside it, or NULL */
	const char *producer; /* name in the segment */
	uint32_t max_groups;  /* 0: 65,536 */
	uint64_t interval_ns; /* said in the segment */
};

struct collector;

/*
 * Opens source and segment; makes no pass yet. `why` (at least 512 bytes) is a line for people,
 * without a newline: on success which source was taken and why ("bpf: ..."), on failure what is
 * wrong and what to do. -errno as of the source or of writer_open(); -ENOENT: no cgroup2, or no such
 * root.
 */
int collector_open(const struct collector_options *options, struct collector **ret, char *why,
		   size_t why_size);
void collector_close(struct collector *c);

/* Whether the segment's file still lies at path. Two system calls. */
bool collector_placed(const struct collector *c, const char *path);

/*
 * Makes a segment anew at options->segment (the options of collector_open()), after its file was
 * removed: the old one ends, pass numbers go on, the next pass fills the new one, and whoever has
 * attached collector_fd() attaches it again then. On failure -errno and `why` as above; passes go
 * into an anonymous segment (which is attached in the same way) until a later call succeeds.
 */
int collector_place(struct collector *c, const struct collector_options *options, char *why,
		    size_t why_size);

/* One pass, published. -errno: nothing was published. */
int collector_pass(struct collector *c);

/* The segment's descriptor, for freshet_attach_fd(); after the first pass. */
int collector_fd(const struct collector *c);

const char *collector_source_name(const struct collector *c); /* "bpf" or "files" */
const char *collector_root(const struct collector *c);        /* absolute directory */

struct collector_stats {
	uint64_t passes;
	uint64_t failed;   /* passes that gave an error */
	uint64_t gone;     /* groups that vanished while a pass looked at them, since the start */
	uint64_t last_ns;  /* duration of the last pass, publication included */
	uint32_t groups;   /* in the last pass */
	uint32_t left_out; /* groups of the last pass that found no room */
};
void collector_stats(const struct collector *c, struct collector_stats *ret);

#endif
