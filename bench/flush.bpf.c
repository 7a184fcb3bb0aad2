/* SPDX-License-Identifier: Dual MIT/GPL */
/* The kernel's own flush of one cgroup and all below it, as BPF collectors call it before they
 * read; for the rows bpf+flush. The kfunc is for tracing programs that may sleep: iter.s/cgroup. It
 * took a cgroup until 6.15 and takes a css since 6.16; flush.c loads the program that fits. */
#include "bpf/kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

void css_rstat_flush(struct cgroup_subsys_state *css) __ksym __weak;
void cgroup_rstat_flush(struct cgroup *cgrp) __ksym __weak;

int flushes;
unsigned long long usage_ns; /* the cgroup's, as of the last flush */
unsigned long long user_ns,
	system_ns; /* read because the other ways read them, too; of the ticks */

static void read_flushed(struct cgroup *cgrp)
{
	usage_ns = cgrp->bstat.cputime.sum_exec_runtime;
	user_ns = cgrp->bstat.cputime.utime;
	system_ns = cgrp->bstat.cputime.stime;
	flushes++;
}

SEC("iter.s/cgroup")
int flush_css(struct bpf_iter__cgroup *ctx)
{
	struct cgroup *cgrp = ctx->cgroup;

	if (cgrp) { /* NULL ends the walk */
		css_rstat_flush(&cgrp->self);
		read_flushed(cgrp);
	}
	return 0;
}

SEC("iter.s/cgroup")
int flush_cgroup(struct bpf_iter__cgroup *ctx)
{
	struct cgroup *cgrp = ctx->cgroup;

	if (cgrp) {
		cgroup_rstat_flush(cgrp);
		read_flushed(cgrp);
	}
	return 0;
}
