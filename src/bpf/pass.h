/* SPDX-License-Identifier: Dual MIT/GPL */
/*
 * What a BPF pass and user space say to each other: the control block and the records of the
 * mapped arrays. Shared by pass.bpf.c and src/source/bpf.c; plain integers only.
 */
#ifndef FRESHET_BPF_PASS_H
#define FRESHET_BPF_PASS_H

#define PASS_MAX_CPUS  8192u /* CONFIG_NR_CPUS of the largest distribution kernels */
#define PASS_NAME_MAX  256u  /* NAME_MAX and the final NUL */
#define PASS_MAX_NAMES 512u  /* names fetched in one pass; more come with the next */

/* The numbers of cgroup_base_stat, in ns. force_idle and nice_ stay 0 where the kernel has none. */
struct pass_counters {
	unsigned long long stime;
	unsigned long long utime;
	unsigned long long exec;
	unsigned long long nice_;
	unsigned long long force_idle;
};

#define PASS_DYING    1u /* removed, still held by a reference */
#define PASS_THROTTLE 2u /* the cpu controller is on: throttle[] of this index is written */
#define PASS_LOSING   4u /* has dying descendants */

/* One cgroup, own counters (no descendants), in pre-order. One cache line. */
struct pass_record {
	unsigned long long
		serial;     /* css.serial_nr: unique while the host is up, rises with creation */
	unsigned int level; /* below the root of the hierarchy */
	unsigned int flags; /* PASS_* */
	struct pass_counters own; /* sum over CPUs of bstat */
	unsigned long long pad;
};

/* cfs_bandwidth, as cpu.stat prints it; times in ns. */
struct pass_throttle {
	unsigned int nr_periods;
	unsigned int nr_throttled;
	unsigned int nr_bursts;
	unsigned int pad;
	unsigned long long throttled;
	unsigned long long burst;
};

/* What is needed to know what removed children left behind; written when ctl.ledger is set. */
struct pass_ledger {
	struct pass_counters handed;  /* cgroup.last_bstat: what went to the parent */
	struct pass_counters all;     /* cgroup.bstat: what was flushed into it */
	struct pass_counters own;     /* sum over CPUs of last_bstat: its own part of that */
	struct pass_counters subtree; /* sum over CPUs of subtree_bstat: `all` again (6.6) */
};

/* A cgroup whose serial is above ctl.known. */
struct pass_name {
	unsigned long long serial;
	unsigned long long id; /* kernfs id: the inode number of its directory */
	char name[PASS_NAME_MAX];
};

struct pass_ctl {
	/* set by user space */
	unsigned long long root_id; /* kernfs id where the walk starts */
	unsigned long long known;   /* the names of all serials up to this are known */
	unsigned int name_from;     /* records before this one need no name */
	unsigned int ledger;        /* write ledger[] too */
	unsigned int cpus;          /* entries of cpu_offset[] in use: the possible CPUs */
	/* set by the pass */
	unsigned int count; /* cgroups met; those beyond the arrays' size were not written */
	unsigned int names; /* entries of names[] written, at most PASS_MAX_NAMES */
	unsigned int has;   /* PASS_HAS_*: set by pass_setup */
	int error;          /* 0, or -errno */
	unsigned int born;  /* changes whenever the kernel makes a cgroup; read before the walk */
};

#define PASS_HAS_NICE       1u
#define PASS_HAS_FORCE_IDLE 2u
#define PASS_HAS_SUBTREE    4u

#endif
