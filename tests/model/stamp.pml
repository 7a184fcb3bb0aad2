/* SPDX-License-Identifier: MIT */
/*
 * (a) Stamp, dirty bit, selector flip and membarrier with section restart: one group, THREADS
 * threads on SLOTS CPU slots between which they are moved at any moment, FLUSHES flushes of which
 * FAILS may end in an error of membarrier, and a reader that reads again and again.
 *
 * N is the number of bitmaps and banks; the tolerance is N - 2. A bank's epoch equals its generation
 * here (banks.pml has passes without a flush). The group has no other below it: own is its total.
 */
#ifndef N
#define N 3
#endif
#ifndef THREADS
#define THREADS 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef UPDATES
#define UPDATES 1 /* of each thread */
#endif
#ifndef FLUSHES
#define FLUSHES 2
#endif
#ifndef FAILS
#define FAILS 1
#endif
#ifndef DEPTH
#ifdef WEAK
#define DEPTH (3 + SLOTS)
#else
#define DEPTH (2 + SLOTS)
#endif
#endif

#define F        SLOTS /* the flusher's CPU */
#define CPUS     (SLOTS + 1)
#define SEL      0
#define GEN      1
#define TOTAL(b) (2 + (b))
#define BIT(k, s) (2 + N + (k) * SLOTS + (s))
#define STAMP(s) (2 + N + N * SLOTS + (s))
#define CELL(s)  (2 + N + N * SLOTS + SLOTS + (s))
#define WORDS    (2 + N + N * SLOTS + 2 * SLOTS)

#ifdef BUG_BIT_AFTER
#define LOOSE
byte completed; /* updates */
#define drained(a) completed = completed + (a >= BIT(0, 0) && a < STAMP(0) && mem[a] == 1)
#endif

#include "tso.pml"

#if SLOTS == 2
#define VISIBLE (mem[CELL(0)] + mem[CELL(1)])
#else
#define VISIBLE mem[CELL(0)]
#endif

/*
 * A thread: where it is, and the epoch its section has loaded. Not code of its own, so that an abort
 * is an assignment.
 */
#define FAST   0 /* load the selector */
#define COMMIT 1 /* compare the stamp, add */
#define SLOW   2 /* load the selector */
#define BITS   3
#define STAMPS 4
#define DONE   5
#define NOSLOT SLOTS
byte pc[THREADS];
byte epoch[THREADS];
byte left[THREADS];
byte on[THREADS]; /* slot */
hidden byte x_;

inline abort_section(t)
{
	if
	:: pc[t] == COMMIT -> pc[t] = FAST
	:: pc[t] == BITS || pc[t] == STAMPS -> pc[t] = SLOW
	:: else
	fi;
	epoch[t] = 0
}

inline interrupt(s) /* on whatever runs there, as membarrier sends */
{
	drain(s);
	for (x_ : 0 .. THREADS - 1) {
		if
		:: on[x_] == s -> abort_section(x_)
		:: else
		fi
	}
}

proctype thread(byte t)
{
	do
	:: d_step { pc[t] == FAST && on[t] != NOSLOT -> epoch[t] = mem[SEL]; pc[t] = COMMIT }
	:: d_step {
		pc[t] == COMMIT && on[t] != NOSLOT && room(on[t], 1) ->
		load(on[t], STAMP(on[t]), to_);
		if
		:: to_ == epoch[t] ->
			load(on[t], CELL(on[t]), to_);
			store_release(on[t], CELL(on[t]), to_ + 1);
			left[t]--;
			pc[t] = (left[t] -> FAST : DONE)
		:: else -> pc[t] = SLOW
		fi;
		epoch[t] = 0
	   }
	:: d_step { pc[t] == SLOW && on[t] != NOSLOT -> epoch[t] = mem[SEL]; pc[t] = BITS }
#ifdef BUG_BIT_AFTER
	/* the stamp, hence the number, before the bit */
	:: d_step {
		pc[t] == BITS && on[t] != NOSLOT && room(on[t], 1) ->
		store_release(on[t], STAMP(on[t]), epoch[t]);
		load(on[t], CELL(on[t]), to_);
		pc[t] = STAMPS
	   }
	:: d_step {
		pc[t] == STAMPS && on[t] != NOSLOT && room(on[t], 2) ->
		load(on[t], CELL(on[t]), to_);
		store_release(on[t], CELL(on[t]), to_ + 1);
		store(on[t], BIT(epoch[t] % N, on[t]), 1);
		left[t]--;
		pc[t] = (left[t] -> FAST : DONE);
		epoch[t] = 0
	   }
#else
	:: d_step {
		pc[t] == BITS && on[t] != NOSLOT && room(on[t], 1) ->
		store(on[t], BIT(epoch[t] % N, on[t]), 1);
		pc[t] = STAMPS
	   }
	:: d_step {
		pc[t] == STAMPS && on[t] != NOSLOT && room(on[t], 1) ->
		store_release(on[t], STAMP(on[t]), epoch[t]);
		epoch[t] = 0;
		pc[t] = FAST
	   }
#endif
	:: pc[t] == DONE -> break
	od
}

