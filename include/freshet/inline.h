/* SPDX-License-Identifier: MIT */
/*
 * The inline half of freshet_add() and its like: included by freshet.h, not by programs.
 *
 * An update is one restartable sequence (rseq(2)): read the CPU slot, find the group's cell on it,
 * compare the cell's stamp with the selector plus the handle's tag, and commit with one store. A
 * stamp that matches says three things at once: this group's dirty bit is set for the present
 * epoch, the group lives, and this is the process that opened the tree (in a forked child the
 * selector reads 0). Everything else (another epoch, an abort, no rseq, a bad index) goes to the
 * library's freshet_..._slow().
 *
 * Ordering: bit, stamp and number are stored in this order by one CPU slot, each with release where
 * the machine does not keep stores in order by itself (arm64). Pairs with cells.h: who sees the number
 * sees the bit. There is no order between the selector's load and the flusher: it makes one with
 * membarrier(2), flush.c.
 *
 * The layout shown here (struct freshet_hot, struct freshet_handle, the head of a cell, a set) is
 * part of the ABI: FRESHET_0.1 of libfreshet.map stands for it.
 */
#ifndef FRESHET_INLINE_H
#define FRESHET_INLINE_H

/* A tree's page that updates read; written by flush alone; all zeroes in a forked child. */
struct freshet_hot {
	uint64_t selector; /* epoch, from 4; its low two bits choose the dirty bitmap */
	struct freshet_tree *tree;
	/* By first stat: offset of the set in a cell, in words; its number of stats << 16. Or 0. */
	uint32_t set[FRESHET_MAX_STATS];
	/* Offset of the first bucket in a cell, in words; the number of the last << 16; precision << 32;
	 * lowest << 40. 0: no such histogram. */
	uint64_t histogram[FRESHET_MAX_HISTOGRAMS];
};

/* A cell: the stamp; a word for each stat; if there are gauges, a word for each stat's decreases;
 * sets; histograms. A set: its version, then FRESHET_BANKS banks of count words (cells.h). */
#define FRESHET_BANKS 6

FRESHET_API int freshet_add_slow(const struct freshet_handle *group, unsigned stat, int64_t n);
FRESHET_API int freshet_add_set_slow(const struct freshet_handle *group, unsigned first,
				     unsigned count, const int64_t *n);
FRESHET_API int freshet_add_word_slow(const struct freshet_handle *group, unsigned word,
				      uint64_t n);
FRESHET_API int freshet_observe_slow(const struct freshet_handle *group, unsigned histogram,
				     uint64_t value);

/* handle->place: offset of the thread's rseq area from the thread pointer, signed, in the upper 32
 * bits; bytes from one CPU slot's cell to the next's in the lower ones. */
FRESHET_INLINE int64_t freshet_area(int64_t place)
{
	return place >> 32;
}

FRESHET_INLINE uint64_t freshet_stride(int64_t place)
{
	return (uint32_t)place;
}

/* handle->limits, 16 bits each: CPU slots; offset in the rseq area of the number that says which
 * (mm_cid, or cpu_id on older kernels); stats; stats that have a word for decreases (all or none). */
FRESHET_INLINE unsigned freshet_limit_slots(uint64_t limits)
{
	return (unsigned)(limits & 0xffff);
}

FRESHET_INLINE int64_t freshet_limit_field(uint64_t limits)
{
	return (int64_t)(limits >> 16 & 0xffff);
}

FRESHET_INLINE unsigned freshet_limit_stats(uint64_t limits)
{
	return (unsigned)(limits >> 32) & 0xffff;
}

FRESHET_INLINE unsigned freshet_limit_down(uint64_t limits)
{
	return (unsigned)(limits >> 48);
}

/* FRESHET_NO_ASM: for ThreadSanitizer, which cannot see into a sequence. */
#if defined(__SANITIZE_THREAD__)
#define FRESHET_NO_ASM 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FRESHET_NO_ASM 1
#endif
#endif

/* Sets of more than 8, by what a machine does for one stat: their amounts are too many to be operands
 * of the assembly each, and are loaded in it. */
#define FRESHET_FAR_8  FRESHET_SET_FAR("0") FRESHET_SET_FAR("8") FRESHET_SET_FAR("16")            \
	FRESHET_SET_FAR("24") FRESHET_SET_FAR("32") FRESHET_SET_FAR("40") FRESHET_SET_FAR("48") \
	FRESHET_SET_FAR("56")
