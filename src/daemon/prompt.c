/* SPDX-License-Identifier: MIT */
/*
 * Implements prompt.h. A thread that works for 50 us every few ms, beside others that always run, would
 * wait for a slice of each of them, some 3 ms, although it has used less than its share. Two things
 * help, and neither gives it more CPU time than it uses:
 *
 * - A short slice of its own (Linux 6.12: sched_runtime of an ordinary thread): its deadline is earlier
 *   than that of those who ask for long ones. Needs no privilege.
 * - A nice value below that of ordinary threads, where we may. On any kernel; within one group.
 *
 * Not real time, which would let a pass over very many cgroups hold up everything else.
 *
 * Neither <sched.h> nor <pthread.h> here: struct sched_attr is in either of them or in the kernel's
 * header, by version, and never in both at once without a conflict.
 */
#include "daemon/prompt.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000 /* the least that the kernel takes */
#define NICE     (-10)

void prompt_thread(void)
{
	struct sched_attr attr = { .size = sizeof(attr) };

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 ||
	    attr.sched_policy != SCHED_NORMAL)
		return;
	attr.sched_flags = SCHED_FLAG_RESET_ON_FORK;
	attr.sched_runtime = SLICE_NS;
	if (attr.sched_nice == 0) {
		attr.sched_nice = NICE;
		if (syscall(SYS_sched_setattr, 0, &attr, 0) == 0)
			return;
		attr.sched_nice = 0;
	}
	syscall(SYS_sched_setattr, 0, &attr, 0);
}
