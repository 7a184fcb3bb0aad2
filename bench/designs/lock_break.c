/* SPDX-License-Identifier: MIT */
/*
 * lock-break: Linux 6.15. The global lock, dropped and retaken for each CPU, so that interrupts are
 * not off for as long as a flush of all takes. A read of cpu.stat is a flush and then one more turn
 * with the lock, in which the totals are copied: one more turn than there are CPUs, even when there
 * is nothing to flush. In between others can flush, too; what they took off a CPU's updated tree is
 * in the totals before they drop the lock.
 *
 * lock-break-8: the same, dropped every 8 CPUs, which was the answer to that.
 *
 * Source: "cgroup/rstat: avoid disabling irqs for O(num_cpu)" (Dumazet, Thelen; merged in 6.15, in
 * 6.12.31), and Guzik's counter-proposal in its thread.
 */
#include "designs/all.h"
#include "designs/locked.h"

LOCKED_DESIGN(each, 0, 1)
LOCKED_DESIGN(eighth, 0, 8)

const struct bench_design design_lock_break = {
	.name = "lock-break",
	.backend = "spinlock",
	.models = "the lock dropped and retaken for each CPU (Linux 6.15)",
	.promises = DESIGN_EXACT | DESIGN_FRESH | DESIGN_WHOLE | DESIGN_MONOTONE,
	.lacks = DESIGN_UNBLOCKED | DESIGN_QUIET,
	LOCKED_FUNCTIONS(each, locked_read, locked_read_total)
};

const struct bench_design design_lock_break_8 = {
	.name = "lock-break-8",
	.backend = "spinlock",
	.models = "the lock dropped every 8 CPUs (proposed for 6.15)",
	.promises = DESIGN_EXACT | DESIGN_FRESH | DESIGN_WHOLE | DESIGN_MONOTONE,
	.lacks = DESIGN_UNBLOCKED | DESIGN_QUIET,
	LOCKED_FUNCTIONS(eighth, locked_read, locked_read_total)
};