/* Puts thread t on slot s, where another one may be. Each switch is a full barrier and an abort. */
inline move(t, s)
{
	if
	:: on[t] != NOSLOT -> interrupt(on[t])
	:: else
	fi;
	interrupt(s);
	for (x_ : 0 .. THREADS - 1) {
		if
		:: on[x_] == s -> on[x_] = NOSLOT
		:: else
		fi
	}
	on[t] = s
}
#define MOVE(t, s) :: d_step { pc[t] != DONE && on[t] != (s) -> move(t, s) }

active proctype hardware()
{
	d_step {
		for (x_ : 0 .. THREADS - 1) {
			left[x_] = UPDATES;
			on[x_] = (x_ < SLOTS -> x_ : NOSLOT);
		}
		mem[SEL] = N; /* no stamp is of this epoch yet */
		mem[GEN] = N
	}
	atomic {
		run thread(0);
#if THREADS == 2
		run thread(1);
#endif
		run flusher();
		run reader()
	}
end:
	do
	DRAIN(0)
#if SLOTS == 2
	DRAIN(1)
#endif
	DRAIN(F)
	MOVE(0, 0)
#if SLOTS == 2
	MOVE(0, 1)
#endif
#if THREADS == 2
	MOVE(1, 0)
#if SLOTS == 2
	MOVE(1, 1)
#endif
#endif
	od
}

#ifdef BUG_CLEAR_EARLY
#define CLEARED 3
#else
#define CLEARED 2
#endif

inline clear()
{
	for (s : 0 .. SLOTS - 1) {
		store(F, BIT((j + CLEARED) % N, s), 0)
	}
	s = 0
}

inline publish()
{
#ifdef BUG_CLEAR_FIRST
	clear();
#endif
	store(F, TOTAL((j + 1) % N), own);
	store_release(F, GEN, j + 1);
#ifndef BUG_NO_RELEASE_FENCE
	fence_release(F);
#endif
#ifndef BUG_CLEAR_FIRST
	clear()
#endif
}

proctype flusher()
{
	byte j, own, s, sum;
	byte fails, flushes;
	bool pending, rest, dirty;

	do
	:: flushes == FLUSHES -> break
	:: flushes < FLUSHES ->
		d_step {
			room(F, 1) ->
			load(F, SEL, to_);
			j = (pending -> to_ - 1 : to_);
			if
			:: !pending ->
				store_release(F, SEL, j + 1);
				rest = (pc[0] == DONE && pc[THREADS - 1] == DONE && empty(0) &&
					empty(SLOTS - 1))
			:: else
			fi;
			pending = true
		}
		if
		:: fails < FAILS -> fails++; goto next /* of a flush that did not happen */
		:: skip
		fi;
#ifndef BUG_NO_MEMBARRIER
		empty(F); /* a barrier is the first thing it does */
		s = 0;
		do
		:: d_step { s < SLOTS -> interrupt(s); s++ }
		:: s == SLOTS -> break
		od;
#endif
		atomic {
			empty(F) -> /* the seq_cst fence */
			dirty = false;
			for (s : 0 .. SLOTS - 1) {
				dirty = dirty || mem[BIT(j % N, s)]
			}
			s = 0;
			sum = 0
		}
		if
		:: dirty ->
			do
			:: d_step { s < SLOTS -> sum = sum + mem[CELL(s)]; s++ }
			:: s == SLOTS -> break
			od;
			own = sum;
			s = 0;
			sum = 0
		:: else
		fi;
		atomic { assert(!rest || own == THREADS * UPDATES); rest = false; dirty = false }
		atomic { room(F, 2 + SLOTS + STORES - 1) -> publish() }
		atomic { pending = false; flushes++ }
next:		atomic { j = 0; s = 0 }
	od
}

#define ROWS SLOTS
#include "reader.pml"
