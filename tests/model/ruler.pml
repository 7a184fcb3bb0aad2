/* SPDX-License-Identifier: MIT */
/*
 * (d) Ruler banks of a set: one CPU slot that makes VERSIONS versions of a set of two stats, its
 * sections aborted at any moment, stopped for ever at any step; a reader.
 *
 * Version v is in bank min(ctz v, N-1), with v in each word; an aborted section leaves other words.
 * A read of the reader is a first attempt and retries, and then it begins anew. As soon as an attempt
 * is sure to be refused it is given up.
 *
 * SPEED: at most so many versions are committed while an attempt runs; RETRIES: asserted of each read.
 */
#ifndef N
#define N 3
#endif
#ifndef VERSIONS
#define VERSIONS 14
#endif
#define DEPTH 5
#define CPUS  1
#define V     0
#define WORD(i, k) (1 + 2 * (i) + (k))
#define WORDS (1 + 2 * N)
#define LAST  (N - 1)
#define JUNK  255

bool stopped;
#define halted(c) stopped
#ifdef SPEED
byte ran; /* versions since the attempt began */
#define drained(a) ran = ran + (a == V && ran <= SPEED)
#endif

#include "tso.pml"

/* Bank of a version, and when the bank's next rewrite is. */
#define TOP (1 << LAST)
#define BANK(v) (((v) & 1) -> 0 : (((v) & 2) && LAST > 1 -> 1 : (((v) & 4) && LAST > 2 -> 2 : \
	(((v) & 8) && LAST > 3 -> 3 : (((v) & 16) && LAST > 4 -> 4 : LAST)))))
#define LIFE(i) ((i) == LAST -> TOP : 2 << (i))

hidden byte v_, b_, best_, life_;

#ifdef BUG_PLAIN_WORDS
#define store_word(c, a, x) store(c, a, x)
#else
#define store_word(c, a, x) store_release(c, a, x)
#endif

#ifdef SPEED
#define may_drain() empty(0) /* or it would hurry the versions in the buffer */
#else
#define may_drain() true
#endif

active proctype writer()
{
	byte version;

	atomic { run hardware(); run reader() }
	do
	:: version == VERSIONS -> break
	:: stopped = true; break
	   /* A section that is aborted after one word or both: an interrupt, its buffer drained. */
	:: d_step {
		version < VERSIONS && may_drain() ->
		drain(0);
		b_ = BANK(version + 1);
#ifdef BUG_SEQCOUNT
		mem[V] = 2 * version + 1;
		b_ = 0;
#endif
		mem[WORD(b_, 0)] = JUNK
	   }
	:: d_step {
		version < VERSIONS && may_drain() ->
		drain(0);
		b_ = BANK(version + 1);
#ifdef BUG_SEQCOUNT
		mem[V] = 2 * version + 1;
		b_ = 0;
#endif
		mem[WORD(b_, 0)] = JUNK;
		mem[WORD(b_, 1)] = JUNK
	   }
	   /* One that commits. Its loads are of words that nobody else writes. */
	:: d_step {
		version < VERSIONS && room(0, 4) ->
		b_ = BANK(version + 1);
		version++;
#ifdef BUG_SEQCOUNT
		b_ = 0;
		store_release(0, V, 2 * version - 1);
		store_word(0, WORD(b_, 0), version);
		store_word(0, WORD(b_, 1), version);
		store_release(0, V, 2 * version);
#elif defined(BUG_COMMIT_FIRST)
		store_release(0, V, version);
		store_word(0, WORD(b_, 0), version);
		store_word(0, WORD(b_, 1), version);
#else
		store_word(0, WORD(b_, 0), version);
		store_word(0, WORD(b_, 1), version);
		store_release(0, V, version);
#endif
	   }
	od
}

proctype hardware()
{
end:	do
#ifdef SPEED
	:: d_step { sb[0].n > 0 && !stopped && (sb[0].at[0] % REL != V || ran < SPEED) -> take(0, 0) }
#else
	DRAIN(0)
#endif
	od
}

/* Of the versions from `first` to `to` that are the newest of their bank: the one to try. */
inline choose(first, to)
{
	best_ = to;
	life_ = to + LIFE(BANK(to));
	for (i_ : 0 .. LAST) {
		/* The newest of bank i_. */
		v_ = to;
		do
		:: v_ > first && BANK(v_) != i_ -> v_--
		:: else -> break
		od;
		if
#ifdef BUG_DEEPEST
		:: BANK(v_) == i_ -> best_ = v_; life_ = v_ + LIFE(i_)
#else
		:: BANK(v_) == i_ && v_ + LIFE(i_) > life_ -> best_ = v_; life_ = v_ + LIFE(i_)
#endif
		:: else
		fi
	}
}

#ifdef BUG_NO_RECHECK
#define VALID true
#elif defined(BUG_ACCEPT)
#define VALID (mem[V] < next)
#elif defined(BUG_SEQCOUNT)
#define VALID (mem[V] == 2 * version)
#else
#define VALID (mem[V] + 1 < next)
#endif

#ifdef BUG_OLD
#define FIRST 0
#else
#define FIRST first
#endif

inline attempt(from, to)
{
#ifdef BUG_SEQCOUNT
	version = to / 2;
	next = 0;
#else
	choose(from, to);
	version = best_;
	next = life_;
#endif
	must = stopped;
#ifdef SPEED
	ran = 0
#endif
}

proctype reader()
{
	byte first, version, next, retries;
	bool must, torn;

end:	do
	:: d_step { first = mem[V]; attempt(mem[V], mem[V]) }
	   do
	   :: VALID ->
#ifdef BUG_SEQCOUNT
		first = version;
		torn = (mem[WORD(0, 0)] != version);
#else
		torn = (mem[WORD(BANK(version), 0)] != version);
#endif
		if
		:: d_step {
			VALID ->
#ifdef BUG_SEQCOUNT
			assert(mem[WORD(0, 1)] == version && !torn)
#else
			assert(version >= first && version <= mem[V]);
			assert(mem[WORD(BANK(version), 1)] == version && !torn)
#endif
		   }
		   break
		:: !VALID
		fi
	   :: !VALID ->
		atomic {
			assert(!must); /* an attempt that began after the writer had stopped stands */
			torn = false;
			version = 0;
			next = 0;
#ifdef SPEED
			retries++;
			assert(retries <= RETRIES)
#endif
		}
		d_step { true -> attempt(FIRST, mem[V]) }
	   od;
	   atomic { first = 0; version = 0; next = 0; must = false; torn = false; retries = 0 }
	od
}
