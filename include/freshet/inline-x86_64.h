/* SPDX-License-Identifier: MIT */
/*
 * The restartable sequences of inline.h for x86-64: included by it alone.
 *
 * Register and label conventions: Linux, Documentation and include/uapi/linux/rseq.h. A descriptor
 * (start, length, abort address) lies in section __rseq_cs; its address goes into the thread's
 * rseq area before the sequence starts. The four bytes before the abort address are the signature
 * that glibc registered (0x53053053), behind the first bytes of an undefined instruction (ud1).
 *
 * In a shared object the area's pointer is cleared afterwards: the object may be unmapped by
 * dlclose(), and the kernel reads the descriptor at the next preemption. An executable stays.
 *
 * x86 keeps stores in order, so none needs a fence.
 */
#ifndef FRESHET_INLINE_X86_64_H
#define FRESHET_INLINE_X86_64_H

#define FRESHET_RSEQ_CPU_ID "4"  /* struct rseq: offset of cpu_id */
#define FRESHET_RSEQ_CS     "8"  /* of rseq_cs */

#if defined(__PIC__) && !defined(__PIE__)
#define FRESHET_SEQ_END "movq $0, %%fs:" FRESHET_RSEQ_CS "(%[area])\n\t"
/* A sequence that jumped out has not come to its end. */
#define FRESHET_SEQ_LEFT(group)                                                                \
	__asm__ __volatile__("movq $0, %%fs:" FRESHET_RSEQ_CS "(%[area])"                      \
			     :                                                                 \
			     : [area] "r"(freshet_area((group)->place))                        \
			     : "memory")
#else
#define FRESHET_SEQ_END ""
#define FRESHET_SEQ_LEFT(group) ((void)0)
#endif

/* A loop in front of the commit, for tests that want aborts. */
#ifndef FRESHET_SEQ_DELAY
#define FRESHET_SEQ_DELAY ""
#endif

/*
 * Opens a sequence that goes to `label` when it is interrupted, and ends at the next label 2. The
 * flags in the section names: "?" puts them into the group (COMDAT) of the function they belong to.
 * Uses %rcx.
 */
#define FRESHET_SEQ_OPEN(label)                                                                \
	".pushsection __rseq_cs, \"aw?\"\n\t"                                                  \
	".balign 32\n"                                                                         \
	"3:\n\t"                                                                               \
	".long 0, 0\n\t"                                                                       \
	".quad 1f, 2f - 1f, 4f\n\t"                                                            \
	".popsection\n\t"                                                                      \
	".pushsection .text.freshet_abort, \"ax?\"\n\t"                                        \
	".byte 0x0f, 0xb9, 0x3d\n\t"                                                           \
	".long 0x53053053\n"                                                                   \
	"4:\n\t"                                                                               \
	"jmp %l[" label "]\n\t"                                                                \
	".popsection\n\t"                                                                      \
	"leaq 3b(%%rip), %%rcx\n\t"                                                            \
	"movq %%rcx, %%fs:" FRESHET_RSEQ_CS "(%[area])\n"                                      \
	"1:\n\t"

/* Goes on: %eax is the CPU slot. */
#define FRESHET_SEQ_SLOT                                                                       \
	FRESHET_SEQ_OPEN("miss")                                                               \
	"cmpl $0, %%fs:" FRESHET_RSEQ_CPU_ID "(%[area])\n\t" /* < 0: thread is not registered */ \
	"js %l[miss]\n\t"                                                                      \
	"movl %%fs:(%[slot]), %%eax\n\t"

/* Goes on: %rax is the group's cell on this slot, its stamp compared. */
#define FRESHET_SEQ_CELL                                                                       \
	"cmpl %[slots], %%eax\n\t"                                                             \
	"jae %l[miss]\n\t"                                                                     \
	"imulq %[stride], %%rax\n\t"                                                           \
	"movq (%[hot]), %%rcx\n\t"                                                             \
	"addq %[tag], %%rcx\n\t"                                                               \
	"addq %[cell], %%rax\n\t"                                                              \
	"cmpq %%rcx, (%%rax)\n\t"                                                              \
	"jne %l[miss]\n\t"

#define FRESHET_SEQ_INPUTS                                                                     \
	[area] "r"(freshet_area(group->place)),                                                \
		[slot] "r"(freshet_area(group->place) + freshet_limit_field(group->limits)),   \
		[slots] "r"(freshet_limit_slots(group->limits)),                               \
		[stride] "r"(freshet_stride(group->place)), [hot] "r"(group->hot),             \
		[tag] "r"(group->tag), [cell] "r"(group->cell)

/* Adds n to a word of the group's cell. 1, or 0: not done. */
FRESHET_INLINE int
freshet_seq_add(const struct freshet_handle *group, unsigned word, uint64_t n)
{
	/* An index in the committing instruction's address would cost more than the addition. */
	__asm__ __volatile__ goto(
		FRESHET_SEQ_SLOT
		FRESHET_SEQ_CELL
		FRESHET_SEQ_DELAY
		"addq %[offset], %%rax\n\t"
		"addq %[n], (%%rax)\n"
		"2:\n\t"
		FRESHET_SEQ_END
		:
		: FRESHET_SEQ_INPUTS, [offset] "er"((uint64_t)word * 8), [n] "er"(n)
		: "memory", "cc", "rax", "rcx"
		: miss);
	return 1;
miss:
	FRESHET_SEQ_LEFT(group);
	return 0;
}

