/* SPDX-License-Identifier: MIT */
/*
 * (c) Fallback slots: one group, THREADS threads that claim one of SLOTS slots for each update and
 * may stall anywhere for any number of flushes, and a reader that reads again and again. No
 * membarrier and no restart: nothing tells such a thread of a flush.
 *
 * N is the number of bitmaps and banks; the tolerance is N - 2. A bank's epoch equals its generation
 * here. The group has no other below it: own is its total. Row SLOTS of bits is the carry row.
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
#define FLUSHES 3
#endif
#ifndef DEPTH
#ifdef WEAK
#define DEPTH (4 + SLOTS)
#else
#define DEPTH (3 + SLOTS)
#endif
#endif

#define F        THREADS /* the flusher's CPU; each thread has its own */
#define CPUS     (THREADS + 1)
#define SEL      0
#define GEN      1
#define TOTAL(b) (2 + (b))
#define BIT(k, s) (2 + N + (k) * (SLOTS + 1) + (s))
#define OWNER(s) (2 + N + N * (SLOTS + 1) + (s))
#define CELL(s)  (2 + N + N * (SLOTS + 1) + SLOTS + (s))
#define WORDS    (2 + N + N * (SLOTS + 1) + 2 * SLOTS)

#ifdef BUG_BIT_AFTER
#define LOOSE
#define drained(a) completed = completed + (a >= OWNER(0) && a < CELL(0) && mem[a] == 0)
#endif
#ifdef BUG_SHARED_CELL
#define LOOSE
#endif
#ifdef LOOSE
byte completed; /* updates */
#endif

#include "tso.pml"

#if SLOTS == 2
#define VISIBLE (mem[CELL(0)] + mem[CELL(1)])
#else
#define VISIBLE mem[CELL(0)]
#endif

bool done[THREADS];

inline set_bit(t, k, s)
{
	if
	:: mem[BIT(k, s)] == 0 -> store(t, BIT(k, s), 1)
	:: else
	fi
}

inline add(t, s)
{
	load(t, CELL(s), to_);
	store_release(t, CELL(s), to_ + 1)
}

proctype thread(byte t)
{
	byte left = UPDATES, s, x;

	do
	:: left > 0 ->
#ifdef BUG_SHARED_CELL
		/* No claim: an atomic add to the one shared cell, then an atomic or of the bit. */
		d_step { empty(t) -> mem[CELL(0)] = mem[CELL(0)] + 1 }
		x = mem[SEL];
		d_step { empty(t) -> mem[BIT(x % N, 0)] = 1; completed++; left--; x = 0 }
#else
#ifdef BUG_WEAK_CLAIM
		/* The claim need not be visible when the selector is loaded. A slot each, as this
		 * would not exclude another thread. */
		d_step { room(t, 1) -> s = t; store(t, OWNER(s), 1) }
#else
		/* A locked compare-exchange. */
		if
		:: d_step { empty(t) && mem[OWNER(0)] == 0 -> s = 0; mem[OWNER(s)] = 1 }
#if SLOTS == 2
		:: d_step { empty(t) && mem[OWNER(1)] == 0 -> s = 1; mem[OWNER(s)] = 1 }
#endif
		fi;
#endif
		x = mem[SEL];
		/* Whether the bit is set is looked up; the stores follow. */
		atomic {
			room(t, 3) ->
#ifdef BUG_BIT_AFTER
			add(t, s);
			set_bit(t, x % N, s);
#else
			set_bit(t, x % N, s);
			add(t, s);
#endif
			store_release(t, OWNER(s), 0);
			x = 0;
			s = 0;
			left--
		}
#endif
	:: left == 0 -> done[t] = true; break
	od
}

active proctype hardware()
{
	d_step { mem[SEL] = N; mem[GEN] = N }
	atomic {
		run thread(0);
#if THREADS == 2
		run thread(1);
#endif
		run flusher();
		run reader()
	}
end:	do
	DRAIN(0)
#if THREADS == 2
	DRAIN(1)
#endif
	DRAIN(F)
	od
}

inline clear()
{
	for (s : 0 .. SLOTS) {
		store(F, BIT((j + 2) % N, s), 0)
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
	fence_release(F);
#ifndef BUG_CLEAR_FIRST
	clear()
#endif
}

proctype flusher()
{
	byte j, own, s, sum, flushes;
	bool rest;

	do
	:: flushes == FLUSHES -> break
	:: flushes < FLUSHES ->
		d_step {
			room(F, 1) ->
			load(F, SEL, j);
			store_release(F, SEL, j + 1);
			rest = (done[0] && done[THREADS - 1] && empty(0) && empty(THREADS - 1))
		}
#ifndef BUG_NO_FENCE
		empty(F); /* the seq_cst fence */
#endif
		do
		:: s < SLOTS ->
			if
#ifndef BUG_NO_CARRY
			:: d_step { mem[OWNER(s)] != 0 && room(F, 1) -> store(F, BIT((j + 1) % N, SLOTS), 1); s++ }
#endif
			:: d_step { mem[OWNER(s)] == 0 -> s++ }
#ifdef BUG_NO_CARRY
			:: d_step { mem[OWNER(s)] != 0 -> s++ }
#endif
			fi
		:: s == SLOTS -> s = 0; break
		od;
		do
		:: d_step { s <= SLOTS -> load(F, BIT(j % N, s), to_);
			if
			:: to_ -> s = SLOTS + 2
			:: else -> s++
			fi }
		:: s == SLOTS + 1 -> s = 0; break
		:: s == SLOTS + 2 ->
			s = 0;
			do
			:: d_step { s < SLOTS -> sum = sum + mem[CELL(s)]; s++ }
			:: s == SLOTS -> atomic { own = sum; sum = 0; s = 0 } break
			od
			break
		od;
		atomic { assert(!rest || own == THREADS * UPDATES); rest = false }
		atomic { room(F, 3 + SLOTS + STORES - 1) -> publish() }
		atomic { flushes++; j = 0 }
	od
}

#define ROWS (SLOTS + 1)
#include "reader.pml"
