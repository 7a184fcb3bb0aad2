/* SPDX-License-Identifier: Dual MIT/GPL */
/*
 * The few kernel structures the pass reads, by hand, with CO-RE relocations: offsets and presence
 * come from the running kernel's BTF, never from a version check.
 *
 * A name after three underscores is a "flavour": libbpf strips the suffix, so two layouts of one
 * kernel structure can be declared side by side (docs/host-collector.md has the table).
 */
#ifndef FRESHET_BPF_KERNEL_H
#define FRESHET_BPF_KERNEL_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define CORE __attribute__((preserve_access_index))

struct kernfs_node {
	const char *name;
	u64 id;
} CORE;

struct kernfs_root { /* ids are given out in turn, to every directory and file */
	u32 last_id_lowbits;
} CORE;

struct cgroup_root {
	struct kernfs_root *kf_root;
} CORE;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	unsigned int flags;
	u64 serial_nr;
} CORE;

struct task_cputime {
	u64 stime;
	u64 utime;
	unsigned long long sum_exec_runtime;
} CORE;

struct cgroup_base_stat {
	struct task_cputime cputime;
	u64 forceidle_sum; /* only with CONFIG_SCHED_CORE */
	u64 ntime;         /* 6.13, 6.12.23 */
} CORE;

/* Per-CPU counters: cgroup_rstat_cpu up to 6.15, cgroup_rstat_base_cpu from 6.16. Both hold: */
struct cgroup_rstat_cpu {
	struct cgroup_base_stat bstat;
	struct cgroup_base_stat last_bstat;
	struct cgroup_base_stat subtree_bstat; /* 6.6 */
} CORE;

struct cgroup_rstat_base_cpu {
	struct cgroup_base_stat bstat;
	struct cgroup_base_stat last_bstat;
	struct cgroup_base_stat subtree_bstat;
} CORE;

enum cgroup_subsys_id { cpu_cgrp_id = 1 }; /* relocated: the kernel's own value is used */

struct cgroup {
	struct cgroup_subsys_state self;
	int level;
	int nr_dying_descendants;
	struct kernfs_node *kn;
	struct cgroup_root *root;
	struct cgroup_subsys_state *subsys[16];
	struct cgroup_base_stat last_bstat;
	struct cgroup_base_stat bstat;
	struct cgroup_rstat_base_cpu *rstat_base_cpu; /* 6.16 */
} CORE;

struct cgroup___6_15 {
	struct cgroup_rstat_cpu *rstat_cpu; /* up to 6.15 */
} CORE;

struct cfs_bandwidth {
	int nr_periods;
	int nr_throttled;
	int nr_burst;
	u64 throttled_time;
	u64 burst_time;
} CORE;

struct task_group {
	struct cgroup_subsys_state css; /* first member, so a css of the cpu controller is one */
	struct cfs_bandwidth cfs_bandwidth;
} CORE;

struct bpf_array {
	void *pptrs[0];
} CORE;

struct bpf_iter__cgroup {
	struct cgroup *cgroup;
} CORE;

/* css.flags: an anonymous enum in the kernel, so CO-RE cannot relocate it; 1<<1 since 3.11. */
#define CSS_ONLINE (1u << 1)

struct bpf_iter_css {
	u64 opaque[3];
};

/* 6.7: kernel/bpf/cgroup_iter.c, kernel/cgroup/cgroup.c; 6.2: bpf_rcu_read_lock, bpf_rdonly_cast */
extern int bpf_iter_css_new(struct bpf_iter_css *it, struct cgroup_subsys_state *start,
			    unsigned int flags) __ksym __weak;
extern struct cgroup_subsys_state *bpf_iter_css_next(struct bpf_iter_css *it) __ksym __weak;
extern void bpf_iter_css_destroy(struct bpf_iter_css *it) __ksym __weak;
extern struct cgroup *bpf_cgroup_from_id(u64 cgid) __ksym __weak;
extern void bpf_cgroup_release(struct cgroup *cgrp) __ksym __weak;
extern void bpf_rcu_read_lock(void) __ksym __weak;
extern void bpf_rcu_read_unlock(void) __ksym __weak;
extern void *bpf_rdonly_cast(void *obj, u32 btf_id) __ksym __weak;

#endif
