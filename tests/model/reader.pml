/* SPDX-License-Identifier: MIT */
/*
 * A fresh reader of the only group, for (a) and (c). It reads again and again; bits one by one, or
 * all at once with COARSE (README.md says why that loses nothing). ROWS rows of bits an epoch.
 *
 * Asserted of every accepted read: what was visible when it began <= value <= what is visible now.
 * That is Fresh, and Monotone too, for any two reads of any two readers: the second one's lower
 * bound is not below the first one's upper bound. Where a planted bug makes numbers visible before
 * their update is complete, this would ask too much; with ghost `completed` defined (LOOSE), the
 * lower bound is what Fresh and Monotone say by the letter.
 */
#ifdef BUG_NO_RECHECK
#define VALID true
#else
#define VALID (mem[GEN] - gen <= N - 2)
#endif
#define ROW(r) mem[BIT((gen + (r) / ROWS) % N, (r) % ROWS)]

#ifdef LOOSE
byte last;
#define LOW (completed > last -> completed : last)
#else
#define LOW VISIBLE
#endif

inline accept()
{
	assert(low <= sum && sum <= VISIBLE);
#ifdef LOOSE
	last = sum
#endif
}

proctype reader()
{
	byte gen, low, s, sum;

end:	do
	:: d_step { gen = mem[GEN]; low = LOW }
	   /* A read that will be refused is given up as soon as that is sure. */
	   do
#ifdef COARSE
	   :: d_step {
		VALID && s == 0 ->
		do
		:: s < 2 * ROWS && !ROW(s) -> s++
		:: else -> break
		od;
		s = (s < 2 * ROWS -> 2 * ROWS + 1 : 2 * ROWS)
	      }
#else
	   :: d_step { VALID && s < 2 * ROWS && !ROW(s) -> s++ }
	   :: d_step { VALID && s < 2 * ROWS && ROW(s) -> s = 2 * ROWS + 1 }
#endif
	   :: d_step { VALID && s == 2 * ROWS -> sum = mem[TOTAL(gen % N)]; accept() }
	      break
	   :: VALID && s == 2 * ROWS + 1 ->
	      s = 0;
	      do
	      :: d_step { VALID && s < SLOTS - 1 -> sum = sum + mem[CELL(s)]; s++ }
	      :: d_step { VALID && s == SLOTS - 1 -> sum = sum + mem[CELL(s)]; accept() }
		 break
	      :: !VALID -> break
	      od;
	      break
	   :: !VALID -> break
	   od
	   atomic { gen = 0; low = 0; s = 0; sum = 0 }
	od
}
