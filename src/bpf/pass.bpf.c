/* SPDX-License-Identifier: Dual MIT/GPL */
/*
 * One reading of the CPU counters of every cgroup, without the rstat lock and without a flush.
 *
 * pass_walk  (6.7+): a syscall program; the open-coded css iterator under RCU. No mutex.
 * pass_iter  (6.1 to 6.6): an iter/cgroup program; the kernel holds cgroup_mutex while it walks.
 * pass_setup: what the kernel's layout offers, and where each CPU's per-CPU area starts.
 *
 * Reading: on 64 bit bstat is plain u64 words that only grow (u64_stats_sync is empty there), so
 * single loads are sound; several words are not read at one instant, as they are not by the
 * kernel's own flush beside a running CPU. Nothing is written but our own maps. One program runs
 * at a time: user space sees to that.
 */
#include "kernel.h"
#include "pass.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct pass_ctl ctl;
__u64 cpu_offset[PASS_MAX_CPUS]; /* of the possible CPUs, packed */
__u32 cpu_id[PASS_MAX_CPUS];     /* their numbers, for pass_setup */

/* User space sets max_entries before loading. */
#define MAPPED_ARRAY(name_, type_)                 \
	struct {                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);  \
		__uint(map_flags, BPF_F_MMAPABLE); \
		__uint(max_entries, 1);            \
		__type(key, u32);                  \
		__type(value, type_);              \
	} name_ SEC(".maps")

MAPPED_ARRAY(records, struct pass_record);
MAPPED_ARRAY(throttle, struct pass_throttle);
MAPPED_ARRAY(ledger, struct pass_ledger);
MAPPED_ARRAY(names, struct pass_name);

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} probe SEC(".maps");

/* The verifier forbids arithmetic on kernel pointers; one read back from a map is a number. */
__u64 laundry;
#define AS_NUMBER(ptr) (*(void *volatile *)&laundry = (void *)(ptr), *(volatile u64 *)&laundry)

#define ENOENT 2
#define EINVAL 22

/* ---- where the per-CPU areas are ---- */

static int offset_of_cpu(u32 i, u64 *base)
{
	u32 zero = 0;
	void *here;

	i &= PASS_MAX_CPUS - 1;
	here = bpf_map_lookup_percpu_elem(&probe, &zero, cpu_id[i]);
	if (!here) {
		ctl.error = -EINVAL;
		return 1;
	}
	cpu_offset[i] = AS_NUMBER(here) - *base;
	return 0;
}

/*
 * __per_cpu_offset is in no BTF and often not in kallsyms. A one-entry per-CPU array knows both its
 * per-CPU pointer (pptrs[0]) and its address on each CPU: the difference is that CPU's offset.
 */
SEC("syscall")
int pass_setup(void *unused)
{
	u64 base = 0, map = AS_NUMBER(&probe);

	ctl.has = 0;
	if (bpf_core_field_exists(struct cgroup_base_stat, ntime))
		ctl.has |= PASS_HAS_NICE;
	if (bpf_core_field_exists(struct cgroup_base_stat, forceidle_sum))
		ctl.has |= PASS_HAS_FORCE_IDLE;
	if (bpf_core_type_exists(struct cgroup_rstat_base_cpu) ||
	    bpf_core_field_exists(struct cgroup_rstat_cpu, subtree_bstat))
		ctl.has |= PASS_HAS_SUBTREE;

	ctl.error = 0;
	bpf_probe_read_kernel(&base, sizeof(base),
			      (void *)(map + bpf_core_field_offset(struct bpf_array, pptrs)));
	if (!base) {
		ctl.error = -ENOENT;
		return 0;
	}
	bpf_loop(ctl.cpus, offset_of_cpu, &base, 0);
	return 0;
}

/* ---- one cgroup ---- */

static __always_inline void add(struct pass_counters *to, const struct cgroup_base_stat *b)
{
	to->stime += b->cputime.stime;
	to->utime += b->cputime.utime;
	to->exec += b->cputime.sum_exec_runtime;
	if (bpf_core_field_exists(b->ntime))
		to->nice_ += b->ntime;
	if (bpf_core_field_exists(b->forceidle_sum))
		to->force_idle += b->forceidle_sum;
}

static __always_inline void set(struct pass_counters *to, const struct cgroup_base_stat *b)
{
	to->stime = b->cputime.stime;
	to->utime = b->cputime.utime;
	to->exec = b->cputime.sum_exec_runtime;
	to->nice_ = bpf_core_field_exists(b->ntime) ? b->ntime : 0;
	to->force_idle = bpf_core_field_exists(b->forceidle_sum) ? b->forceidle_sum : 0;
}

/*
 * Kernel memory at a computed address as a cgroup_base_stat: where bpf_rdonly_cast exists, plain
 * loads that the kernel's exception table guards; otherwise a copy on the stack, whose fields the
 * same relocated offsets find.
 */