/*
 * Adds n to word `first` and then 1 to word `second`: two sequences, as each addition is a commit, of
 * which the other one, on the same slot, has the address already. 2, or how many were done.
 */
FRESHET_INLINE int freshet_seq_observe(const struct freshet_handle *group, unsigned first,
				       uint64_t n, unsigned second)
{
	__asm__ __volatile__ goto(
		FRESHET_SEQ_SLOT
		"movl %%eax, %%edx\n\t"
		FRESHET_SEQ_CELL
		"leaq (%%rax,%[first]), %%rcx\n\t"
		FRESHET_SEQ_DELAY
		"addq %[n], (%%rcx)\n"
		"2:\n\t"
		FRESHET_SEQ_OPEN("half")
		"cmpl %%fs:(%[slot]), %%edx\n\t"
		"jne %l[half]\n\t"
		"movq (%[hot]), %%rcx\n\t"
		"addq %[tag], %%rcx\n\t"
		"cmpq %%rcx, (%%rax)\n\t"
		"jne %l[half]\n\t"
		"addq %[second], %%rax\n\t"
		FRESHET_SEQ_DELAY
		"addq $1, (%%rax)\n"
		"2:\n\t"
		FRESHET_SEQ_END
		:
		: FRESHET_SEQ_INPUTS, [first] "r"((uint64_t)first * 8),
		  [second] "r"((uint64_t)second * 8), [n] "er"(n)
		: "memory", "cc", "rax", "rcx", "rdx"
		: miss, half);
	return 2;
half:
	FRESHET_SEQ_LEFT(group);
	return 1;
miss:
	FRESHET_SEQ_LEFT(group);
	return 0;
}

/* One stat of a set: from the bank at %rcx to the one at %rdx. */
#define FRESHET_SET_WORD(i, at)                                                                \
	"movq 8+" at "(%%rax,%%rcx), %%r8\n\t"                                                 \
	"addq %[n" #i "], %%r8\n\t"                                                            \
	"movq %%r8, 8+" at "(%%rax,%%rdx)\n\t"
/* The same in a set of more than 8. */
#define FRESHET_SET_FAR(at)                                                                    \
	"movq " at "(%[n]), %%r8\n\t"                                                         \
	"addq 8+" at "(%%rax,%%rcx), %%r8\n\t"                                                \
	"movq %%r8, 8+" at "(%%rax,%%rdx)\n\t"

/*
 * Version v is in bank min(ctz(v), FRESHET_BANKS - 1); the bit that is or-ed in makes that minimum,
 * and counts for v = 0. The new version's bank is filled from the old one's, and the version is the
 * commit.
 */
#define FRESHET_SET_CASE(stats, words, inputs)                                                         \
	case stats:                                                                            \
		__asm__ __volatile__ goto(                                                     \
			FRESHET_SEQ_SLOT                                                       \
			FRESHET_SEQ_CELL                                                       \
			"addq %[offset], %%rax\n\t"                                            \
			"movq (%%rax), %%rdx\n\t"                                              \
			"leaq 1(%%rdx), %%r8\n\t"                                              \
			"orq $1 << (%c[banks] - 1), %%rdx\n\t"                                 \
			"tzcntq %%rdx, %%rcx\n\t"                                                \
			"orq $1 << (%c[banks] - 1), %%r8\n\t"                                  \
			"tzcntq %%r8, %%rdx\n\t"                                                 \
			"imulq $8 * " #stats ", %%rcx\n\t"                                     \
			"imulq $8 * " #stats ", %%rdx\n\t"                                     \
			words                                                                  \
			FRESHET_SEQ_DELAY                                                      \
			"addq $1, (%%rax)\n"                                                   \
			"2:\n\t"                                                               \
			FRESHET_SEQ_END                                                        \
			:                                                                      \
			: FRESHET_SEQ_INPUTS, [offset] "r"((uint64_t)offset * 8), inputs,      \
			  [banks] "i"(FRESHET_BANKS)                                           \
			: "memory", "cc", "rax", "rcx", "rdx", "r8"                            \
			: miss);                                                               \
		return 1;

/* Adds n[i] to the i-th stat of the set of `count` stats at word offset of the cell. 1, or 0: not
 * done. count is a constant where this is to be fast. */
