/* SPDX-License-Identifier: MIT */
/*
 * Implements timeline_sim.h. Each actor runs a small program; the actor whose time is next does its
 * next steps, until all have ended. A step takes no time, or begins one write or read.
 */
#include "timeline_sim.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define NEVER INT64_MAX

const char *const timeline_names[TIMELINE_DESIGNS] = {
	[TIMELINE_GLOBAL_LOCK] = "global-lock",
	[TIMELINE_LOCK_BREAK] = "lock-break",
	[TIMELINE_ATOMIC] = "atomic",
	[TIMELINE_SEQLOCK] = "seqlock",
	[TIMELINE_SEQLOCK_FRESH] = "seqlock-fresh",
	[TIMELINE_FRESHET] = "freshet",
};

enum op {
	END,
	LOCK,
	UNLOCK,
	FLUSH,      /* all slots */
	FLUSH_SLOT, /* the next slot */
	REPEAT,     /* from the beginning, unless that was the last slot */
	OPEN,       /* the write section */
	CLOSE,
	EVEN,    /* waits until no write section is open */
	PUBLISH, /* the copy that was written */
	READ_STATS,
	READ_CHECK, /* a sequence, or the generation */
	READ_ROW,   /* totals and own numbers of the generation */
	READ_CELLS,
};

struct program {
	enum op flusher[6], reader[8];
	int copy; /* that a flush writes; readers begin with copy 0 */
};

static const struct program programs[TIMELINE_DESIGNS] = {
	[TIMELINE_GLOBAL_LOCK] = {
		.flusher = { LOCK, FLUSH, UNLOCK, END },
		.reader = { LOCK, FLUSH, READ_STATS, UNLOCK, END },
	},
	[TIMELINE_LOCK_BREAK] = {
		.flusher = { LOCK, FLUSH_SLOT, UNLOCK, REPEAT, END },
		.reader = { LOCK, FLUSH_SLOT, UNLOCK, REPEAT, LOCK, READ_STATS, UNLOCK, END },
	},
	[TIMELINE_ATOMIC] = {
		.flusher = { FLUSH, END },
		.reader = { FLUSH, READ_STATS, END },
	},
	[TIMELINE_SEQLOCK] = {
		.flusher = { LOCK, OPEN, FLUSH, CLOSE, UNLOCK, END },
		.reader = { EVEN, READ_CHECK, READ_STATS, READ_CHECK, END },
	},
	[TIMELINE_SEQLOCK_FRESH] = {
		.flusher = { LOCK, OPEN, FLUSH, CLOSE, UNLOCK, END },
		/* Once it has the lock, nothing is pending: it opens no section. */
		.reader = { LOCK, FLUSH, UNLOCK, EVEN, READ_CHECK, READ_STATS, READ_CHECK, END },
	},
	[TIMELINE_FRESHET] = {
		.flusher = { FLUSH, PUBLISH, END },
		.reader = { READ_CHECK, READ_ROW, READ_CELLS, READ_CHECK, END },
		.copy = 1,
	},
};

struct state {
	const enum op *program;
	int pc;
	int64_t ready; /* when it goes on; NEVER: it waits, or has ended */
	int64_t since; /* it waits */
	int slot;      /* that it flushes next */
	int64_t done;  /* stats written, or words read, by this op */
	bool writing;  /* `ready` is the end of a write */
	int copy;      /* that it reads */
};

struct machine {
	const struct timeline *t;
	struct timeline_run *run;
	struct state actor[TIMELINE_ACTORS];
	int actors;
	bool taken[TIMELINE_CPUS];
	int total[2][TIMELINE_STATS]; /* copies; only Freshet has a second one */
	int written, published;       /* copies */
	int owner;                    /* of the lock, or -1 */
	int64_t owned;                /* since */
	int queue[TIMELINE_ACTORS], queued;
	bool section;
};

static void span(struct timeline_actor *a, enum timeline_kind kind, int64_t from, int64_t to)
{
	struct timeline_span *last = a->spans ? &a->span[a->spans - 1] : NULL;

	if (from == to)
		return;
	if (kind == TIMELINE_WAITS)
		a->waited += to - from;
	if (last && last->kind == kind) {
		last->to = to;
		return;
	}
	assert((size_t)a->spans < sizeof(a->span) / sizeof(a->span[0]));
	a->span[a->spans++] = (struct timeline_span){ kind, from, to };
}

/* It goes on, after what it waited for. */
static void wake(struct machine *m, int i, int64_t now)
{
	struct state *s = &m->actor[i];

	span(&m->run->actor[i], TIMELINE_WAITS, s->since, now);
	s->ready = now;
}

static void sleep_at(struct state *s)
{
	s->since = s->ready;
	s->ready = NEVER;
}

static void lock(struct machine *m, int i)
{
	struct state *s = &m->actor[i];

	s->pc++; /* once it has the lock */
	if (m->owner < 0) {
		m->owner = i;
		m->owned = s->ready;
		return;
	}
	m->queue[m->queued++] = i;
	sleep_at(s);
}

static void unlock(struct machine *m, int64_t now)
{
	if (now - m->owned > m->run->hold)
		m->run->hold = now - m->owned;
	m->owner = -1;
	if (m->queued == 0)
		return;
	m->owner = m->queue[0];
	m->owned = now;
	memmove(m->queue, m->queue + 1, sizeof(m->queue[0]) * (size_t)--m->queued);
	wake(m, m->owner, now);
}

