/* SPDX-License-Identifier: MIT */
/*
 * The source `bpf` above a simulated kernel: bpf.c, host_tree.c and ledger.c as they are, with
 * bpf_run() played by a walk over model cgroups, between any two loads of which the model kernel
 * may charge, flush (a word at a time, so that readings can be torn), remove and release.
 *
 * Checked in every pass: no group ever falls; none exceeds what was really charged; each is at least
 * what a completed flush showed before the pass; and at rest all are equal, removed ones included.
 * Also built with bugs planted (PLANT_*), which these checks must notice.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"

#include "source/bpf_run.h"
#include "source/counters.h"
#include "source/source.h"

/* ---- the model kernel ---- */

#define CPUS   3
#define NODES  40
#define NOBODY -1

struct model {
	bool exists; /* on its parent's list */
	bool online;
	bool grace; /* released, but a walk under RCU may still stand on it */
	int parent;
	int level;
	uint64_t serial;
	struct pass_counters cpu[CPUS], cpu_last[CPUS]; /* bstat, last_bstat of each CPU */
	struct pass_counters subtree[CPUS], subtree_last[CPUS];
	struct pass_counters bstat, last;
	struct pass_counters charged; /* truth: own and all that was ever below */
	uint64_t seen;                /* usage in the last pass */
};

static struct model m[NODES];
static uint64_t serial;
static bool walking;
static unsigned rate; /* kernel steps between two loads of the walk: 1 in so many */
static bool stalled;  /* the kernel stands still, maybe inside a flush, until bpf_run_wait() */
static bool at_rest;

/* A flush under way: nodes children first, for one CPU after the other. */
static struct {
	bool active;
	int order[NODES], n;
	int cpu, at, step;
	struct pass_counters delta;
} fl;

static uint64_t random_state;

static unsigned rnd(unsigned below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(random_state >> 33) % below;
}

static bool within(int i, int root)
{
	for (; i != NOBODY; i = m[i].parent)
		if (i == root)
			return true;
	return false;
}

static void flush_begin(int root)
{
	fl.active = true;
	fl.n = fl.cpu = fl.at = fl.step = 0;
	/* children stand behind parents in m[], so backwards is children first */
	for (int i = NODES - 1; i > 0; i--)
		if (m[i].serial && within(i, root))
			fl.order[fl.n++] = i;
	if (!fl.n)
		fl.active = false;
}

/*
 * One word of one step of cgroup_base_stat_flush(), five words a step, in the kernel's order: own
 * bstat, last and subtree of the CPU; then, below the top level, the parent's bstat, own last, the
 * parent's subtree of the CPU, own subtree_last of the CPU. The top level's parent is the root.
 */
static void flush_step(void)
{
	struct model *c = &m[fl.order[fl.at]];
	unsigned long long *word = &fl.delta.stime;
	int k = fl.step % 5;

	if (fl.step == 0) {
		fl.delta = c->cpu[fl.cpu];
		counters_sub(&fl.delta, &c->cpu_last[fl.cpu]);
	}
	if (fl.step == 15) {
		fl.delta = c->bstat;
		counters_sub(&fl.delta, &c->last);
	}
	if (fl.step == 25) {
		fl.delta = c->subtree[fl.cpu];
		counters_sub(&fl.delta, &c->subtree_last[fl.cpu]);
	}
	struct pass_counters *const to[] = { &c->bstat,
					     &c->cpu_last[fl.cpu],
					     &c->subtree[fl.cpu],
					     &m[c->parent].bstat,
					     &c->last,
					     &m[c->parent].subtree[fl.cpu],
					     &c->subtree_last[fl.cpu] };

	(&to[fl.step / 5]->stime)[k] += word[k];
	if (++fl.step == 35 || (fl.step == 15 && c->parent == 0)) {
		fl.step = 0;
		if (++fl.at == fl.n) {
			fl.at = 0;
			if (++fl.cpu == CPUS)
				fl.active = false;
		}
	}
}

static void flush_whole(int root)
{
	while (fl.active)
		flush_step();
	flush_begin(root);
	while (fl.active)
		flush_step();
}

