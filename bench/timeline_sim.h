/* SPDX-License-Identifier: MIT */
/*
 * The thought experiment of the kernel list as an exact simulation, in integers and without chance.
 *
 * Some stats were updated together, once on each CPU slot, before time 0; the updates are pending. At
 * 0 a first reader arrives and flushes: for each slot it writes each stat. (That it reads then, too,
 * is left out, as it was there: it is called the flusher.) Other readers arrive later. A right answer
 * has the number of slots in every stat; with one slot: all ones.
 *
 * What costs time:
 *   - a write of a stat; it is seen from its end on;
 *   - a read of a word; it gives what is there when it begins. All words count that the reader needs
 *     to know that its answer is right: a seqlock's sequence before and after, Freshet's below.
 * Taking and dropping a lock, looking at what is pending and taking it cost nothing, as published.
 *
 * The designs. Who flushes takes a slot's update from the pending ones, then writes it.
 *   global-lock    One lock, first come, first served: flush, and read under it, as cpu.stat did.
 *   lock-break     The lock for each slot's flush, and once more for the read.
 *   atomic         No lock. Who finds nothing pending reads, whether it has been written or not.
 *   seqlock        The flusher flushes all slots in one write section. A reader waits until it ends,
 *                  and never flushes. There is one flush here, so that no section begins under a
 *                  read, which would have to start again.
 *   seqlock-fresh  The same, but a reader flushes first, for which it needs the lock.
 *   freshet        The flusher writes a copy that nobody reads, then publishes it. A reader takes
 *                  the group of the stats (a set, without groups below it) as src/core/fresh.c does:
 *                  generation; of each stat the total and the group's own; of each slot's cell the
 *                  set's version, its words, the version again and the words of updates of one stat;
 *                  the generation again. The flush is no cheaper than the others'.
 *
 * At one moment ends of writes come first, then the flusher, then readers in their order; each goes
 * on until it has to wait, or what it does takes time.
 */
#ifndef FRESHET_BENCH_TIMELINE_SIM_H
#define FRESHET_BENCH_TIMELINE_SIM_H

#include <stdbool.h>
#include <stdint.h>

#define TIMELINE_STATS   16
#define TIMELINE_CPUS    64
#define TIMELINE_READERS 16
#define TIMELINE_ACTORS  (1 + TIMELINE_READERS)
#define TIMELINE_UNITS   1000000 /* at most: a write, a read, an arrival */

enum timeline_design {
	TIMELINE_GLOBAL_LOCK,
	TIMELINE_LOCK_BREAK,
	TIMELINE_ATOMIC,
	TIMELINE_SEQLOCK,
	TIMELINE_SEQLOCK_FRESH,
	TIMELINE_FRESHET,
	TIMELINE_DESIGNS,
};

extern const char *const timeline_names[TIMELINE_DESIGNS];

/* Each at least 1, but arrivals 0; at most as above. */
struct timeline {
	int stats, cpus;
	int64_t write, read;
	int readers;
	int64_t arrive[TIMELINE_READERS]; /* ascending */
};

enum timeline_kind { TIMELINE_WAITS, TIMELINE_WRITES, TIMELINE_READS };

struct timeline_span {
	enum timeline_kind kind;
	int64_t from, to; /* from < to */
};

struct timeline_actor {
	int64_t begin, end, waited;
	int values[TIMELINE_STATS];
	bool fresh, whole; /* has all updates; has as many of one stat as of another */
	int spans;         /* from begin to end without a gap; neighbours differ in kind */
	struct timeline_span span[2 * TIMELINE_CPUS + 4];
};

struct timeline_run {
	struct timeline_actor actor[TIMELINE_ACTORS]; /* 0: the flusher, then the readers */
	int64_t hold; /* the longest time that the lock was held without a break */
};

void timeline_simulate(const struct timeline *t, enum timeline_design design,
		       struct timeline_run *ret);

/* Words that a reader of Freshet reads. */
int64_t timeline_freshet_reads(const struct timeline *t);

#endif
