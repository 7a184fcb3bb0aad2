/* SPDX-License-Identifier: Dual MIT/GPL */
/*
 * One reading of the CPU counters of every cgroup, without the rstat lock and without a flush.
 *
 * pass_walk  (6.7+): a syscall program; the open-coded css iterator under RCU. No mutex.
 * pass_iter  (6.1 to 6.6): an iter/cgroup program; the kernel holds cgroup_mutex while it walks.
 * pass_cpus: where each CPU's per-CPU area starts, once at start-up.
 *
 * Reading: bstat on 64 bit is plain u64 words that only grow (u64_stats_sync is a no-op there), so
 * single loads are sound; the words of one cgroup are not read at one instant, as they are not by
 * the kernel's own flush of a running CPU. Nothing is written but our own maps.
 */
#include "kernel.h"
#include "pass.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct pass_ctl ctl;
__u64 cpu_offset[PASS_MAX_CPUS]; /* of the possible CPUs, packed */
__u32 cpu_id[PASS_MAX_CPUS];     /* their numbers, for pass_cpus */

#define MAPPED_ARRAY(name_, type_)                     \
	struct {                                       \
		__uint(type, BPF_MAP_TYPE_ARRAY);      \
		__uint(map_flags, BPF_F_MMAPABLE);     \
		__uint(max_entries, 1);                \
		__type(key, u32);                      \
		__type(value, type_);                  \
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

/* The verifier forbids arithmetic on kernel pointers; a pointer read back from a map is a number. */
__u64 laundry;
#define AS_NUMBER(ptr) (*(void *volatile *)&laundry = (void *)(ptr), *(volatile u64 *)&laundry)

static int offset_of_cpu(u32 i, u64 *base)
{
	u32 zero = 0;

	i &= PASS_MAX_CPUS - 1;
	void *here = bpf_map_lookup_percpu_elem(&probe, &zero, cpu_id[i]);

	if (!here) {
		ctl.error = -22;
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
int pass_cpus(void *unused)
{
	u64 base = 0, map = AS_NUMBER(&probe);

	ctl.error = 0;
	bpf_probe_read_kernel(&base, sizeof(base),
			      (void *)(map + bpf_core_field_offset(struct bpf_array, pptrs)));
	if (!base) {
		ctl.error = -2;
		return 0;
	}
	bpf_loop(ctl.cpus, offset_of_cpu, &base, 0);
	return 0;
}

/* ---- one cgroup ---- */

#define ADD(dst, src, name_here, field)                                  \
	do {                                                             \
		if (bpf_core_field_exists((src)->field))                 \
			(dst)->name_here += READ(src, field);            \
	} while (0)

#define READ(p, field) ((p)->field)

static __always_inline void add_direct(struct pass_counters *to, const struct cgroup_base_stat *b)
{
	to->stime += b->cputime.stime;
	to->utime += b->cputime.utime;
	to->exec += b->cputime.sum_exec_runtime;
	if (bpf_core_field_exists(b->ntime))
		to->nice_ += b->ntime;
	if (bpf_core_field_exists(b->forceidle_sum))
		to->force_idle += b->forceidle_sum;
}

static __always_inline void sub_direct(struct pass_counters *to, const struct cgroup_base_stat *b)
{
	to->stime -= b->cputime.stime;
	to->utime -= b->cputime.utime;
	to->exec -= b->cputime.sum_exec_runtime;
	if (bpf_core_field_exists(b->ntime))
		to->nice_ -= b->ntime;
	if (bpf_core_field_exists(b->forceidle_sum))
		to->force_idle -= b->forceidle_sum;
}

struct cpu_sum {
	u64 percpu;
	struct pass_record *rec;
	struct pass_ledger *led;
};

static __always_inline void one_cpu(u32 i, struct cpu_sum *s)
{
	struct cgroup_rstat_base_cpu *c =
		bpf_rdonly_cast((void *)(s->percpu + cpu_offset[i & (PASS_MAX_CPUS - 1)]),
				bpf_core_type_id_kernel(struct cgroup_rstat_base_cpu));

	add_direct(&s->rec->own, &c->bstat);
	if (s->led)
		sub_direct(&s->led->flushed, &c->last_bstat);
}
static int sum_cpu(u32 i, struct cpu_sum *s)
{
	one_cpu(i+2,s);
	return 0;
}

SEC("syscall")
int pass_walk(void *unused)
{
	struct cgroup_subsys_state *css;
	struct bpf_iter_css it;
	struct cgroup *root;
	u32 n = 0;

	ctl.names = 0;
	bpf_rcu_read_lock();
	root = bpf_cgroup_from_id(ctl.root_id);
	if (!root) {
		ctl.error = -2;
		bpf_rcu_read_unlock();
		return 0;
	}
	bpf_iter_css_new(&it, &root->self, BPF_CGROUP_ITER_DESCENDANTS_PRE);
	while ((css = bpf_iter_css_next(&it))) {
		u32 key = n++;
		struct pass_record *rec = bpf_map_lookup_elem(&records, &key);
		struct cgroup *cgrp = css->cgroup;
		if (!rec) continue;
		rec->serial = css->serial_nr;
		rec->level = cgrp->level;
		rec->flags = css->flags & CSS_ONLINE ? 0 : PASS_DYING;
		__builtin_memset(&rec->own, 0, sizeof(rec->own));
		struct cpu_sum s = { .percpu = AS_NUMBER(cgrp->rstat_base_cpu), .rec = rec };
		if (ctl.ledger) {
			s.led = bpf_map_lookup_elem(&ledger, &key);
			if (!s.led) continue;
			__builtin_memset(s.led, 0, sizeof(*s.led));
			add_direct(&s.led->flushed, &cgrp->bstat);
			add_direct(&s.led->handed, &cgrp->last_bstat);
		}
		one_cpu(0, &s);
		if (ctl.cpus > 1) one_cpu(1, &s);
		if (ctl.cpus > 2) bpf_loop(ctl.cpus - 2, sum_cpu, &s, 0);
	}
	bpf_iter_css_destroy(&it);
	bpf_cgroup_release(root);
	bpf_rcu_read_unlock();
	ctl.count = n;
	return 0;
}
