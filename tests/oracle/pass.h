/* SPDX-License-Identifier: MIT */
/* One source under test: which one, FRESHET_TEST_SOURCE says (bpf, the default, or files). */
#ifndef FRESHET_TEST_PASS_H
#define FRESHET_TEST_PASS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "source/source.h"

/* Opens the source at root (absolute; NULL: the whole hierarchy) unless it is open. NULL, or why
 * these tests cannot run here. */
const char *pass_start(const char *root);
void pass_end(void);
bool pass_by_files(void);

/* One pass into pass_tree. */
int pass(void);
extern struct source_tree pass_tree;

const struct source_group *pass_find(uint64_t id);
/* Of a group that is not in the tree: a number no test expects. */
uint64_t pass_ns(uint64_t id, int stat);
uint64_t pass_usec(uint64_t id, int stat);

/* How long a test of so many seconds runs: FRESHET_TEST_SCALE times that (for slow guests, soak). */
int pass_seconds(int usual);

#endif
