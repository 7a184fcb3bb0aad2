/* SPDX-License-Identifier: MIT */
/*
 * The bench's own cgroups, all below one folder, and its temporary directory. The process that made
 * them takes them away again: see supervise() in supervise.h.
 */
#ifndef FRESHET_BENCH_CGROUPS_H
#define FRESHET_BENCH_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>

/* Makes the temporary directory and, if there are to be cgroups, the folder. 0, or -1 after a message
 * on stderr. */
int cgroups_begin(bool with_cgroups);

/* Kills what runs below the folder, and removes folder and directory. */
void cgroups_end(void);

/* A directory of ours on a tmpfs, mode 0700. */
const char *cgroups_temporary(void);

/* A tree of cgroups: path[0] is its root, path[i] lies in path[(i - 1) / CGROUPS_FANOUT]. */
#define CGROUPS_FANOUT 10u
struct cgroups {
	uint32_t count;
	char **path;
};

/* count cgroups below the folder, their root included. 0, or -1 after a message on stderr. */
int cgroups_make(struct cgroups *ret, uint32_t count);

/* Also kills what runs in them. */
void cgroups_remove(struct cgroups *c);

#endif
