/* SPDX-License-Identifier: MIT */
/*
 * subsystem-lock: Linux 6.17. Each family has its own updated tree and its own lock (6.16), so that
 * whoever wants CPU time neither flushes memory nor waits for those who do; an update puts its group
 * on a list of its CPU without a lock, from which the next flush builds the tree (6.17). The lock is
 * dropped for each CPU, as since 6.15. An update has the full fence which the comment of
 * css_rstat_updated() names for users that cannot do with temporary inaccuracies.
 *
 * subsystem-lock-nofence: the same without that fence, which is how the kernel runs it. An update that
 * finds its group still on the list, while a flush has just taken it off, is missed until the group's
 * next one on that CPU. (Fresh is not promised, but not listed as lacking either: two updaters and two
 * readers, all flat out, show it within a second; slower ones only with luck.)
 *
 * Source: kernel/cgroup/rstat.c of 6.17; "cgroup: use separate rstat trees for each subsystem" (Kobryn)
 * and "cgroup: make css_rstat_updated nmi safe" (Butt).
 */
#include "designs/all.h"
#include "designs/locked.h"

LOCKED_DESIGN(fence, RSTAT_TREES | RSTAT_LOCKLESS, 1)
LOCKED_DESIGN(nofence, RSTAT_TREES | RSTAT_LOCKLESS | RSTAT_NO_FENCE, 1)

const struct bench_design design_subsystem_lock = {
	.name = "subsystem-lock",
	.backend = "spinlock",
	.models = "a lock for each family, updates without one (Linux 6.17), and with a fence",
	.promises = DESIGN_EXACT | DESIGN_FRESH | DESIGN_WHOLE | DESIGN_MONOTONE,
	.lacks = DESIGN_UNBLOCKED | DESIGN_QUIET,
	LOCKED_FUNCTIONS(fence, locked_read, locked_read_total)
};

const struct bench_design design_subsystem_lock_nofence = {
	.name = "subsystem-lock-nofence",
	.backend = "spinlock",
	.models = "the same without the fence (Linux 6.17 as it is)",
	.promises = DESIGN_WHOLE | DESIGN_MONOTONE,
	.lacks = DESIGN_UNBLOCKED | DESIGN_QUIET,
	LOCKED_FUNCTIONS(nofence, locked_read, locked_read_total)
};
