/* SPDX-License-Identifier: MIT */
/*
 * (b) Banks, and readers across several passes: a root (group 0) with one group below it (group 1),
 * both updated; PASSES passes, each a flush or the publication of a shape (no flip, the same epoch);
 * the flusher stops for ever at any step; a reader of either group that reads again and again.
 *
 * An update is one step here: (a) and (c) are about its parts. N is the number of bitmaps and banks;
 * the tolerance is N - 2. Each bank has two words for the root's total, of two stats that every
 * update raises together. The words of a row that did not change since its bank was last filled are
 * not written. With WEAK the reader loads in any order, but a bit before the cell it stands for.
 */
#ifndef N
#define N 3
#endif
#ifndef UPDATES
#define UPDATES 2
#endif
#ifndef PASSES
#define PASSES 4
#endif
#ifndef FAILS
#define FAILS 1
#endif

#define F        0
#define CPUS     1
#define DEPTH    9
#define SEL      0
#define GEN      1
#define EPOCH(b) (2 + 5 * (b))
#define TOT(b)   (3 + 5 * (b)) /* of the root; two words */
#define OWN(b, d) (5 + 5 * (b) + (d)) /* that of group 1 is its total as well */
#define BIT(k)   (2 + 5 * N + (k)) /* bit d for group d */
#define CELL(d)  (2 + 6 * N + (d))
#define WORDS    (4 + 6 * N)

bool stopped;
#define halted(c) stopped

#include "tso.pml"

#ifdef BUG_SEQCOUNT
#define BANK(g) 0
#define NEXT(g) ((g) + 2)
#define GEN0    (2 * N)
#else
#define BANK(g) ((g) % N)
#define NEXT(g) ((g) + 1)
#define GEN0    N
#endif

#define VISIBLE(d) (mem[CELL(1)] + (d == 0 -> mem[CELL(0)] : 0))

bool all; /* updates done */
hidden byte x_;

inline update(d)
{
	mem[BIT(mem[SEL] % N)] = mem[BIT(mem[SEL] % N)] | (1 << d);
	mem[CELL(d)]++;
	left--
}

active proctype updater()
{
	byte left = UPDATES;

	d_step { mem[SEL] = N; mem[GEN] = GEN0; mem[EPOCH(0)] = N }
	atomic { run flusher(); run reader(); run hardware() }
	do
	:: d_step { left > 0 -> update(0) }
	:: d_step { left > 0 -> update(1) }
	:: left == 0 -> break
	od;
	all = true
}

proctype hardware()
{
end:	do
	DRAIN(F)
	od
}

/* stale[b]: rows that changed since bank b was filled. */
inline fill(b, e)
{
#ifdef BUG_NOT_CAUGHT_UP
	stale[b] = changed;
#endif
	store(F, EPOCH(b), e);
	if
	:: stale[b] & 1 -> store(F, TOT(b), own[0] + own[1]); store(F, TOT(b) + 1, own[0] + own[1])
	:: else
	fi;
	if
	:: stale[b] & 2 -> store(F, OWN(b, 0), own[0])
	:: else
	fi;
	if
	:: stale[b] & 4 -> store(F, OWN(b, 1), own[1])
	:: else
	fi;
	stale[b] = 0
}

#ifdef BUG_CLEAR_EARLY
#define CLEARED 3
#else
#define CLEARED 2
#endif

inline publish(e, clearing)
{
#ifdef BUG_CLEAR_FIRST
	if
	:: clearing -> store(F, BIT((e + 1) % N), 0)
	:: else
	fi;
#endif
#ifdef BUG_SEQCOUNT
	store(F, GEN, gen + 1);
#endif
#ifdef BUG_FILL_LATE
	store_release(F, GEN, NEXT(gen));
	fence_release(F);
	fill(BANK(NEXT(gen)), e);
#else
	fill(BANK(NEXT(gen)), e);
	store_release(F, GEN, NEXT(gen));
#ifndef BUG_NO_RELEASE_FENCE
	fence_release(F);
#endif
#endif
#ifndef BUG_CLEAR_FIRST
	if
	:: clearing -> store(F, BIT((e - 1 + CLEARED) % N), 0)
	:: else
	fi;
#endif
	gen = NEXT(gen);
	changed = 0
}

#ifdef CRASH
#define STOP :: stopped = true; goto stop
#else
#define STOP
#endif

proctype flusher()
{
	byte gen = GEN0, epoch = N;
	byte passes, fails;
	byte own[2], stale[N], dirty, changed;
	bool pending, rest;

	do
	:: passes == PASSES -> break
	STOP
	:: d_step { passes < PASSES && room(F, DEPTH - 1) -> publish(epoch, false); passes++ }
	:: passes < PASSES ->
		d_step {
			room(F, 1) ->
			if
			:: !pending -> store_release(F, SEL, epoch + 1); rest = all
			:: else
			fi;
			pending = true
		}
		if
		:: fails < FAILS -> fails++ /* membarrier */
		STOP
		:: atomic { empty(F) -> dirty = mem[BIT(epoch % N)]; changed = dirty & 1 } /* fence */
			if
			:: atomic { dirty & 1 ->
				x_ = mem[CELL(0)];
				if
				:: x_ != own[0] -> changed = 3
				:: else -> changed = 0
				fi;
				own[0] = x_
			   }
			:: !(dirty & 1)
			fi;
			if
			:: atomic { dirty & 2 ->
				x_ = mem[CELL(1)];
				if
				:: x_ != own[1] -> changed = changed | 5
				:: else
				fi;
				own[1] = x_
			   }
			:: !(dirty & 2)
			STOP
			fi;
			atomic {
				assert(!rest || own[0] + own[1] == UPDATES);
				rest = false;
				dirty = 0;
				for (x_ : 0 .. N - 1) {
					stale[x_] = stale[x_] | changed
				}
				epoch++
			}
			if
			:: d_step { room(F, DEPTH - 1) -> publish(epoch, true); pending = false; passes++ }
			STOP
			fi
		fi
	od;
stop:	skip
}

