/* SPDX-License-Identifier: Dual MIT/GPL */
/* Counts, for one process, how often it took the rstat lock and how often it flushed. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

int target;                 /* tgid */
unsigned long long locked;  /* tp_btf/cgroup_rstat_locked */
unsigned long long flushed; /* fentry of the flush */

static int is_target(void)
{
	return (int)(bpf_get_current_pid_tgid() >> 32) == target;
}

SEC("tp_btf/cgroup_rstat_locked") /* 6.10 */
int count_locked(void *ctx)
{
	if (is_target())
		__sync_fetch_and_add(&locked, 1);
	return 0;
}

SEC("fentry/css_rstat_flush") /* 6.16 */
int count_flush(void *ctx)
{
	if (is_target())
		__sync_fetch_and_add(&flushed, 1);
	return 0;
}
