/* SPDX-License-Identifier: MIT */
/*
 * The tree of cgroups kept from pass to pass: raw records of the BPF pass in, cpu.stat's numbers
 * out. Pure: no file, no clock, no BPF, so that tests can play the kernel.
 *
 * Invariants
 *   - total(C) = own counters of C + total of every cgroup that ever was below C, as far as seen.
 *     It only grows: a child that vanishes stays in it, and what the child did after it was last
 *     seen is added when the ledger shows it (ledger.h).
 *   - The list of source_groups holds the living, named cgroups in pre-order; dying ones count
 *     towards their ancestors but are not shown.
 */
#ifndef FRESHET_HOST_TREE_H
#define FRESHET_HOST_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/pass.h"
#include "source/bpf_run.h"
#include "source/source.h"

struct host_tree;

/* has: PASS_HAS_*. top: the first record is the hierarchy's real root, whose numbers are the
 * machine's and are given to host_tree_finish(). root_id: kernfs id of the first record. */
int host_tree_new(unsigned has, bool top, uint64_t root_id, struct host_tree **ret);
void host_tree_free(struct host_tree *t);

#define TREE_CHANGED   1 /* cgroups appeared or vanished */
#define TREE_UNNAMED   2 /* some have no name yet: see host_tree_unnamed() */
#define TREE_UNSETTLED 4 /* with a ledger: some groups' is not proved yet in this round */
#define TREE_LOSING    8 /* some have dying descendants */

/*
 * Takes a run in. TREE_* bits, or -EAGAIN (the records are no tree: a torn walk, run again),
 * -ENOMEM. On an error nothing has changed.
 */
int host_tree_take(struct host_tree *t, const struct host_reading *r);

/* For the next run's ctl: serials up to *known and records before *from need no name. */
void host_tree_unnamed(const struct host_tree *t, uint64_t *known, uint32_t *from);

/* Ends a pass of one or more runs: computes the numbers of what changed and fills *tree (but for
 * begin_ns and gone). root_value, root_present: the machine's, when top. */
void host_tree_finish(struct host_tree *t, const uint64_t *root_value, uint64_t root_present,
		      struct source_tree *tree);

#endif
