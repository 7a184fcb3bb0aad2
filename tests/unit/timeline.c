/* SPDX-License-Identifier: MIT */
/*
 * The simulation of `freshet-bench timeline`: the published numbers, and for many parameters what is
 * known without simulating: when each reader ends (by arithmetic), and what no design may break.
 */
#include "../../bench/timeline_draw.h"
#include "../../bench/timeline_sim.h"

#include <string.h>

#include "tap.h"

static const struct timeline published = {
	.stats = 3, .cpus = 1, .write = 16, .read = 2, .readers = 2, .arrive = { 16, 48 }
};

static struct timeline_run run;

static void expect_reader(int reader, const char *values, int64_t end, int64_t waited)
{
	const struct timeline_actor *a = &run.actor[reader];
	char got[64];

	snprintf(got, sizeof(got), "%d,%d,%d", a->values[0], a->values[1], a->values[2]);
	EXPECT(!strcmp(got, values), "reader %d: %s", reader, got);
	EXPECT_EQ(a->end, end);
	EXPECT_EQ(a->waited, waited);
	EXPECT_EQ(a->fresh, !strcmp(values, "1,1,1"));
	EXPECT_EQ(a->whole, values[0] == values[2] && values[2] == values[4]);
}

TEST(published_lock)
{
	timeline_simulate(&published, TIMELINE_GLOBAL_LOCK, &run);
	expect_reader(1, "1,1,1", 54, 32);
	EXPECT_EQ(run.actor[0].end, 48);
}

TEST(published_atomic)
{
	timeline_simulate(&published, TIMELINE_ATOMIC, &run);
	expect_reader(1, "1,0,0", 22, 0);
	expect_reader(2, "1,1,1", 54, 0);
	EXPECT_EQ(run.actor[0].end, 48);
}

/* What follows from the rules in timeline_sim.h for the same readers. */
TEST(others)
{
	timeline_simulate(&published, TIMELINE_GLOBAL_LOCK, &run);
	expect_reader(2, "1,1,1", 60, 6); /* the other one reads under the lock */
	timeline_simulate(&published, TIMELINE_LOCK_BREAK, &run);
	expect_reader(1, "1,1,1", 54, 32);
	expect_reader(2, "1,1,1", 60, 6);
	timeline_simulate(&published, TIMELINE_SEQLOCK, &run);
	expect_reader(1, "1,1,1", 48 + (1 + 3 + 1) * 2, 32);
	expect_reader(2, "1,1,1", 48 + (1 + 3 + 1) * 2, 0);
	timeline_simulate(&published, TIMELINE_SEQLOCK_FRESH, &run);
	expect_reader(1, "1,1,1", 48 + (1 + 3 + 1) * 2, 32);
	expect_reader(2, "1,1,1", 48 + (1 + 3 + 1) * 2, 0);
	timeline_simulate(&published, TIMELINE_FRESHET, &run);
	expect_reader(1, "1,1,1", 16 + (1 + 3 + 3 + (1 + 3 + 1 + 3) + 1) * 2, 0);
	expect_reader(2, "1,1,1", 48 + (1 + 3 + 3 + (1 + 3 + 1 + 3) + 1) * 2, 0);
	EXPECT_EQ(run.hold, 0);
}

/* Whoever comes before the first write has ended sees a whole, and old, answer. */
TEST(whole_is_not_fresh)
{
	struct timeline t = published;

	t.arrive[0] = 0;
	t.readers = 1;
	timeline_simulate(&t, TIMELINE_ATOMIC, &run);
	expect_reader(1, "0,0,0", 6, 0);
}

/* With a second slot pending, the first reader flushes that one itself, and so reads at 48; the next
 * one, at 32, sees of both slots what both have written: at 32, 34 and 36. */
TEST(atomic_readers_flush)
{
	const struct timeline t = {
		.stats = 3, .cpus = 2, .write = 16, .read = 2, .readers = 3, .arrive = { 8, 32, 60 }
	};

	timeline_simulate(&t, TIMELINE_ATOMIC, &run);
	EXPECT_EQ(run.actor[0].end, 48);
	EXPECT_EQ(run.actor[1].end, 8 + 48 + 6);
	EXPECT(run.actor[1].fresh);
	EXPECT_EQ(run.actor[2].values[0], 2); /* written at 16 and 24 */
	EXPECT_EQ(run.actor[2].values[1], 1); /* at 32 and 40 */
	EXPECT_EQ(run.actor[2].values[2], 0); /* at 48 and 56 */
	EXPECT_EQ(run.actor[2].end, 38);
	EXPECT(run.actor[3].fresh);
}

/* Three write one slot each until 16, and the first reader sees what the second one wrote. */
TEST(ends_of_writes_come_first)
{
	const struct timeline t = {
		.stats = 1, .cpus = 3, .write = 16, .read = 2, .readers = 2, .arrive = { 0, 0 }
	};

	timeline_simulate(&t, TIMELINE_ATOMIC, &run);
	EXPECT_EQ(run.actor[1].end, 18);
	EXPECT_EQ(run.actor[1].values[0], 3);
	EXPECT_EQ(run.actor[2].values[0], 3);
}

