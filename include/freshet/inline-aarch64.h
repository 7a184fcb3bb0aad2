/* SPDX-License-Identifier: MIT */
/*
 * The restartable sequences of inline.h for arm64: included by it alone.
 *
 * Conventions: Linux, include/uapi/linux/rseq.h, and inline-x86_64.h. The word before the abort address
 * is the signature that glibc registered, a brk instruction. It, and a jump to where a sequence that
 * is not done goes, lie in front of the sequence, which jumps over them. All conditional branches go
 * there, too: they reach 1 MiB, and the compiler may have put their target farther away, into a
 * section of unlikely code. (So may the end of the section be, "subsection 1"; clang's assembler then
 * makes a jump to nowhere of it without a word.)
 *
 * Ordering. Every store that inline.h wants ordered is a stlr, which all loads and stores before it
 * precede: the stamp (behind the bit), the number (behind the stamp that was loaded, whoever stored it
 * on this CPU slot: threads change with a barrier), a set's version (behind its bank). The words of
 * a bank, too, each behind the former version's store; a load of the version with acquire would do
 * that as well, but a ldar waits until that stlr is done.
 */
#ifndef FRESHET_INLINE_AARCH64_H
#define FRESHET_INLINE_AARCH64_H

#define FRESHET_RSEQ_CPU_ID "4" /* struct rseq: offset of cpu_id */
#define FRESHET_RSEQ_CS     "8" /* of rseq_cs */

/* See inline-x86_64.h. Here sequences that were not done clear the pointer as well. */
#if defined(__PIC__) && !defined(__PIE__)
#define FRESHET_SEQ_END "str xzr, [x10, #" FRESHET_RSEQ_CS "]\n\t"
#else
#define FRESHET_SEQ_END ""
#endif

/* In front of the commit, for tests that want aborts: may use x12, x15 and the flags, and go to 4b. */
#ifndef FRESHET_SEQ_DELAY
#define FRESHET_SEQ_DELAY ""
#endif

/* x10: this thread's rseq area. */
#define FRESHET_SEQ_AREA                                                                       \
	"mrs x10, tpidr_el0\n\t"                                                               \
	"add x10, x10, %[area]\n\t"

/* Opens a sequence that goes to `label` when it is interrupted, and ends at the next label 2. Label 4
 * is where it goes by itself. Uses x11. */
#define FRESHET_SEQ_OPEN(label)                                                                \
	".pushsection __rseq_cs, \"aw?\"\n\t"                                                  \
	".balign 32\n"                                                                         \
	"3:\n\t"                                                                               \
	".long 0, 0\n\t"                                                                       \
	".quad 1f, 2f - 1f, 4f\n\t"                                                            \
	".popsection\n\t"                                                                      \
	"b 5f\n\t"                                                                             \
	".inst 0xd428bc00\n"                                                                   \
	"4:\n\t"                                                                               \
	FRESHET_SEQ_END                                                                        \
	"b %l[" label "]\n"                                                                    \
	"5:\n\t"                                                                               \
	"adrp x11, 3b\n\t"                                                                     \
	"add x11, x11, :lo12:3b\n\t"                                                           \
	"str x11, [x10, #" FRESHET_RSEQ_CS "]\n"                                               \
	"1:\n\t"

/* Goes on: w9 is the CPU slot. */
#define FRESHET_SEQ_SLOT                                                                       \
	FRESHET_SEQ_AREA                                                                       \
	FRESHET_SEQ_OPEN("miss")                                                               \
	"ldr w11, [x10, #" FRESHET_RSEQ_CPU_ID "]\n\t"                                         \
	"cmp w11, #0\n\t" /* < 0: thread is not registered */                                  \
	"b.lt 4b\n\t"                                                                          \
	"ldr w9, [x10, %[field]]\n\t"

/* Whether the cell at x9 has the stamp. Uses x11, x12. */
#define FRESHET_SEQ_STAMP                                                                      \
	"ldr x11, [%[hot]]\n\t"                                                                \
	"ldr x12, [x9]\n\t"                                                                    \
	"add x11, x11, %[tag]\n\t"                                                             \
	"cmp x11, x12\n\t"                                                                     \
	"b.ne 4b\n\t"