#define FRESHET_FAR_9  FRESHET_FAR_8 FRESHET_SET_FAR("64")
#define FRESHET_FAR_10 FRESHET_FAR_9 FRESHET_SET_FAR("72")
#define FRESHET_FAR_11 FRESHET_FAR_10 FRESHET_SET_FAR("80")
#define FRESHET_FAR_12 FRESHET_FAR_11 FRESHET_SET_FAR("88")
#define FRESHET_FAR_13 FRESHET_FAR_12 FRESHET_SET_FAR("96")
#define FRESHET_FAR_14 FRESHET_FAR_13 FRESHET_SET_FAR("104")
#define FRESHET_FAR_15 FRESHET_FAR_14 FRESHET_SET_FAR("112")
#define FRESHET_FAR_16 FRESHET_FAR_15 FRESHET_SET_FAR("120")
#define FRESHET_AMOUNTS [n] "r"(n)

#if defined(FRESHET_NO_ASM)
#define FRESHET_HAVE_RSEQ 0
#elif defined(__x86_64__) && defined(__LP64__)
#define FRESHET_HAVE_RSEQ 1
#include <freshet/inline-x86_64.h>
#elif defined(__aarch64__) && defined(__LP64__)
#define FRESHET_HAVE_RSEQ 1
#include <freshet/inline-aarch64.h>
#else
#define FRESHET_HAVE_RSEQ 0
#endif

FRESHET_INLINE int freshet_add(const struct freshet_handle *group, unsigned stat, int64_t n)
{
	struct freshet_handle copy;

#if FRESHET_HAVE_RSEQ
	unsigned stats = freshet_limit_stats(group->limits), word = 1 + stat;

	if (__builtin_expect(stat < stats, 1)) {
		uint64_t amount = (uint64_t)n;

		if (n < 0 && stat < freshet_limit_down(group->limits)) {
			word += stats;
			amount = 0 - amount;
		}
		if (__builtin_expect(freshet_seq_add(group, word, amount), 1))
			return 0;
	}
#endif
	copy = *group; /* so that the handle itself may stay in registers */
	return freshet_add_slow(&copy, stat, n);
}

FRESHET_INLINE int freshet_add_set(const struct freshet_handle *group, unsigned first,
				  unsigned count, const int64_t *n)
{
	struct freshet_handle copy;

#if FRESHET_HAVE_RSEQ
	if (__builtin_constant_p(count) && first < FRESHET_MAX_STATS && count > 1) {
		uint32_t set = group->hot->set[first];

		if (__builtin_expect(set >> 16 == count, 1) &&
		    __builtin_expect(freshet_seq_set(group, set & 0xffff, count, n), 1))
			return 0;
	}
#endif
	copy = *group;
	return freshet_add_set_slow(&copy, first, count, n);
}

/* Bucket of a value: see struct freshet_histogram. */
FRESHET_INLINE unsigned freshet_bucket_of(unsigned precision, unsigned lowest, unsigned last,
					  uint64_t value)
{
	uint64_t x = value >> lowest, bucket;

	if (x >> precision == 0)
		return x < last ? (unsigned)x : last;
#if defined(__x86_64__) && !defined(__LZCNT__)
	/* Without lzcnt, the exponent of a double is found faster than the highest bit: its upper
	 * bits are the bucket, but for where they begin. (uint64_t) 0x7ff: what would be rounded. */
	{
		double d = (double)(int64_t)(x >> 53 ? (x & ~(uint64_t)0x7ff) >> 1 : x);
		uint64_t bits;

		__builtin_memcpy(&bits, &d, sizeof(bits));
		bucket = (bits >> (52 - precision)) -
			 ((uint64_t)(1022 + precision - (x >> 53 != 0)) << precision);
	}
#else
	{
		unsigned shift = 63 - (unsigned)__builtin_clzll(x) - precision;

		bucket = ((uint64_t)shift << precision) + (x >> shift);
	}
#endif
	return bucket < last ? (unsigned)bucket : last;
}

FRESHET_INLINE int freshet_observe(const struct freshet_handle *group, unsigned histogram,
				  uint64_t value)
{
	struct freshet_handle copy;

#if FRESHET_HAVE_RSEQ
	uint64_t h = histogram < FRESHET_MAX_HISTOGRAMS ? group->hot->histogram[histogram] : 0;

	if (__builtin_expect(h != 0, 1)) {
		unsigned offset = h & 0xffff, last = h >> 16 & 0xffff;
		unsigned bucket = offset + freshet_bucket_of(h >> 32 & 0xff, (unsigned)(h >> 40),
							     last, value);

		int done = freshet_seq_observe(group, offset + last + 1, value, bucket);

		if (__builtin_expect(done == 2, 1))
			return 0;
		copy = *group;
		if (done == 1)
			return freshet_add_word_slow(&copy, bucket, 1);
	}
#endif
	copy = *group;
	return freshet_observe_slow(&copy, histogram, value);
}

#endif