static void charge(int i, unsigned long long ns)
{
	struct pass_counters c = { .exec = ns };
	unsigned cpu = rnd(CPUS);

	*(rnd(2) ? &c.utime : &c.stime) = 4000000;
	c.nice_ = rnd(3);
	counters_add(&m[i].cpu[cpu], &c);
	for (; i != NOBODY; i = m[i].parent)
		counters_add(&m[i].charged, &c);
}

static int make(int parent)
{
	for (int i = parent + 1; i < NODES; i++)
		if (!m[i].serial && !m[i].grace) {
			m[i] = (struct model){ .exists = true,
					       .online = true,
					       .parent = parent,
					       .level = m[parent].level + 1,
					       .serial = ++serial };
			return i;
		}
	return NOBODY;
}

static bool has_children(int i, bool online_only)
{
	for (int k = 1; k < NODES; k++)
		if (m[k].serial && m[k].parent == i && (m[k].online || !online_only))
			return true;
	return false;
}

/* css_release_work_fn: off the list, then a flush, then forgotten. */
static int releasing = NOBODY;

static void release_step(void)
{
	if (releasing == NOBODY) {
		for (int tries = 0; tries < 8; tries++) {
			int i = 1 + (int)rnd(NODES - 1);

			if (m[i].serial && !m[i].online && !has_children(i, false) && !fl.active) {
				releasing = i;
				m[i].exists = false;
				return;
			}
		}
	} else if (!fl.active) {
		if (rnd(4) == 0) { /* the work item waits for the lock a little */
			flush_whole(releasing);
			m[releasing].serial = 0;
			m[releasing].grace = walking;
			releasing = NOBODY;
		}
	}
}

static void kernel_step(void)
{
	unsigned what = rnd(100);
	int i = (int)rnd(NODES);

	if (at_rest)
		return;
	if (fl.active && what < 60) {
		flush_step();
		return;
	}
	if (what < 75) {
		if (i && m[i].serial && m[i].online)
			charge(i, rnd(1000000));
	} else if (what < 80) {
		if (!fl.active && (i == 0 || m[i].serial))
			flush_begin(i);
	} else if (what < 86) {
		if (m[i].serial && m[i].online && m[i].level < 6)
			make(i);
	} else if (what < 92) {
		if (i && m[i].serial && m[i].online && !has_children(i, true))
			m[i].online = false;
	} else {
		release_step();
	}
}

/* ---- bpf_run() over it ---- */

struct bpf_run {
	struct pass_record record[NODES];
	struct pass_throttle throttle[NODES];
	struct pass_ledger ledger[NODES];
	struct pass_name name[NODES];
};

static unsigned runs, ledgers;
static uint64_t now_ns;
static bool subtree; /* this kernel has subtree_bstat */

int bpf_run_open(int root_fd, struct bpf_run **ret, char *why, size_t why_size)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void bpf_run_close(struct bpf_run *b)
{
	free(b);
}

unsigned bpf_run_has(const struct bpf_run *b)
{
	return PASS_HAS_NICE | (subtree ? PASS_HAS_SUBTREE : 0);
}

void bpf_run_wait(struct bpf_run *b)
{
	now_ns += 4000000;
	stalled = false;
	for (unsigned n = rnd(400); n > 0; n--)
		kernel_step();
}

bool bpf_run_holds_mutex(const struct bpf_run *b)
{
	return false;
}

static void between(void)
{
	if (!stalled && rnd(rate) == 0)
		for (unsigned n = rnd(12); n > 0; n--)
			kernel_step();
}

/* First child, in creation order, with a serial above `after`. */
static int child_after(int parent, uint64_t after)
{
	int best = NOBODY;

	for (int i = 1; i < NODES; i++)
		if (m[i].serial && m[i].exists && m[i].parent == parent && m[i].serial > after &&
		    (best == NOBODY || m[i].serial < m[best].serial))
			best = i;
	return best;
}

static void load_words(struct pass_counters *to, const struct pass_counters *from)
{
	for (int k = 0; k < 5; k++) {
		between();
		(&to->stime)[k] += (&from->stime)[k];
	}
}