/* Goes on: x9 is the group's cell on this slot, its stamp compared. */
#define FRESHET_SEQ_CELL                                                                       \
	"cmp w9, %w[slots]\n\t"                                                                \
	"b.hs 4b\n\t"                                                                          \
	"madd x9, x9, %[stride], %[cell]\n\t"                                                  \
	FRESHET_SEQ_STAMP

#define FRESHET_SEQ_INPUTS                                                                     \
	[area] "r"(freshet_area(group->place)),                                                \
		[field] "r"(freshet_limit_field(group->limits)),                               \
		[slots] "r"(freshet_limit_slots(group->limits)),                               \
		[stride] "r"(freshet_stride(group->place)), [hot] "r"(group->hot),             \
		[tag] "r"(group->tag), [cell] "r"(group->cell)

/* Adds n to a word of the group's cell. 1, or 0: not done. */
FRESHET_INLINE int
freshet_seq_add(const struct freshet_handle *group, unsigned word, uint64_t n)
{
	__asm__ __volatile__ goto(
		FRESHET_SEQ_SLOT
		FRESHET_SEQ_CELL
		"add x9, x9, %[offset]\n\t"
		"ldr x11, [x9]\n\t"
		"add x11, x11, %[n]\n\t"
		FRESHET_SEQ_DELAY
		"stlr x11, [x9]\n"
		"2:\n\t"
		FRESHET_SEQ_END
		:
		: FRESHET_SEQ_INPUTS, [offset] "rI"((uint64_t)word * 8), [n] "rI"(n)
		: "memory", "cc", "x9", "x10", "x11", "x12", "x15"
		: miss);
	return 1;
miss:
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
		"mov w13, w9\n\t"
		FRESHET_SEQ_CELL
		"add x14, x9, %[first]\n\t"
		"ldr x11, [x14]\n\t"
		"add x11, x11, %[n]\n\t"
		FRESHET_SEQ_DELAY
		"stlr x11, [x14]\n"
		"2:\n\t"
		FRESHET_SEQ_OPEN("half")
		"ldr w11, [x10, %[field]]\n\t"
		"cmp w11, w13\n\t"
		"b.ne 4b\n\t"
		FRESHET_SEQ_STAMP
		"add x9, x9, %[second]\n\t"
		"ldr x11, [x9]\n\t"
		"add x11, x11, #1\n\t"
		FRESHET_SEQ_DELAY
		"stlr x11, [x9]\n"
		"2:\n\t"
		FRESHET_SEQ_END
		:
		: FRESHET_SEQ_INPUTS, [first] "rI"((uint64_t)first * 8),
		  [second] "rI"((uint64_t)second * 8), [n] "rI"(n)
		: "memory", "cc", "x9", "x10", "x11", "x12", "x13", "x14", "x15"
		: miss, half);
	return 2;
half:
	return 1;
miss:
	return 0;
}

/* One stat of a set: from the bank whose word before this one is at x11, to that at x12. */
#define FRESHET_SET_WORD(i)                                                                    \
	"ldr x13, [x11, #8]!\n\t"                                                              \
	"add x12, x12, #8\n\t"                                                                 \
	"add x13, x13, %[n" #i "]\n\t"                                                         \
	"stlr x13, [x12]\n\t"
/* The same in a set of more than 8. */
#define FRESHET_SET_FAR(at)                                                                    \
	"ldr x13, [x11, #8]!\n\t"                                                              \
	"ldr x15, [%[n], #" at "]\n\t"                                                        \
	"add x12, x12, #8\n\t"                                                                 \
	"add x13, x13, x15\n\t"                                                               \
	"stlr x13, [x12]\n\t"

