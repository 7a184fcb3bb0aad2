/* SPDX-License-Identifier: Dual MIT/GPL */
/* The kernel's own flush of one cgroup and all below it, as BPF collectors call it before they
 * read; for the row bpf+flush. The kfunc is for tracing programs that may sleep: iter.s/cgroup. */
#include "bpf/kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

void css_rstat_flush(struct cgroup_subsys_state *css) __ksym;

int flushes;

SEC("iter.s/cgroup")
int flush_root(struct bpf_iter__cgroup *ctx)
{
	struct cgroup *cgrp = ctx->cgroup;

	if (cgrp) { /* NULL ends the walk */
		css_rstat_flush(&cgrp->self);
		flushes++;
	}
	return 0;
}
