/* SPDX-License-Identifier: MIT */
/*
 * Memory with a store buffer for each CPU that stores. The model that includes this defines CPUS,
 * WORDS, DEPTH (entries of a buffer) and, if it likes, drained(a), done when a store to word a
 * reaches memory, and halted(c), whether CPU c has stopped for ever. What its buffer still holds
 * then are the stores that it did not come to make.
 *
 * store() appends to the CPU's buffer; load() sees the CPU's own newest store, else memory; CPUs that
 * never store read mem[] itself. hardware() moves stores to memory whenever it likes:
 *   - x86-TSO (default): the oldest first.
 *   - WEAK (as arm64 may): any, but not before an older one to the same word, not before a
 *     store-store fence that is older, and a release store not before anything older.
 * A full fence, and what implies one (locked instruction, seq_cst store, interrupt, context switch),
 * empties the buffer.
 *
 * All are meant for use inside d_step. A store needs room: guard it with room(c, n). Stores that
 * follow each other without a load or an interrupt between them may be one step: nobody can tell a
 * store that waits in the buffer from one that was not made yet.
 */
typedef buffer {
	byte n;
	byte at[DEPTH];
	byte to[DEPTH];
};
buffer sb[CPUS];
byte mem[WORDS];
hidden byte i_, j_;
hidden byte at_, to_;
hidden byte ok_;

#define FENCE 127 /* in place of a word: store-store fence */
#define REL   128 /* added to a word: release store */

#define room(c, k) (sb[c].n + (k) <= DEPTH)
#define empty(c)   (sb[c].n == 0)

#ifndef drained
#define drained(a) skip
#endif
#ifndef halted
#define halted(c) false
#endif

inline store(c, a, x)
{
	sb[c].at[sb[c].n] = a;
	sb[c].to[sb[c].n] = x;
	sb[c].n++
}

#ifdef WEAK
#define store_release(c, a, x) store(c, (a) + REL, x)
#define fence_release(c)       store(c, FENCE, 0)
#define STORES 2 /* entries that a release store with a fence takes */
#else
#define store_release(c, a, x) store(c, a, x)
#define fence_release(c)       skip
#define STORES 1
#endif

inline load(c, a, ret)
{
	ret = mem[a];
	for (i_ : 1 .. DEPTH) {
		if
		:: i_ <= sb[c].n && sb[c].at[i_ - 1] % REL == a -> ret = sb[c].to[i_ - 1]
		:: else
		fi
	}
}

inline take(c, k)
{
	at_ = sb[c].at[k] % REL;
	to_ = sb[c].to[k];
	i_ = k;
	do
	:: i_ + 1 < sb[c].n ->
		sb[c].at[i_] = sb[c].at[i_ + 1];
		sb[c].to[i_] = sb[c].to[i_ + 1];
		i_++
	:: else -> break
	od;
	sb[c].n--;
	sb[c].at[sb[c].n] = 0;
	sb[c].to[sb[c].n] = 0;
	if
	:: at_ != FENCE ->
		mem[at_] = to_;
		drained(at_)
	:: else
	fi
}

/* Everything: for fences, interrupts, context switches. */
inline drain(c)
{
	do
	:: sb[c].n > 0 -> take(c, 0)
	:: else -> break
	od
}

#ifdef WEAK
/* Whether entry k may overtake the older ones; leaves the answer in ok_. */
inline may_pass(c, k)
{
	ok_ = (sb[c].at[k] < REL && sb[c].at[k] != FENCE);
	j_ = 0;
	do
	:: j_ < k ->
		if
		:: sb[c].at[j_] == FENCE || sb[c].at[j_] % REL == sb[c].at[k] % REL -> ok_ = false
		:: else
		fi;
		j_++
	:: else -> break
	od
}
#define PASS(c, k) :: d_step { sb[c].n > (k) && !halted(c) -> may_pass(c, k); if :: ok_ -> take(c, k) :: else fi }
#endif

/* Branches of hardware()'s loop. */
#ifdef WEAK
#if DEPTH > 9
#error "PASS for the other entries"
#endif
#define DRAIN(c) :: d_step { sb[c].n > 0 && !halted(c) -> take(c, 0) } \
	PASS(c, 1) PASS(c, 2) PASS(c, 3) PASS(c, 4) PASS(c, 5) PASS(c, 6) PASS(c, 7) PASS(c, 8)
#else
#define DRAIN(c) :: d_step { sb[c].n > 0 && !halted(c) -> take(c, 0) }
#endif