/*
 * The loads of a read, as bits of `todo`, in this order; with WEAK in any, but bits before the cells
 * they stand for. What is not dirty is not loaded.
 */
#define L_BITS  1 /* of epoch */
#define L_BITS1 2 /* of epoch + 1 */
#define L_OWN   4
#define L_OWN1  8
#define L_CELL  16
#define L_CELL1 32
#define L_TOT   64
#define L_TOT1  128 /* the root's second stat */

#ifdef WEAK
#define MAY(x, before) (VALID && (todo & (x)) && !(todo & (before)))
#else
#define MAY(x, before) (VALID && (todo & (x)) && !(todo & ((x) - 1)))
#endif

#ifdef BUG_NO_RECHECK
#define VALID true
#elif defined(BUG_SEQCOUNT)
#define VALID (mem[GEN] == gen && gen % 2 == 0)
#else
#define VALID (mem[GEN] - gen <= N - 2)
#endif

inline bits(k)
{
	dirty = dirty | mem[BIT(k)];
	if
	:: !(todo & (L_BITS | L_BITS1)) ->
		todo = todo & (dirty & 1 -> 255 : 255 - L_OWN - L_CELL);
		todo = todo & (dirty & 2 -> 255 : 255 - L_OWN1 - L_CELL1)
	:: else
	fi
}

inline total()
{
	if
	:: d == 0 -> sum = sum + mem[TOT(b)]; other = other + mem[TOT(b)]
	:: d == 1 -> sum = sum + mem[OWN(b, 1)]
	fi
}

/* COARSE: a row's words are loaded in one step with what is loaded next or before. */
#ifdef COARSE
#define ROWS (L_OWN + L_OWN1 + L_TOT + L_TOT1)
#else
#define ROWS 0
#endif

inline begin(group, loads)
{
	gen = mem[GEN];
	b = BANK(gen);
	low = VISIBLE(group);
	must = stopped;
	d = group;
#ifdef COARSE
	epoch = mem[EPOCH(b)];
	todo = loads & (255 - ROWS)
#else
	todo = loads
#endif
}

proctype reader()
{
	byte gen, epoch, low, dirty, todo, d, b;
	short sum, other;
	bool must;

end:	do
	:: d_step { true -> begin(0, 255) } goto read
	:: d_step { true -> begin(1, 255 - L_OWN - L_CELL - L_TOT1) }
read:	   if
#ifdef COARSE
	   :: VALID
#else
	   :: VALID -> epoch = mem[EPOCH(b)]
#endif
	   :: else -> goto refused
	   fi;
	   do
	   :: d_step { MAY(L_BITS, 0) -> todo = todo - L_BITS; bits(epoch % N) }
	   :: d_step { MAY(L_BITS1, 0) -> todo = todo - L_BITS1; bits((epoch + 1) % N) }
	   :: d_step { MAY(L_CELL, L_BITS | L_BITS1) -> todo = todo - L_CELL; sum = sum + mem[CELL(0)];
#ifdef COARSE
		sum = sum - mem[OWN(b, 0)]
#endif
	      }
	   :: d_step { MAY(L_CELL1, L_BITS | L_BITS1) -> todo = todo - L_CELL1; sum = sum + mem[CELL(1)];
#ifdef COARSE
		sum = sum - mem[OWN(b, 1)]
#endif
	      }
#ifdef COARSE
	   :: d_step {
		VALID && todo == 0 ->
		total();
		other = (d == 0 -> other - mem[TOT(b) + 1] : 0);
#else
	   :: d_step { MAY(L_OWN, L_BITS | L_BITS1) -> todo = todo - L_OWN; sum = sum - mem[OWN(b, 0)] }
	   :: d_step { MAY(L_OWN1, L_BITS | L_BITS1) -> todo = todo - L_OWN1; sum = sum - mem[OWN(b, 1)] }
	   :: d_step { MAY(L_TOT, 0) -> todo = todo - L_TOT; total() }
	   :: d_step { MAY(L_TOT1, 0) -> todo = todo - L_TOT1; other = other - mem[TOT(b) + 1] }
	   :: d_step {
		VALID && todo == 0 ->
#endif
		assert(low <= sum && sum <= VISIBLE(d) && other == 0)
	      }
	      goto again
	   :: !VALID -> goto refused
	   od;
refused:   assert(!must); /* a read that began after the flusher had stopped stands */
again:	   atomic {
		gen = 0; epoch = 0; low = 0; dirty = 0; todo = 0; d = 0; b = 0;
		sum = 0; other = 0; must = false
	   }
	od
}
