/* SPDX-License-Identifier: MIT */
/*
 * (e) Removal and reuse: a root with one group below it, which is removed (life 1), and whose slot
 * then becomes another group's (life 2); a thread that updates either as long as it lives, by rseq on
 * the only CPU slot or, with FALLBACK, on the only fallback slot; FLUSHES passes; a fresh reader of
 * the root.
 *
 * N is the number of bitmaps and banks; the tolerance is N - 2. A bank's epoch equals its generation:
 * a group's creation is published by the next flush. Only the group has updates of its own.
 */
#ifndef N
#define N 3
#endif
#ifndef UPDATES
#define UPDATES 2
#endif
#ifndef FLUSHES
#define FLUSHES 4
#endif
#ifndef FAILS
#define FAILS 0 /* flushes that end with an error of membarrier: their flip stays */
#endif

#define CPUS    2
#define F       1 /* the flusher's CPU */
#define DEPTH   9
#define SEL     0
#define GEN     1
#define TAG     2 /* which life may be updated; 0: none */
#define LIFE    3 /* the group's generation */
#define BORN    4
#define STAMP   5
#define CELL    6
#define OWNER   7
#define BIT(k)  (8 + (k))
#define CARRY(k) (8 + N + (k))
#define TOT(b)  (8 + 2 * N + (b)) /* of the root */
#define OWN(b)  (8 + 3 * N + (b)) /* of the group's row */
#define ROW(b)  (8 + 4 * N + (b)) /* generation in the group's row; 0: it is not listed */
#define WORDS   (8 + 5 * N)

byte added; /* updates that are visible */
#define drained(a) added = added + (a == CELL && to_ != 0)

#include "tso.pml"

#define FAST   0
#define COMMIT 1
#define SLOW   2
#define BITS   3
#define STAMPS 4
byte pc, epoch, life, left; /* of the thread */
bool idle;

inline interrupt()
{
	drain(0);
	if
	:: pc == COMMIT -> pc = FAST
	:: pc == BITS || pc == STAMPS -> pc = SLOW
	:: else
	fi;
	epoch = 0
}

inline finish(n)
{
	left = left - n;
	pc = FAST;
	epoch = 0;
	life = 0
}

#define MARK(e, l) (2 * (e) + (l))

/* A thread asks for an update of a life that it has heard of. */
#define ASK(l) :: d_step { life == 0 && left > 0 && (l == 1 || mem[TAG] == l) -> life = l }

proctype thread()
{
#ifdef FALLBACK
	do
	ASK(1)
	ASK(2)
	:: life == 0 && left == 0 -> break
	:: d_step { life != 0 && pc == FAST && empty(0) && mem[OWNER] == 0 -> mem[OWNER] = 2; pc = COMMIT }
#ifdef EPOCH_FIRST
#define AT_TAG   SLOW
#define AT_EPOCH COMMIT
#else
#define AT_TAG   COMMIT
#define AT_EPOCH SLOW
#endif
	:: d_step {
		pc == AT_TAG && room(0, 1) ->
		pc++;
#ifndef BUG_NO_TAG_CHECK
		if
		:: mem[TAG] != life -> store_release(0, OWNER, 0); finish(1)
		:: else
		fi
#endif
	   }
	:: d_step { pc == AT_EPOCH -> epoch = mem[SEL]; pc++ }
	:: d_step {
		pc == BITS && room(0, 3) ->
		if
		:: mem[BIT(epoch % N)] == 0 -> store(0, BIT(epoch % N), 1)
		:: else
		fi;
		load(0, CELL, to_);
		store_release(0, CELL, to_ + 1);
		store_release(0, OWNER, 0);
		finish(1)
	   }
	od
#else
	do
	ASK(1)
	ASK(2)
	:: life == 0 && left == 0 -> break
	:: d_step { life != 0 && pc == FAST -> epoch = mem[SEL]; pc = COMMIT }
	:: d_step {
		pc == COMMIT && room(0, 1) ->
		load(0, STAMP, to_);
		if
		:: to_ == MARK(epoch, life) ->
			load(0, CELL, to_);
			store_release(0, CELL, to_ + 1);
			finish(1)
		:: else -> pc = SLOW; epoch = 0
		fi
	   }
	:: d_step { pc == SLOW -> epoch = mem[SEL]; pc = BITS }
	:: d_step {
		pc == BITS && room(0, 1) ->
		if
#ifndef BUG_NO_TAG_CHECK
		:: mem[TAG] != life -> finish(1)
#endif
		:: else -> store(0, BIT(epoch % N), 1); pc = STAMPS
		fi
	   }
	:: d_step {
		pc == STAMPS && room(0, 1) ->
		store_release(0, STAMP, MARK(epoch, life));
		epoch = 0;
		pc = FAST
	   }
	od
#endif
	idle = true
}

active proctype hardware()
{
	d_step {
		mem[SEL] = N;
		mem[GEN] = N;
		mem[TAG] = 1;
		mem[LIFE] = 1;
		mem[BORN] = N;
		mem[ROW(0)] = 1;
		left = UPDATES
	}
	atomic { run thread(); run flusher(); run reader() }
end:	do
	DRAIN(0)
	DRAIN(F)
#ifndef FALLBACK
	/* Any interrupt. */
	:: d_step { pc == COMMIT || pc == BITS || pc == STAMPS -> interrupt() }
#endif
	od
}

/* The group's state. */
#define ALIVE 0
#define DEAD  1 /* no new updates */
#define GONE  2 /* not in the bank of pass `gone` and later ones */
#define AGAIN 3 /* another one lives there */