static void read_model(struct bpf_run *b, int i, uint32_t at, bool ledger)
{
	struct pass_record *r = &b->record[at];

	*r = (struct pass_record){ .serial = m[i].serial,
				   .level = (unsigned)m[i].level,
				   .flags = m[i].online ? 0 : PASS_DYING };
	memset(&b->ledger[at], 0, sizeof(b->ledger[at]));
	if (ledger) {
		load_words(&b->ledger[at].handed, &m[i].last);
		load_words(&b->ledger[at].all, &m[i].bstat);
	}
	for (int cpu = 0; cpu < CPUS; cpu++) {
		load_words(&r->own, &m[i].cpu[cpu]);
		if (ledger)
			load_words(&b->ledger[at].own, &m[i].cpu_last[cpu]);
		if (ledger && subtree)
			load_words(&b->ledger[at].subtree, &m[i].subtree[cpu]);
	}
}

/* Pre-order as css_next_descendant_pre() goes: by serial, so that a position that was released in
 * between is found again. */
int bpf_run(struct bpf_run *b, bool ledger, uint64_t known, uint32_t from, struct host_reading *ret)
{
	int parent[NODES];
	uint64_t at_serial[NODES];
	int depth = 0;

	runs++;
	walking = true;
	ledgers += ledger;
	*ret = (struct host_reading){ .record = b->record,
				      .throttle = b->throttle,
				      .ledger = ledger ? b->ledger : NULL,
				      .name = b->name,
				      .born = (uint32_t)serial };
	read_model(b, 0, ret->count++, ledger);
	parent[0] = 0;
	at_serial[0] = 0;
	while (depth >= 0) {
		int i = child_after(parent[depth], at_serial[depth]);

		if (i == NOBODY || ret->count == NODES) {
			depth--;
			continue;
		}
		at_serial[depth] = m[i].serial;
		if (m[i].online && m[i].serial > known && ret->count >= from) {
			struct pass_name *n = &b->name[ret->names++];

			*n = (struct pass_name){ .serial = m[i].serial, .id = m[i].serial + 1000 };
			snprintf(n->name, sizeof(n->name), "n%d", (int)m[i].serial);
		}
		read_model(b, i, ret->count++, ledger);
		parent[++depth] = i;
		at_serial[depth] = 0;
	}
	walking = false;
	for (int i = 0; i < NODES; i++)
		m[i].grace = false;
	now_ns += 50000;
	ret->at_ns = now_ns;
	return 0;
}

/* ---- the checks ---- */

static const struct source_group *shown(const struct source_tree *t, uint64_t sn)
{
	for (uint32_t i = 1; i < t->count; i++)
		if (t->group[i]->id == sn + 1000)
			return t->group[i];
	return NULL;
}

static void run_seed(uint64_t seed, int passes)
{
	struct source_options o = { .root = "/", .is_top = 0, .max_groups = 100 };
	struct source_tree t;
	struct source *s;
	char why[256];

	memset(m, 0, sizeof(m));
	memset(&fl, 0, sizeof(fl));
	releasing = NOBODY;
	random_state = seed;
	serial = 10;
	m[0] = (struct model){ .exists = true, .online = true, .parent = NOBODY, .serial = 10 };
	now_ns = 1;
	subtree = rnd(3);
	rate = 1 + rnd(40);
	at_rest = false;
	for (int i = 0; i < 400; i++) /* a past that the source has not seen */
		kernel_step();
	REQUIRE(!source_bpf_open(&o, &s, why, sizeof(why)), "%s", why);
	for (int p = 0; p < passes; p++) {
		uint64_t before[NODES] = { 0 }, sn[NODES] = { 0 };

		for (unsigned n = rnd(200); n > 0; n--)
			kernel_step();
		if (p == passes - 1) { /* everything ends, and is released */
			while (fl.active)
				flush_step();
			for (int i = 0; i < 2000; i++)
				release_step();
			at_rest = true;
		}
		if (rnd(2) && releasing == NOBODY) {
			flush_whole(0);
			for (int i = 1; i < NODES; i++) {
				before[i] = m[i].bstat.exec;
				sn[i] = m[i].serial;
			}
		}
		stalled = rnd(4) == 0;
		REQUIRE(s->ops->pass(s, &t) == 0);
		for (int i = 1; i < NODES; i++) {
			const struct source_group *g = m[i].serial ? shown(&t, m[i].serial) : NULL;

			if (!g)
				continue;
			EXPECT(g->value[HOST_USAGE] >= m[i].seen, "seed %llu pass %d: %d fell",
			       (unsigned long long)seed, p, i);
			m[i].seen = g->value[HOST_USAGE];
			EXPECT(m[i].seen <= m[i].charged.exec, "seed %llu pass %d: %d has too much",
			       (unsigned long long)seed, p, i);
			EXPECT(sn[i] != m[i].serial || m[i].seen >= before[i] || rate < 8,
			       "seed %llu pass %d: %d lacks %llu of %llu", (unsigned long long)seed,
			       p, i, (unsigned long long)(before[i] - m[i].seen),
			       (unsigned long long)before[i]);
			if (at_rest)
				EXPECT(m[i].seen == m[i].charged.exec,
				       "seed %llu: %d has %llu, not %llu", (unsigned long long)seed,
				       i, (unsigned long long)m[i].seen, m[i].charged.exec);
		}
	}
	s->ops->free(s);
}