/* Banks and version: as in inline-x86_64.h. */
#define FRESHET_SET_CASE(stats, words, inputs)                                                 \
	case stats:                                                                            \
		__asm__ __volatile__ goto(                                                     \
			FRESHET_SEQ_SLOT                                                       \
			FRESHET_SEQ_CELL                                                       \
			"add x9, x9, %[offset]\n\t"                                            \
			"ldr x13, [x9]\n\t"                                                    \
			"add x14, x13, #1\n\t"                                                 \
			"orr x11, x13, #1 << (%c[banks] - 1)\n\t"                              \
			"rbit x11, x11\n\t"                                                    \
			"clz x11, x11\n\t"                                                     \
			"orr x12, x14, #1 << (%c[banks] - 1)\n\t"                              \
			"rbit x12, x12\n\t"                                                    \
			"clz x12, x12\n\t"                                                     \
			"mov x15, #8 * " #stats "\n\t"                                         \
			"madd x11, x11, x15, x9\n\t"                                           \
			"madd x12, x12, x15, x9\n\t"                                           \
			words                                                                  \
			FRESHET_SEQ_DELAY                                                      \
			"stlr x14, [x9]\n"                                                     \
			"2:\n\t"                                                               \
			FRESHET_SEQ_END                                                        \
			:                                                                      \
			: FRESHET_SEQ_INPUTS, [offset] "rI"((uint64_t)offset * 8), inputs,     \
			  [banks] "i"(FRESHET_BANKS)                                           \
			: "memory", "cc", "x9", "x10", "x11", "x12", "x13", "x14", "x15"       \
			: miss);                                                               \
		return 1;

/* Adds n[i] to the i-th stat of the set of `count` stats at word offset of the cell. 1, or 0: not
 * done. count is a constant where this is to be fast. */
FRESHET_INLINE int
freshet_seq_set(const struct freshet_handle *group, unsigned offset, unsigned count,
		const int64_t *n)
{
#define FRESHET_WORDS_1 FRESHET_SET_WORD(0)
#define FRESHET_WORDS_2 FRESHET_WORDS_1 FRESHET_SET_WORD(1)
#define FRESHET_WORDS_3 FRESHET_WORDS_2 FRESHET_SET_WORD(2)
#define FRESHET_WORDS_4 FRESHET_WORDS_3 FRESHET_SET_WORD(3)
#define FRESHET_WORDS_5 FRESHET_WORDS_4 FRESHET_SET_WORD(4)
#define FRESHET_WORDS_6 FRESHET_WORDS_5 FRESHET_SET_WORD(5)
#define FRESHET_WORDS_7 FRESHET_WORDS_6 FRESHET_SET_WORD(6)
#define FRESHET_WORDS_8 FRESHET_WORDS_7 FRESHET_SET_WORD(7)
/* Small constants become part of the instruction. */
#define FRESHET_N(i)     [n##i] "rI"(n[i])
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
miss:
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
		"cmp w9, %w[want]\n\t"
		"b.ne 4b\n\t"
		/* Before the tag: who loads a selector that is younger than a removal sees that. */
		"ldar x11, [%[hot]]\n\t"
		"cmp x11, %[selector]\n\t"
		"b.ne 4b\n\t"
		"ldr x11, [%[life]]\n\t"
		"cmp x11, %[tag]\n\t"
		"b.ne 4b\n\t"
		"add x11, x11, %[selector]\n\t"
		"ldr x12, [%[bits]]\n\t"
		"orr x12, x12, %[bit]\n\t"
		"str x12, [%[bits]]\n\t"
		FRESHET_SEQ_DELAY
		"stlr x11, [%[cell]]\n"
		"2:\n\t"
		FRESHET_SEQ_END
		:
		: [area] "r"(freshet_area(group->place)),
		  [field] "r"(freshet_limit_field(group->limits)),
		  [want] "r"(slot), [selector] "r"(selector), [hot] "r"(group->hot),
		  [tag] "r"(group->tag), [life] "r"(tag), [bits] "r"(bits), [bit] "r"(bit),
		  [cell] "r"(cell)
		: "memory", "cc", "x9", "x10", "x11", "x12", "x15"
		: miss);
	return 1;
miss:
	return 0;
}

#endif