static void close_section(struct machine *m, int64_t now)
{
	m->section = false;
	for (int i = 0; i < m->actors; i++)
		if (m->actor[i].ready == NEVER && m->actor[i].program[m->actor[i].pc] == EVEN)
			wake(m, i, now);
}

/* A write of the next slot that has an update pending. false: there was none in it, or all of its
 * are written; it is the next slot's turn. */
static bool flush_slot(struct machine *m, int i)
{
	struct state *s = &m->actor[i];

	if (s->done == 0 && m->taken[s->slot]) {
		s->slot++;
		return false;
	}
	m->taken[s->slot] = true;
	if (s->done == m->t->stats) {
		s->done = 0;
		s->slot++;
		return false;
	}
	span(&m->run->actor[i], TIMELINE_WRITES, s->ready, s->ready + m->t->write);
	s->ready += m->t->write;
	s->writing = true;
	return true;
}

static int64_t words_of_cell(const struct timeline *t)
{
	return 2 * (int64_t)t->stats + 2;
}

/* The next word of the op; false: there is none. */
static bool read_word(struct machine *m, int i, enum op op)
{
	const int stats = m->t->stats;
	struct state *s = &m->actor[i];
	int *values = m->run->actor[i].values;
	int64_t n = s->done, words = 1;

	if (op == READ_STATS)
		words = stats;
	else if (op == READ_ROW)
		words = 2 * (int64_t)stats;
	else if (op == READ_CELLS)
		words = m->t->cpus * words_of_cell(m->t);
	if (n == words) {
		s->done = 0;
		return false;
	}
	if (op == READ_CHECK)
		s->copy = m->published;
	else if (op == READ_STATS || (op == READ_ROW && n < stats))
		values[n] = m->total[s->copy][n];
	else if (op == READ_ROW)
		values[n - stats] -= m->total[s->copy][n - stats]; /* its own: all there is */
	else if (n % words_of_cell(m->t) >= 1 && n % words_of_cell(m->t) <= stats)
		values[n % words_of_cell(m->t) - 1]++; /* the set's words: the update's ones */
	s->done++;
	span(&m->run->actor[i], TIMELINE_READS, s->ready, s->ready + m->t->read);
	s->ready += m->t->read;
	return true;
}

static void end(struct machine *m, int i)
{
	struct timeline_actor *a = &m->run->actor[i];

	a->end = m->actor[i].ready;
	a->fresh = a->whole = true;
	for (int k = 0; k < m->t->stats; k++) {
		a->fresh &= a->values[k] == m->t->cpus;
		a->whole &= a->values[k] == a->values[0];
	}
	m->actor[i].ready = NEVER;
}

static void step(struct machine *m, int i)
{
	struct state *s = &m->actor[i];
	const enum op op = s->program[s->pc];
	const int64_t now = s->ready;

	switch (op) {
	case END:
		end(m, i);
		return;
	case LOCK:
		lock(m, i);
		return;
	case UNLOCK:
		unlock(m, now);
		break;
	case FLUSH:
		if (s->slot < m->t->cpus) {
			flush_slot(m, i);
			return;
		}
		break;
	case FLUSH_SLOT:
		if (flush_slot(m, i))
			return;
		break;
	case REPEAT:
		if (s->slot < m->t->cpus) {
			s->pc = 0;
			return;
		}
		break;
	case OPEN:
		m->section = true;
		break;
	case CLOSE:
		close_section(m, now);
		break;
	case EVEN:
		if (m->section) {
			sleep_at(s);
			return;
		}
		break;
	case PUBLISH:
		m->published = m->written;
		break;
	case READ_STATS:
	case READ_CHECK:
	case READ_ROW:
	case READ_CELLS:
		if (read_word(m, i, op))
			return;
		break;
	}
	s->pc++;
}

/* Whose time is next, or -1. */
static int next_actor(const struct machine *m)
{
	int best = -1;

	for (int i = 0; i < m->actors; i++)
		if (m->actor[i].ready != NEVER &&
		    (best < 0 || m->actor[i].ready < m->actor[best].ready))
			best = i;
	return best;
}

static void end_writes(struct machine *m, int64_t now)
{
	for (int i = 0; i < m->actors; i++) {
		struct state *s = &m->actor[i];

		if (!s->writing || s->ready != now)
			continue;
		m->total[m->written][s->done++]++;
		s->writing = false;
	}
}

void timeline_simulate(const struct timeline *t, enum timeline_design design,
		       struct timeline_run *ret)
{
	const struct program *p = &programs[design];
	struct machine m = {
		.t = t,
		.run = ret,
		.actors = 1 + t->readers,
		.owner = -1,
		.written = p->copy,
	};

	memset(ret, 0, sizeof(*ret));
	for (int i = 0; i < m.actors; i++) {
		m.actor[i].program = i ? p->reader : p->flusher;
		m.actor[i].ready = i ? t->arrive[i - 1] : 0;
		ret->actor[i].begin = m.actor[i].ready;
	}
	for (int i; (i = next_actor(&m)) >= 0;) {
		const int64_t now = m.actor[i].ready;

		end_writes(&m, now);
		while (m.actor[i].ready == now)
			step(&m, i);
	}
}

int64_t timeline_freshet_reads(const struct timeline *t)
{
	return 2 + 2 * (int64_t)t->stats + t->cpus * words_of_cell(t);
}
