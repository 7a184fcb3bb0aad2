/* SPDX-License-Identifier: MIT */
/* Implements the kernel's half of barriers.h: loads barriers.bpf.c and runs it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <linux/types.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "barriers.h"
#include "barriers.skel.h"

#define TURNS 2000u

enum { RUN_NOTHING, RUN_ATOMIC, RUN_STACK, RUN_PREEMPT, RUN_IRQ, PROGRAMS };

static struct barriers_bpf *skel;

static struct bpf_program *program(unsigned i)
{
	struct bpf_program *const all[PROGRAMS] = {
		[RUN_NOTHING] = skel->progs.run_nothing, [RUN_ATOMIC] = skel->progs.run_atomic,
		[RUN_STACK] = skel->progs.run_stack,     [RUN_PREEMPT] = skel->progs.run_preempt,
		[RUN_IRQ] = skel->progs.run_irq,
	};

	return all[i];
}

static int run(const struct barrier *b, double *ns)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int err;

	skel->bss->count = b->count;
	skel->bss->turns = TURNS;
	skel->bss->done = 0;
	err = bpf_prog_test_run_opts(bpf_program__fd(program(b->program)), &opts);
	if (err)
		return err;
	*ns = (double)skel->bss->ns / TURNS;
	return skel->bss->done == TURNS ? 0 : -EIO;
}

#define ROW(name, times, which)                              \
	{                                                    \
		.op = name, .count = times, .program = which \
	}
#define COUNTS(name, which) ROW(name, 1, which), ROW(name, 4, which), ROW(name, 16, which)

static struct barrier list[] = {
	ROW("nothing", 1, RUN_NOTHING),   COUNTS("fence", RUN_STACK),
	COUNTS("preempt", RUN_PREEMPT),   COUNTS("irq", RUN_IRQ),
	COUNTS("atomic-add", RUN_ATOMIC),
};
#define COUNT (sizeof(list) / sizeof(list[0]))

static struct barriers family = { "kernel", "bpf-loop", ROW("", 0, RUN_NOTHING), list, COUNT };

const struct barriers *barriers_kernel(void)
{
	return &family;
}

static const struct barriers_how how[] = {
	{ "nothing", "the empty loop against itself" },
	{ "fence", "atomic addition of BPF to the stack; on x86 lock add, as smp_mb() is there" },
	{ "preempt", "bpf_preempt_disable() and bpf_preempt_enable(): little more than two calls" },
	{ "irq", "bpf_local_irq_save() and bpf_local_irq_restore(), two calls as well, which the "
		 "kernel itself does inline: masking alone is about irq minus preempt" },
	{ "atomic-add", "atomic addition to the next word of a line of its own each" },
};

const struct barriers_how *barriers_kernel_how(size_t *count)
{
	*count = sizeof(how) / sizeof(how[0]);
	return how;
}

/* A kernel that does not have it is no error of ours, and libbpf would tell at length. */
static int say_nothing(enum libbpf_print_level level, const char *format, va_list ap)
{
	(void)level, (void)format, (void)ap;
	return 0;
}

/* Bits of programs whose kfuncs the kernel does not have. */
static unsigned missing(void)
{
	static const struct {
		unsigned program;
		const char *kfunc;
	} needs[] = { { RUN_PREEMPT, "bpf_preempt_disable" }, { RUN_IRQ, "bpf_local_irq_save" } };
	struct btf *btf = btf__load_vmlinux_btf();
	unsigned bits = 0;

	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		if (!btf || btf__find_by_name_kind(btf, needs[i].kfunc, BTF_KIND_FUNC) <= 0)
			bits |= 1u << needs[i].program;
	btf__free(btf);
	return bits;
}

static int load(unsigned without)
{
	int err;

	skel = barriers_bpf__open();
	if (!skel)
		return -errno;
	for (unsigned i = 0; i < PROGRAMS; i++)
		bpf_program__set_autoload(program(i), !(without >> i & 1));
	err = barriers_bpf__load(skel);
	if (err)
		barriers_kernel_close();
	return err;
}

void barriers_kernel_open(char *why, size_t size)
{
	const unsigned kfuncs = 1u << RUN_PREEMPT | 1u << RUN_IRQ;
	libbpf_print_fn_t printer = libbpf_set_print(say_nothing);
	unsigned without = missing();
	int err = load(without);

	why[0] = 0;
	if (err && without != kfuncs) { /* it may be they alone */
		without = kfuncs;
		err = load(without);
	}
	libbpf_set_print(printer);
	if (err) {
		snprintf(why, size,
			 "BPF programs do not load here (%s): they need root and Linux 5.17 with BTF",
			 strerror(-err));
		return;
	}
	if (without)
		snprintf(why, size, "this kernel's BPF cannot mask %s",
			 without >> RUN_PREEMPT & 1 ? "interrupts (6.14) or preemption (6.10)"
						    : "interrupts (6.14)");
	family.base.turn = run;
	for (size_t i = 0; i < COUNT; i++)
		if (!(without >> list[i].program & 1))
			list[i].turn = run;
}

void barriers_kernel_close(void)
{
	barriers_bpf__destroy(skel);
	skel = NULL;
}