/* ---- many parameters ---- */

typedef void check_fn(const struct timeline *t, enum timeline_design d);

static const int64_t arrivals[][TIMELINE_READERS] = {
	{ 0 },
	{ 16, 48 },
	{ 0, 0, 0 },
	{ 3, 5, 5, 21, 48, 49, 1000 },
	{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
	{ 100, 200, 300, 400, 500, 600, 700, 800 },
};
static const int counts[] = { 1, 2, 3, 7, 16, 8 };

static int for_all(check_fn *check)
{
	static const int stats[] = { 1, 2, 3, 8 }, cpus[] = { 1, 2, 3, 64 };
	static const int64_t costs[][2] = { { 16, 2 }, { 1, 1 }, { 2, 7 }, { 5, 5 }, { 1000, 3 } };
	int n = 0;

	for (int s = 0; s < 4; s++)
		for (int c = 0; c < 4; c++)
			for (int k = 0; k < 5; k++)
				for (int a = 0; a < 6; a++) {
					struct timeline t = { .stats = stats[s],
							      .cpus = cpus[c],
							      .write = costs[k][0],
							      .read = costs[k][1],
							      .readers = counts[a] };

					memcpy(t.arrive, arrivals[a], sizeof(t.arrive));
					for (int d = 0; d < TIMELINE_DESIGNS; d++) {
						timeline_simulate(&t, d, &run);
						check(&t, d);
						n++;
					}
				}
	return n;
}

#define AT    "%s, %d stats, %d slots, write %d, read %d, %d readers, actor %d"
#define WHERE timeline_names[d], t->stats, t->cpus, (int)t->write, (int)t->read, t->readers, i

static int64_t flush_time(const struct timeline *t)
{
	return t->stats * t->cpus * t->write;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* By arithmetic; atomic by its own rule, for one slot. */
static void check_ends(const struct timeline *t, enum timeline_design d)
{
	const int64_t read = t->stats * t->read;
	int64_t free_at = flush_time(t);

	for (int i = 1; i <= t->readers; i++) {
		const struct timeline_actor *a = &run.actor[i];
		const int64_t at = t->arrive[i - 1];
		int64_t wanted = a->end;

		switch (d) {
		case TIMELINE_GLOBAL_LOCK:
		case TIMELINE_LOCK_BREAK:
			wanted = free_at = later(at, free_at) + read;
			break;
		case TIMELINE_SEQLOCK:
		case TIMELINE_SEQLOCK_FRESH:
			wanted = later(at, free_at) + read + 2 * t->read;
			break;
		case TIMELINE_FRESHET:
			wanted = at + t->read * (t->cpus + 1) * (2 * t->stats + 2);
			break;
		case TIMELINE_ATOMIC:
			if (t->cpus > 1)
				break;
			wanted = at + read;
			for (int k = 0; k < t->stats; k++)
				EXPECT(a->values[k] == (at + k * t->read >= (k + 1) * t->write), AT,
				       WHERE);
			break;
		default:
			break;
		}
		EXPECT(a->end == wanted, AT ": %d, not %d", WHERE, (int)a->end, (int)wanted);
	}
}

TEST(ends)
{
	EXPECT_EQ(for_all(check_ends), 4 * 4 * 5 * 6 * TIMELINE_DESIGNS);
}

static void check_promises(const struct timeline *t, enum timeline_design d)
{
	for (int i = 1; i <= t->readers; i++) {
		const struct timeline_actor *a = &run.actor[i];
		bool fresh = true, whole = true;

		for (int k = 0; k < t->stats; k++) {
			EXPECT(a->values[k] >= 0 && a->values[k] <= t->cpus, AT, WHERE);
			fresh &= a->values[k] == t->cpus;
			whole &= a->values[k] == a->values[0];
		}
		EXPECT(a->fresh == fresh && a->whole == whole, AT, WHERE);
		if (d != TIMELINE_ATOMIC)
			EXPECT(fresh && whole, AT, WHERE);
		else
			EXPECT(fresh || a->begin < flush_time(t), AT, WHERE);
		if (d == TIMELINE_ATOMIC || d == TIMELINE_FRESHET)
			EXPECT(a->waited == 0, AT, WHERE);
	}
}

TEST(promises)
{
	for_all(check_promises);
}

/* All actors are busy or waiting from their beginning to their end; all updates are written once. */
static void check_spans(const struct timeline *t, enum timeline_design d)
{
	int64_t written = 0;

	for (int i = 0; i <= t->readers; i++) {
		const struct timeline_actor *a = &run.actor[i];
		int64_t at = a->begin, waited = 0;

		EXPECT(a->begin == (i ? t->arrive[i - 1] : 0), AT, WHERE);
		for (int k = 0; k < a->spans; k++) {
			const struct timeline_span *s = &a->span[k];

			EXPECT(s->from == at && s->to > s->from, AT, WHERE);
			EXPECT(k == 0 || s->kind != s[-1].kind, AT, WHERE);
			at = s->to;
			if (s->kind == TIMELINE_WRITES)
				written += s->to - s->from;
			if (s->kind == TIMELINE_WAITS)
				waited += s->to - s->from;
		}
		EXPECT(a->end == at && a->waited == waited, AT, WHERE);
	}
	EXPECT(written == flush_time(t), "%s wrote %d of %d", timeline_names[d], (int)written,
	       (int)flush_time(t));
}

TEST(spans)
{
	for_all(check_spans);
}

/* Nobody else does anything while one holds the lock: whose spans overlap waits. */
static void check_lock(const struct timeline *t, enum timeline_design d)
{
	const int64_t slot = t->stats * t->write, read = t->stats * t->read;

	if (d == TIMELINE_GLOBAL_LOCK)
		EXPECT_EQ(run.hold, later(flush_time(t), read));
	if (d == TIMELINE_LOCK_BREAK)
		EXPECT_EQ(run.hold, later(slot, read));
	if (d == TIMELINE_SEQLOCK || d == TIMELINE_SEQLOCK_FRESH)
		EXPECT_EQ(run.hold, flush_time(t));
	if (d != TIMELINE_GLOBAL_LOCK && d != TIMELINE_LOCK_BREAK)
		return;
	for (int i = 0; i <= t->readers; i++)
		for (int k = 0; k < run.actor[i].spans; k++)
			for (int o = 0; o < i; o++)
				for (int l = 0; l < run.actor[o].spans; l++) {
					const struct timeline_span *x = &run.actor[i].span[k],
								   *y = &run.actor[o].span[l];

					EXPECT(x->kind == TIMELINE_WAITS ||
						       y->kind == TIMELINE_WAITS ||
						       x->to <= y->from || y->to <= x->from,
					       AT, WHERE);
				}
}

TEST(lock)
{
	for_all(check_lock);
}

/* ---- pictures ---- */

static struct timeline_run runs[TIMELINE_DESIGNS];

static void simulate(const struct timeline *t)
{
	for (int d = 0; d < TIMELINE_DESIGNS; d++)
		timeline_simulate(t, d, &runs[d]);
}

TEST(text_of_the_published)
{
	struct buf out = BUF_INIT;

	simulate(&published);
	timeline_text(&out, &published, runs);
	buf_char(&out, 0);
	REQUIRE(!out.error);
	EXPECT(strstr(out.data, "\natomic\n"
				"  flusher      ########################                  "
				"done at 48\n"
				"  reader at 16         ===                               "
				"1,0,0 at 22 torn, stale\n"
				"  reader at 48                         ===               "
				"1,1,1 at 54\n"),
	       "%s", out.data);
	EXPECT(strstr(out.data, "\n  reader at 16         ................===               "
				"1,1,1 at 54\n"),
	       "%s", out.data);
	buf_free(&out);
}

/* A line for each actor, none too long; every reader reads. */
static void check_text(const struct timeline *t, enum timeline_design d)
{
	struct buf out = BUF_INIT;
	int flushers = 0, readers = 0;

	if (d)
		return; /* a picture has all of them */
	simulate(t);
	timeline_text(&out, t, runs);
	REQUIRE(!out.error);
	for (char *line = out.data, *end = out.data + out.len; line < end;) {
		char *next = memchr(line, '\n', (size_t)(end - line));

		REQUIRE(next);
		*next = 0;
		EXPECT(next - line <= (t->stats <= 6 ? 80 : 120), "%s", line);
		flushers += !strncmp(line, "  flusher ", 10);
		if (!strncmp(line, "  reader at ", 12)) {
			readers++;
			EXPECT(strchr(line, '='), "%s", line);
		}
		line = next + 1;
	}
	EXPECT_EQ(flushers, TIMELINE_DESIGNS);
	EXPECT_EQ(readers, TIMELINE_DESIGNS * t->readers);
	buf_free(&out);
}

TEST(text)
{
	for_all(check_text);
}

/* The longest there can be. */
TEST(text_largest)
{
	struct timeline t = { .stats = TIMELINE_STATS,
			      .cpus = TIMELINE_CPUS,
			      .write = TIMELINE_UNITS,
			      .read = TIMELINE_UNITS,
			      .readers = TIMELINE_READERS };

	for (int i = 0; i < t.readers; i++)
		t.arrive[i] = TIMELINE_UNITS;
	check_text(&t, 0);
	timeline_simulate(&t, TIMELINE_GLOBAL_LOCK, &run);
	EXPECT_EQ(run.actor[t.readers].end, 1000000ll * TIMELINE_STATS * (64 + 16));
}

TAP_MAIN