#define BASE_STAT_ROOM 64 /* five words today */
static __always_inline void add_at(struct pass_counters *to, u64 at, bool first, bool direct)
{
	u64 copy[BASE_STAT_ROOM / sizeof(u64)] = {};
	u32 size = bpf_core_type_size(struct cgroup_base_stat);

	const struct cgroup_base_stat *b = (void *)copy;

	if (direct)
		b = bpf_rdonly_cast((void *)at, bpf_core_type_id_kernel(struct cgroup_base_stat));
	else
		bpf_probe_read_kernel(copy, size < BASE_STAT_ROOM ? size : BASE_STAT_ROOM,
				      (void *)at);
	if (first)
		set(to, b);
	else
		add(to, b);
}

/* Offset of a field of the per-CPU structure, whichever this kernel has. */
#define PERCPU_OFFSET(field)                                                \
	(bpf_core_type_exists(struct cgroup_rstat_base_cpu)                 \
		 ? /* 6.16 */                                               \
		 bpf_core_field_offset(struct cgroup_rstat_base_cpu, field) \
		 : bpf_core_field_offset(struct cgroup_rstat_cpu, field))

struct sum {
	u64 percpu; /* the cgroup's per-CPU pointer */
	struct pass_counters *own;
	struct pass_ledger *ledger; /* where only the ledger is read */
};

static __always_inline u64 on_cpu(const struct sum *s, u32 i)
{
	return s->percpu + cpu_offset[i & (PASS_MAX_CPUS - 1)];
}

/* bpf_loop() pays an indirect call a turn, so a turn is four CPUs, and the first needs no call. */
#define CPUS_A_TURN 4u

static __always_inline int sum_turn(u32 turn, struct sum *s, bool first, bool direct)
{
	u32 i = turn * CPUS_A_TURN, cpus = ctl.cpus;

	add_at(s->own, on_cpu(s, i) + PERCPU_OFFSET(bstat), first, direct);
	if (i + 1 < cpus)
		add_at(s->own, on_cpu(s, i + 1) + PERCPU_OFFSET(bstat), false, direct);
	if (i + 2 < cpus)
		add_at(s->own, on_cpu(s, i + 2) + PERCPU_OFFSET(bstat), false, direct);
	if (i + 3 < cpus)
		add_at(s->own, on_cpu(s, i + 3) + PERCPU_OFFSET(bstat), false, direct);
	return 0;
}

static int later_turn_direct(u32 turn, struct sum *s)
{
	return sum_turn(turn + 1, s, false, true);
}

static int later_turn_copied(u32 turn, struct sum *s)
{
	return sum_turn(turn + 1, s, false, false);
}

static __always_inline int ledger_cpu(u32 i, struct sum *s, bool direct)
{
	add_at(&s->ledger->own, on_cpu(s, i) + PERCPU_OFFSET(last_bstat), false, direct);
	if (bpf_core_type_exists(struct cgroup_rstat_base_cpu) ||
	    bpf_core_field_exists(struct cgroup_rstat_cpu, subtree_bstat))
		add_at(&s->ledger->subtree, on_cpu(s, i) + PERCPU_OFFSET(subtree_bstat), false,
		       direct);
	return 0;
}

static int ledger_cpu_direct(u32 i, struct sum *s)
{
	return ledger_cpu(i, s, true);
}

static int ledger_cpu_copied(u32 i, struct sum *s)
{
	return ledger_cpu(i, s, false);
}

static __always_inline void read_ledger(struct cgroup *cgrp, u32 at, struct sum *sum, bool direct)
{
	struct pass_ledger *led = bpf_map_lookup_elem(&ledger, &at);

	if (!led)
		return;
	__builtin_memset(led, 0, sizeof(*led));
	add(&led->handed, &cgrp->last_bstat);
	add(&led->all, &cgrp->bstat);
	sum->ledger = led;
	bpf_loop(ctl.cpus, direct ? ledger_cpu_direct : ledger_cpu_copied, sum, 0);
}

static __always_inline void read_name(struct cgroup *cgrp, u64 serial)
{
	u32 at = ctl.names;
	struct pass_name *name;

	if (at >= PASS_MAX_NAMES)
		return;
	name = bpf_map_lookup_elem(&names, &at);
	if (!name)
		return;
	name->serial = serial;
	name->id = cgrp->kn->id;
	if (bpf_probe_read_kernel_str(name->name, sizeof(name->name), cgrp->kn->name) < 0)
		name->name[0] = 0;
	ctl.names = at + 1;
}