FRESHET_INLINE int
freshet_seq_set(const struct freshet_handle *group, unsigned offset, unsigned count,
		const int64_t *n)
{
#define FRESHET_WORDS_1 FRESHET_SET_WORD(0, "0")
#define FRESHET_WORDS_2 FRESHET_WORDS_1 FRESHET_SET_WORD(1, "8")
#define FRESHET_WORDS_3 FRESHET_WORDS_2 FRESHET_SET_WORD(2, "16")
#define FRESHET_WORDS_4 FRESHET_WORDS_3 FRESHET_SET_WORD(3, "24")
#define FRESHET_WORDS_5 FRESHET_WORDS_4 FRESHET_SET_WORD(4, "32")
#define FRESHET_WORDS_6 FRESHET_WORDS_5 FRESHET_SET_WORD(5, "40")
#define FRESHET_WORDS_7 FRESHET_WORDS_6 FRESHET_SET_WORD(6, "48")
#define FRESHET_WORDS_8 FRESHET_WORDS_7 FRESHET_SET_WORD(7, "56")
/* Constants become part of the instruction. */
#define FRESHET_N(i)     [n##i] "erm"(n[i])
#define FRESHET_INPUTS_1 FRESHET_N(0)
#define FRESHET_INPUTS_2 FRESHET_INPUTS_1, FRESHET_N(1)
#define FRESHET_INPUTS_3 FRESHET_INPUTS_2, FRESHET_N(2)
#define FRESHET_INPUTS_4 FRESHET_INPUTS_3, FRESHET_N(3)
#define FRESHET_INPUTS_5 FRESHET_INPUTS_4, FRESHET_N(4)
#define FRESHET_INPUTS_6 FRESHET_INPUTS_5, FRESHET_N(5)
#define FRESHET_INPUTS_7 FRESHET_INPUTS_6, FRESHET_N(6)
#define FRESHET_INPUTS_8 FRESHET_INPUTS_7, FRESHET_N(7)
	switch (count) {
	FRESHET_SET_CASE(2, FRESHET_WORDS_2, FRESHET_INPUTS_2)
	FRESHET_SET_CASE(3, FRESHET_WORDS_3, FRESHET_INPUTS_3)
	FRESHET_SET_CASE(4, FRESHET_WORDS_4, FRESHET_INPUTS_4)
	FRESHET_SET_CASE(5, FRESHET_WORDS_5, FRESHET_INPUTS_5)
	FRESHET_SET_CASE(6, FRESHET_WORDS_6, FRESHET_INPUTS_6)
	FRESHET_SET_CASE(7, FRESHET_WORDS_7, FRESHET_INPUTS_7)
	FRESHET_SET_CASE(8, FRESHET_WORDS_8, FRESHET_INPUTS_8)
	FRESHET_SET_CASE(9, FRESHET_FAR_9, FRESHET_AMOUNTS)
	FRESHET_SET_CASE(10, FRESHET_FAR_10, FRESHET_AMOUNTS)
	FRESHET_SET_CASE(11, FRESHET_FAR_11, FRESHET_AMOUNTS)
	FRESHET_SET_CASE(12, FRESHET_FAR_12, FRESHET_AMOUNTS)
	FRESHET_SET_CASE(13, FRESHET_FAR_13, FRESHET_AMOUNTS)
	FRESHET_SET_CASE(14, FRESHET_FAR_14, FRESHET_AMOUNTS)
	FRESHET_SET_CASE(15, FRESHET_FAR_15, FRESHET_AMOUNTS)
	FRESHET_SET_CASE(16, FRESHET_FAR_16, FRESHET_AMOUNTS)
	}
	return 0;
miss:
	FRESHET_SEQ_LEFT(group);
	return 0;
}

/*
 * For the library: if this is CPU slot `slot`, the selector is `selector` and *tag the handle's, sets
 * bits in *bits (which is this slot's) and stamps the cell. 1, or 0: not done, or not wholly, which
 * leaves at most a bit without a meaning.
 */
static inline int freshet_seq_mark(const struct freshet_handle *group, unsigned slot,
				   uint64_t selector, const uint64_t *tag, uint64_t *bits,
				   uint64_t bit, uint64_t *cell)
{
	__asm__ __volatile__ goto(
		FRESHET_SEQ_SLOT
		"cmpl %[want], %%eax\n\t"
		"jne %l[miss]\n\t"
		"cmpq %[selector], (%[hot])\n\t"
		"jne %l[miss]\n\t"
		"movq %[tag], %%rcx\n\t"
		"cmpq (%[life]), %%rcx\n\t"
		"jne %l[miss]\n\t"
		"addq %[selector], %%rcx\n\t"
		"orq %[bit], (%[bits])\n\t"
		FRESHET_SEQ_DELAY
		"movq %%rcx, (%[cell])\n"
		"2:\n\t"
		FRESHET_SEQ_END
		:
		: [area] "r"(freshet_area(group->place)),
		  [slot] "r"(freshet_area(group->place) + freshet_limit_field(group->limits)),
		  [want] "r"(slot), [selector] "r"(selector), [hot] "r"(group->hot),
		  [tag] "r"(group->tag), [life] "r"(tag), [bits] "r"(bits), [bit] "r"(bit),
		  [cell] "r"(cell)
		: "memory", "cc", "rax", "rcx"
		: miss);
	return 1;
miss:
	FRESHET_SEQ_LEFT(group);
	return 0;
}

#endif
