/* SPDX-License-Identifier: MIT */
/*
 * What removed cgroups left behind in their parent.
 *
 * The kernel keeps, per cgroup, B (bstat: all that was flushed into it), l (sum over CPUs of
 * last_bstat: its own part of B) and L (last_bstat: what it has handed to its parent). So
 *
 *     left(C) = B(C) - l(C) - sum of L(X) over the children X that still exist
 *
 * is the sum over the removed children, and it only moves when a child is released. The three
 * move together only under the kernel's lock, which we do not take: a reading beside a flush can be
 * off by what is in flight. So a value is believed when two successive readings agree on it; what
 * is in flight differs from one to the next. Checked against the kernel by tests/oracle.
 */
#ifndef FRESHET_LEDGER_H
#define FRESHET_LEDGER_H

#include <stdbool.h>

#include "bpf/pass.h"

struct ledger {
	struct pass_counters left; /* of the last reading */
	bool read;                 /* there was one, and it was not torn beyond doubt */
};

/* A reading: flushed = B - l of the cgroup, handed = the sum of its children's L. True when it
 * agrees with the one before: l->left may be believed. */
bool ledger_reading(struct ledger *l, const struct pass_counters *flushed,
		    const struct pass_counters *handed);

#endif
