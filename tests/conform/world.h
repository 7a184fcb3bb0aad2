/* SPDX-License-Identifier: MIT */
/*
 * What the two processes of tests/conform share: the books that the updaters keep of what they add,
 * where the groups are, the phases of the run, and the verdicts.
 *
 * The tree: a root, TENANTS below it, SERVICES below each, all of them there for the whole run
 * ("fixed"), and below the services leaves, which are removed and made anew all the time, and a crowd
 * that stays. Updates go to all of them.
 *
 * The books: for each fixed group and each seat (a seat has one updating thread at a time) what was
 * begun to be added to it or below, and what is done. An updater stores `begun` before an update and
 * `done` (release) after it. So whoever sums `done` over the seats, reads the group, and then sums
 * `begun`, must find the number read in between the two. A leaf's books are kept per incarnation:
 * one word is incarnation << 32 | count.
 */
#ifndef CONFORM_WORLD_H
#define CONFORM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomics.h"
#include "conform/design.h"

#define TENANTS       3u
#define SERVICES      2u /* of each tenant */
#define FIXED         (1 + TENANTS + TENANTS * SERVICES)
#define LEAVES        12u /* at a time, spread over the services */
#define CROWD         80u
#define PLACES        (FIXED + LEAVES)
#define MAX_GROUPS    192u
#define FIRST_SERVICE (1 + TENANTS)

#define UPDATERS 3u
#define SEATS    (2 * UPDATERS) /* the second half: of the updaters' signal handlers */
#define READERS  3u             /* two in the reading process, one in the updating one */

/* What is counted: the sum of ops, updates of the set, observations. */
enum kind { OPS, SETS, SEEN, KINDS };

/* One seat's account of a fixed group. Written by the seat alone. */
struct account {
	_Alignas(128) uint64_t begun[KINDS], done[KINDS];
	int64_t busy;    /* what increases without their decreases left */
	uint64_t sum;    /* of values observed */
	uint64_t unsure; /* of those whose group was removed just then, which may be in it */
	uint64_t bucket[BUCKETS];
};

struct leaf_account {
	_Alignas(64) uint64_t begun[SEEN], done[SEEN];
};

/* A leaf as the gardener shows it: incarnation, odd while it changes. */
struct leaf {
	_Alignas(128) uint64_t incarnation;
	struct group group;
};

enum phase { STARTING, RUNNING, RESTING, ENDING };

struct tally {
	_Alignas(64) uint64_t checks[PROMISES];
	uint64_t wrong[PROMISES];
	uint64_t reads; /* finished, all kinds */
};

struct world {
	uint32_t phase;  /* enum phase: set by the reading process, */
	uint32_t round;  /* as is this */
	uint32_t read;   /* the last round of which its readers have ended */
	uint32_t rested; /* 1 + the last round that the updating process has brought to rest */
	uint32_t printed;
	uint64_t seed;
	char path[256];
	uint64_t fixed[FIXED]; /* refs */
	struct account account[FIXED][SEATS];
	struct leaf leaf[LEAVES];
	struct leaf_account leaf_account[LEAVES][SEATS];
	uint64_t crowd[CROWD];
	struct {
		_Alignas(64) uint64_t steps;
	} seat[SEATS];
	struct tally tally[READERS +
			   2]; /* then all other threads of the updating process, of this one */
	_Alignas(64) uint64_t flushes, births, threads, stands, restarts;
	uint64_t longest_wait; /* of a reader for the stopped process, ns */
	int64_t error;         /* of the updating process, when it cannot go on */
};

#define TALLY_PRODUCER READERS
#define TALLY_MAIN     (READERS + 1)

extern struct world *world; /* shared memory */
extern const struct design *design;

static inline enum phase phase_now(void)
{
	return load_acquire(&world->phase);
}

/* xorshift; state is not 0 */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* The fixed group that a leaf is below. */
static inline unsigned service_of(unsigned leaf)
{
	return FIRST_SERVICE + leaf % (TENANTS * SERVICES);
}

/* The fixed group above a fixed one, not of the root. */
static inline unsigned above(unsigned fixed)
{
	return fixed < FIRST_SERVICE ? 0 : 1 + (fixed - FIRST_SERVICE) / SERVICES;
}

static inline bool promised(enum promise p)
{
	return design->promises >> p & 1;
}

/* What is broken if a function gives an error. A design whose readers may wait must finish, too. */
static inline enum promise to_finish(void)
{
	return promised(UNBLOCKED) ? UNBLOCKED : EXACT;
}

/* Counts a check and returns whether it is good; says what is wrong if it is and was promised. The
 * tally is the calling thread's. */
__attribute__((format(printf, 4, 5))) bool check(struct tally *, enum promise, bool good,
						 const char *fmt, ...);

/* A leaf as it is now: false if it is just changing. */
bool leaf_load(unsigned leaf, uint64_t *incarnation, struct group *ret);

uint64_t checks_of(enum promise p);
uint64_t wrong_of(enum promise p);
/* Of all promises that the design makes. */
uint64_t all_wrong(void);

extern const char *const promise_name[PROMISES];

/* reader.c */
struct reader_thread {
	unsigned number; /* tally */
	void *reader;
	uint64_t random;
	/* What each reading function said last: by place, and the incarnation for leaves. */
	struct numbers last[PLACES], last_flushed[PLACES], last_snapshot[PLACES];
	uint64_t incarnation[PLACES];
	struct distribution last_distribution[FIXED];
};
void reader_init(struct reader_thread *, unsigned number, void *reader);
/* Reads and checks something. */
void reader_step(struct reader_thread *);
/* Checks that everything is there when nothing is updated. flushed: read_flushed() too. */
void reader_check_rest(struct reader_thread *, bool flushed);
/* Sums `done` of a fixed group: ops, sets. */
void done_of(unsigned fixed, uint64_t *ops, uint64_t *sets);

/* updater.c: one update by a seat, as the random number x says. handles: of the fixed groups, then of
 * the crowd; bucket_of: by value. */
void updater_step(unsigned seat, uint64_t x, const struct group *handles, const uint8_t *bucket_of);

/* producer.c: the updating process, returns its exit status. */
int producer_main(void);

#endif
