/* SPDX-License-Identifier: MIT */
/*
 * global-lock: Linux up to 6.14. One spinlock, with interrupts off, over all CPUs: cgroup_rstat_flush()
 * and cgroup_rstat_flush_hold(), under which cpu.stat is printed; one updated tree for all
 * subsystems, so that whoever wants CPU time flushes memory, too.
 *
 * global-lock-nosync: the same without seqcount in the cells (u64_stats_sync is a no-op on 64-bit
 * machines) and without a fence in updates, which is how the kernel has it.
 *
 * Left out: the kernel's flusher, where it may sleep, drops the lock between two CPUs if it is to be
 * rescheduled or, in a kernel that preempts, if somebody waits for the lock (spin_needbreak()). That
 * is what lock-break does each time.
 *
 * Source: kernel/cgroup/rstat.c of 6.1 to 6.14.
 */
#include "designs/all.h"
#include "designs/locked.h"

LOCKED_DESIGN(sync, 0, 0)
LOCKED_DESIGN(nosync, RSTAT_AS_KERNEL, 0)

const struct bench_design design_global_lock = {
	.name = "global-lock",
	.backend = "spinlock",
	.models = "one spinlock over all CPUs (Linux up to 6.14)",
	.promises = DESIGN_EXACT | DESIGN_FRESH | DESIGN_WHOLE | DESIGN_MONOTONE,
	.lacks = DESIGN_UNBLOCKED | DESIGN_QUIET,
	LOCKED_FUNCTIONS(sync, locked_read, locked_read_total)
};

const struct bench_design design_global_lock_nosync = {
	.name = "global-lock-nosync",
	.backend = "spinlock",
	.models = "the same with 64-bit cells as they are: no seqcount, no fence",
	.promises = DESIGN_MONOTONE,
	.lacks = DESIGN_WHOLE | DESIGN_UNBLOCKED | DESIGN_QUIET,
	LOCKED_FUNCTIONS(nosync, locked_read, locked_read_total)
};