TEST(against_a_simulated_kernel)
{
	runs = 0;
	for (uint64_t seed = 1; seed <= 200; seed++)
		run_seed(seed, 60);
	printf("# %u runs of the pass\n", runs);
#ifdef PLANTED
	int found = tap_bad;

	tap_bad = 0;
	EXPECT(found > 0, "nobody noticed the bug");
#endif
}

#ifndef PLANTED
/* Long after the last change a cgroup comes, is charged and goes while nobody looks. */
TEST(a_cgroup_that_no_pass_met)
{
	struct source_options o = { .root = "/", .is_top = 0, .max_groups = 100 };
	const struct source_group *g;
	struct source_tree t;
	struct source *s;
	char why[256];
	int parent, child;

	memset(m, 0, sizeof(m));
	releasing = NOBODY;
	serial = 10;
	m[0] = (struct model){ .exists = true, .online = true, .parent = NOBODY, .serial = 10 };
	now_ns = 1;
	rate = 1;
	at_rest = true; /* nothing but what is done here */
	for (int has = 0; has < 2; has++) {
		subtree = has;
		parent = make(0);
		REQUIRE(!source_bpf_open(&o, &s, why, sizeof(why)), "%s", why);
		EXPECT_EQ(s->ops->pass(s, &t), 0);
		now_ns += 3000000000;
		EXPECT_EQ(s->ops->pass(s, &t), 0); /* the window is over at its end */
		ledgers = 0;
		EXPECT_EQ(s->ops->pass(s, &t), 0);
		EXPECT_EQ(ledgers, 0);

		child = make(parent);
		charge(child, 12345);
		flush_whole(child);
		m[child].serial = 0;
		EXPECT_EQ(s->ops->pass(s, &t), 0);
		EXPECT_EQ(t.count, 2 + has);
		EXPECT(ledgers > 0);
		g = shown(&t, m[parent].serial);
		REQUIRE(g);
		EXPECT_EQ(g->value[HOST_USAGE], 12345);
		s->ops->free(s);
	}
}

/* What a careless function would find in a variable that it did not set. */
__attribute__((noinline)) static void litter_stack(void)
{
	volatile char litter[16384];

	for (size_t i = 0; i < sizeof(litter); i++)
		litter[i] = 0x5a;
}

/* The real root's columns are those of its cpu.stat; what that lacks is absent, and 0. */
TEST(root_by_its_text)
{
	char dir[] = "/tmp/freshet-root-XXXXXX", file[64], why[256];
	struct source_options o = { .root = dir, .is_top = 1, .max_groups = 100 };
	struct source_tree t;
	struct source *s;
	FILE *f;

	REQUIRE(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/cpu.stat", dir);
	f = fopen(file, "we");
	REQUIRE(f && fputs("usage_usec 5\nsystem_usec 2\n", f) >= 0 && fclose(f) == 0);
	REQUIRE(!source_bpf_open(&o, &s, why, sizeof(why)), "%s", why);
	for (int i = 0; i < 3; i++) {
		litter_stack();
		REQUIRE(s->ops->pass(s, &t) == 0);
		EXPECT_EQ(t.group[0]->present, 1u << HOST_USAGE | 1u << HOST_SYSTEM);
		for (int c = 0; c < HOST_NSTATS; c++)
			EXPECT_EQ(t.group[0]->value[c], c == HOST_USAGE    ? 5000
							: c == HOST_SYSTEM ? 2000
									   : 0);
	}
	s->ops->free(s);
	unlink(file);
	rmdir(dir);
}
#endif

TAP_MAIN
