/* SPDX-License-Identifier: MIT */
/*
 * What removed cgroups left behind in their parent.
 *
 * The kernel keeps, per cgroup, B (bstat: all that was flushed into it), l (sum over CPUs of
 * last_bstat: its own part of B) and L (last_bstat: what it has handed to its parent). So
 *
 *     left(C) = B(C) - l(C) - sum of L(X) over the children X that still exist
 *
 * is the sum over the removed children, and it moves only when a child is released.
 *
 * The kernel moves these together only under its lock, which we do not take; and a flush can stand
 * still in its middle for long (an interrupted virtual CPU). A flush of X below C writes, in this
 * order: B(X), l(X), S(X), B(C), L(X), S(C), where S (sum over CPUs of subtree_bstat, since 6.6) is
 * B once more. So:
 *   - Two successive readings that are the same in every word mean that all words had these values
 *     at one instant, between the two.
 *   - If at that instant B(C) = S(C), no flush was between raising B(C) and what follows from it.
 * Both together prove the reading whole. Where S is missing (before 6.6), or does not come to equal
 * B (6.17 and 6.18 could lose a CPU's place in the flush list), `left` itself must stay the same
 * over three readings and LEDGER_SPAN_NS. A reading that comes to what was believed already changes
 * nothing and needs no proof: left never falls, so what was true once is at most too little. tests/unit/host_tree.c plays all this through.
 */
#ifndef FRESHET_LEDGER_H
#define FRESHET_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/pass.h"

#define LEDGER_SPAN_NS 10000000u

struct ledger {
	/* the last reading */
	struct pass_counters all, own, handed, subtree;
	bool read;
	struct pass_counters left;     /* what it came to */
	uint64_t since_ns;             /* left has been the same since */
	unsigned same;                 /* readings in which it was */
	struct pass_counters believed; /* the last left that was proved; 0 at first */
};

/* A reading at at_ns: of = what the pass wrote of the cgroup, handed = the sum of its children's L.
 * True: l->left may be believed. */
bool ledger_reading(struct ledger *l, const struct pass_ledger *of,
		    const struct pass_counters *handed, bool has_subtree, uint64_t at_ns);

#endif