/* cfs_bandwidth of the cgroup itself, where the cpu controller is on; these are not hierarchical. */
static __always_inline bool read_throttle(struct cgroup *cgrp, u32 at, bool direct)
{
	struct cgroup_subsys_state *css;
	struct pass_throttle *to;
	struct task_group *tg;

	if (!bpf_core_field_exists(struct cfs_bandwidth, nr_periods) || /* CONFIG_CFS_BANDWIDTH */
	    !bpf_core_enum_value_exists(enum cgroup_subsys_id, cpu_cgrp_id))
		return false;
	css = *(struct cgroup_subsys_state **)((void *)cgrp +
					       bpf_core_field_offset(struct cgroup, subsys) +
					       sizeof(css) *
						       bpf_core_enum_value(enum cgroup_subsys_id,
									   cpu_cgrp_id));
	if (!css)
		return false;
	to = bpf_map_lookup_elem(&throttle, &at);
	if (!to)
		return false;
	if (direct) {
		tg = bpf_rdonly_cast(css, bpf_core_type_id_kernel(struct task_group));
		to->nr_periods = tg->cfs_bandwidth.nr_periods;
		to->nr_throttled = tg->cfs_bandwidth.nr_throttled;
		to->throttled = tg->cfs_bandwidth.throttled_time;
		to->nr_bursts = tg->cfs_bandwidth.nr_burst;
		to->burst = tg->cfs_bandwidth.burst_time;
	} else {
		tg = (void *)css;
		to->nr_periods = BPF_CORE_READ(tg, cfs_bandwidth.nr_periods);
		to->nr_throttled = BPF_CORE_READ(tg, cfs_bandwidth.nr_throttled);
		to->throttled = BPF_CORE_READ(tg, cfs_bandwidth.throttled_time);
		to->nr_bursts = BPF_CORE_READ(tg, cfs_bandwidth.nr_burst);
		to->burst = BPF_CORE_READ(tg, cfs_bandwidth.burst_time);
	}
	return true;
}

/*
 * The next record. Its number lives in memory, and the flags are computed without a branch: the
 * verifier would follow each of their values through all that comes after.
 *
 * cgrp and cast are the same cgroup. The kernel's JIT guards each load through `cast`; but for each
 * pointer loaded from a trusted structure its verifier searches the whole BTF by name, five times
 * and on each path (btf_nested_type_is_trusted). So numbers come from cgrp and pointers from cast.
 */
static __always_inline void read_cgroup(struct cgroup *cgrp, struct cgroup *cast, bool direct)
{
	u32 at = ctl.count++;
	struct pass_record *rec = bpf_map_lookup_elem(&records, &at);
	u32 turns = (ctl.cpus + CPUS_A_TURN - 1) / CPUS_A_TURN;
	struct sum sum = {};
	u32 dying, losing;

	if (!rec)
		return; /* more cgroups than room: ctl.count tells */
	rec->serial = cgrp->self.serial_nr;
	rec->level = cgrp->level;
	dying = (~cgrp->self.flags / CSS_ONLINE & 1) * PASS_DYING;
	losing = ((u32)-cgrp->nr_dying_descendants >> 31) * PASS_LOSING;
	rec->flags = dying | losing;

	sum.own = &rec->own;
	if (bpf_core_field_exists(cast->rstat_base_cpu))
		sum.percpu = AS_NUMBER(cast->rstat_base_cpu);
	else
		sum.percpu = AS_NUMBER(((struct cgroup___6_15 *)cast)->rstat_cpu);
	/* The ledger before the counters, so that own time handed on meanwhile is not missed. */
	if (ctl.ledger)
		read_ledger(cgrp, at, &sum, direct);
	sum_turn(0, &sum, true, direct);
	if (turns > 1)
		bpf_loop(turns - 1, direct ? later_turn_direct : later_turn_copied, &sum, 0);

	if (dying)
		return;
	if (read_throttle(cast, at, direct))
		rec->flags |= PASS_THROTTLE;
	if (rec->serial > ctl.known && at >= ctl.name_from)
		read_name(cast, rec->serial);
}

/* ---- the walks ---- */

/*
 * The hierarchy's last kernfs id: making a cgroup takes some. One that came and went between two
 * passes leaves no other trace but in the ledger. A kernel without it has that read in each pass.
 */
static __always_inline void read_born(struct cgroup *cgrp)
{
	if (bpf_core_field_exists(struct kernfs_root, last_id_lowbits))
		ctl.born = BPF_CORE_READ(cgrp, root, kf_root, last_id_lowbits);
	else
		ctl.born++;
}

SEC("syscall")
int pass_walk(void *unused)
{
	struct cgroup_subsys_state *css;
	struct bpf_iter_css it;
	struct cgroup *root;

	ctl.count = 0;
	ctl.names = 0;
	ctl.error = 0;
	bpf_rcu_read_lock();
	root = bpf_cgroup_from_id(ctl.root_id);
	if (!root) {
		ctl.error = -ENOENT;
		bpf_rcu_read_unlock();
		return 0;
	}
	read_born(root);
	bpf_iter_css_new(&it, &root->self, BPF_CGROUP_ITER_DESCENDANTS_PRE);
	while ((css = bpf_iter_css_next(&it))) {
		struct cgroup *cgrp = css->cgroup;

		read_cgroup(cgrp, bpf_rdonly_cast(cgrp, bpf_core_type_id_kernel(struct cgroup)),
			    true);
	}
	bpf_iter_css_destroy(&it);
	bpf_cgroup_release(root);
	bpf_rcu_read_unlock();
	return 0;
}

/* User space sets ctl.names, ctl.count and ctl.error to 0 before it reads the iterator. */
SEC("iter/cgroup")
int pass_iter(struct bpf_iter__cgroup *ctx)
{
	struct cgroup *cgrp = ctx->cgroup;

	if (!cgrp) /* the walk's end */
		return 0;
	if (!ctl.count)
		read_born(cgrp);
	read_cgroup(cgrp, cgrp, false);
	return 0;
}