#ifdef BUG_REUSE_EARLY
#define REUSE (N - 2)
#else
#define REUSE (N - 1)
#endif

inline begin_life()
{
	store(F, LIFE, 0);
#ifndef BUG_NO_LIFE_FENCE
	fence_release(F);
#endif
	store(F, CELL, 0);
	store(F, STAMP, 0);
	store(F, BORN, gen + 1);
	store_release(F, LIFE, 2);
	store_release(F, TAG, 2)
}

inline publish()
{
	b = (gen + 1) % N;
	store(F, TOT(b), tot);
	store(F, OWN(b), own);
	store(F, ROW(b), (state == GONE -> 0 : (state == AGAIN -> 2 : 1)));
	store_release(F, GEN, gen + 1);
	fence_release(F);
	store(F, BIT((gen + 2) % N), 0);
#ifdef FALLBACK
	store(F, CARRY((gen + 2) % N), 0);
#endif
	gen++;
	b = 0
}

proctype flusher()
{
	byte gen = N, flushes, fails, state, gone, own, tot, b;
	bool rest, busy, dirty, pending;
	bool old; /* the present flip is older than the removal: a stamp may still match */

	do
	:: flushes == FLUSHES -> break
	:: d_step { state == ALIVE && flushes < FLUSHES && room(F, 1) -> store_release(F, TAG, 0); state = DEAD; old = pending }
		empty(F) /* seq_cst */
	:: d_step {
		state == GONE && flushes < FLUSHES && gen + 1 >= gone + REUSE && room(F, DEPTH - 2) ->
		begin_life();
		state = AGAIN;
		own = 0;
		gone = 0
	   }
		empty(F) /* seq_cst */
	:: d_step {
		flushes < FLUSHES && room(F, 1) ->
		if
		:: !pending -> store_release(F, SEL, gen + 1); rest = (idle && empty(0)); old = false
		:: else
		fi;
		pending = true
	   }
		if
		:: fails < FAILS -> fails++; goto next
		:: true
		fi;
#ifndef FALLBACK
#ifndef BUG_NO_MEMBARRIER
		empty(F);
		d_step { true -> interrupt() }
#endif
#endif
		empty(F);
#ifdef FALLBACK
		if
		:: d_step { mem[OWNER] == 0 -> skip }
		:: d_step { mem[OWNER] != 0 && room(F, 1) -> store(F, CARRY((gen + 1) % N), 1); busy = true }
		fi;
#endif
		atomic { true -> dirty = mem[BIT(gen % N)] || mem[CARRY(gen % N)] }
		if
		:: atomic {
#ifdef BUG_DIRTY_ONLY
			dirty && state != GONE ->
#else
			/* A dead group's last update may have its bit in the new epoch. */
			state != GONE && (dirty || state == DEAD) ->
#endif
			tot = tot + mem[CELL] - own;
			own = mem[CELL]
		   }
		:: else
		fi;
		atomic {
			room(F, DEPTH - 2) ->
			assert(!rest || tot == added);
			if
#ifdef BUG_NO_BUSY
			:: state == DEAD && !old ->
#elif defined(BUG_OLD_FLIP)
			:: state == DEAD && !busy ->
#else
			:: state == DEAD && !busy && !old ->
#endif
				state = GONE;
				gone = gen + 1;
#ifdef BUG_DROP_FOLD
				tot = tot - own;
#endif
				own = 0
			:: else
			fi;
			publish();
			dirty = false;
			busy = false;
			rest = false;
			pending = false;
			flushes++
		}
next:		skip
	od
}

#define VALID (mem[GEN] - gen <= N - 2)

proctype reader()
{
	byte gen, low, b, whose, own, cells;
	bool dirty;

end:	do
	:: d_step { gen = mem[GEN]; low = added; b = gen % N }
	   if
	   :: d_step { VALID -> dirty = mem[BIT(b)] || mem[CARRY(b)] }
	   :: !VALID -> goto again
	   fi;
	   if
	   :: atomic { VALID -> dirty = dirty || mem[BIT((gen + 1) % N)] || mem[CARRY((gen + 1) % N)] }
	   :: !VALID -> goto again
	   fi;
	   if
	   :: !dirty -> goto total
	   :: atomic { VALID && dirty -> dirty = false; whose = mem[LIFE] }
	   :: !VALID -> goto again
	   fi;
	   if
	   :: whose == 0 -> goto total
	   :: atomic { VALID && whose != 0 && mem[ROW(b)] == whose -> own = mem[OWN(b)] }
#ifdef BUG_NO_BORN
	   :: atomic { VALID && whose != 0 && mem[ROW(b)] != whose -> own = 0 }
#else
	   :: atomic { VALID && whose != 0 && mem[ROW(b)] != whose && gen < mem[BORN] -> own = 0 }
	   :: atomic { VALID && whose != 0 && mem[ROW(b)] != whose && gen >= mem[BORN] } goto total
#endif
	   :: !VALID -> goto again
	   fi;
	   if
	   :: VALID -> cells = mem[CELL]
	   :: !VALID -> goto again
	   fi;
#ifndef BUG_NO_LIFE_RECHECK
	   if
	   :: atomic { VALID -> if :: mem[LIFE] != whose -> own = 0; cells = 0 :: else fi }
	   :: !VALID -> goto again
	   fi;
#endif
total:	   if
	   :: atomic {
		VALID ->
		assert(low <= mem[TOT(b)] + cells - own && mem[TOT(b)] + cells - own <= added)
	      }
	   :: !VALID
	   fi;
again:	   atomic { gen = 0; low = 0; b = 0; whose = 0; own = 0; cells = 0; dirty = false }
	od
}
