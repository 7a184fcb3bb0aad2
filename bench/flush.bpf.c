/* SPDX-License-Identifier: Dual MIT/GPL */
/* The kernel's own flush of one cgroup and all below it, as BPF collectors call it before they
 * read; for the rows bpf+flush. The kfunc (Linux 6.16) is for tracing programs that may sleep:
 * iter.s/cgroup. */
#include "bpf/kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

void css_rstat_flush(struct cgroup_subsys_state *css) __ksym;

int flushes;
unsigned long long usage_ns; /* the cgroup's, as of the last flush */
unsigned long long user_ns, system_ns; /* read because the other ways read them, too; of the ticks */

SEC("iter.s/cgroup")
int flush_root(struct bpf_iter__cgroup *ctx)
{
	struct cgroup *cgrp = ctx->cgroup;

	if (cgrp) { /* NULL ends the walk */
		css_rstat_flush(&cgrp->self);
		usage_ns = cgrp->bstat.cputime.sum_exec_runtime;
		user_ns = cgrp->bstat.cputime.utime;
		system_ns = cgrp->bstat.cputime.stime;
		flushes++;
	}
	return 0;
}
