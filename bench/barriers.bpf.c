/* SPDX-License-Identifier: Dual MIT/GPL */
/*
 * Operations in the kernel, timed by itself: a bpf_loop() whose body is one of them, or some in
 * succession, or nothing. A program for each operation: older kernels have no kfuncs that mask
 * interrupts (6.14) or preemption (6.10), and do not load what calls them.
 */
#include "bpf/kernel.h"
#include "barriers_count.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;
extern void bpf_local_irq_save(unsigned long *flags) __ksym __weak;
extern void bpf_local_irq_restore(unsigned long *flags) __ksym __weak;

/* From user space: operations in succession, and turns of the loop. */
__u32 count, turns;
/* To it. */
__u64 ns;
long long done;

/* Nothing else on the same lines. */
struct {
	__u64 word[BARRIERS_MAX];
} line __attribute__((aligned(128)));

#define NOTHING(k)
#define ATOMIC(k) __sync_fetch_and_add(&line.word[k], 1)
#define STACK(k)  __sync_fetch_and_add(&own, 1)
#define IRQ(k)                                \
	do {                                  \
		bpf_local_irq_save(&flags);   \
		bpf_local_irq_restore(&flags); \
	} while (0)
#define PREEMPT(k)             \
	do {                   \
		bpf_preempt_disable(); \
		bpf_preempt_enable();  \
	} while (0)

#define BODY(op, times, local)                             \
	static int op##_##times(u32 i, void *unused)       \
	{                                                  \
		local;                                     \
		BARRIERS_##times(op);                      \
		return 0;                                  \
	}

BODY(NOTHING, 0, )
BODY(ATOMIC, 1, )
BODY(ATOMIC, 4, )
BODY(ATOMIC, 16, )
BODY(STACK, 1, u64 own = 0)
BODY(STACK, 4, u64 own = 0)
BODY(STACK, 16, u64 own = 0)
BODY(PREEMPT, 1, )
BODY(PREEMPT, 4, )
BODY(PREEMPT, 16, )
BODY(IRQ, 1, unsigned long flags)
BODY(IRQ, 4, unsigned long flags)
BODY(IRQ, 16, unsigned long flags)

#define RUN(body)                                      \
	do {                                           \
		u64 begin = bpf_ktime_get_ns();        \
                                                       \
		done = bpf_loop(turns, body, NULL, 0); \
		ns = bpf_ktime_get_ns() - begin;       \
	} while (0)

#define RUN_ANY(op)                  \
	do {                         \
		if (count == 1)      \
			RUN(op##_1); \
		else if (count == 4) \
			RUN(op##_4); \
		else                 \
			RUN(op##_16);\
	} while (0)

SEC("syscall")
int run_nothing(void *unused)
{
	RUN(NOTHING_0);
	return 0;
}

SEC("syscall")
int run_atomic(void *unused)
{
	RUN_ANY(ATOMIC);
	return 0;
}

SEC("syscall")
int run_stack(void *unused)
{
	RUN_ANY(STACK);
	return 0;
}

SEC("syscall")
int run_preempt(void *unused)
{
	RUN_ANY(PREEMPT);
	return 0;
}

SEC("syscall")
int run_irq(void *unused)
{
	RUN_ANY(IRQ);
	return 0;
}
