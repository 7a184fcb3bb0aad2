/* SPDX-License-Identifier: MIT */
/*
 * A reader in another process than the producer, which is stopped, or killed, in the middle of
 * anything, again and again: reads take no longer than usual, numbers stay sane, and a new producer
 * takes the place of a dead one but not of a living one.
 */
#include "stress/stress.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define UPDATERS 2u
#define GROUPS   6u
#define SAMPLES  20000u /* reads of a measurement */
#define PARTS    5u     /* measurements of each kind, taken by turns */

/* The producer: updates, flushes, makes and removes groups until it is killed. */
static struct freshet_tree *tree;
static struct freshet_handle group[GROUPS];

static void *update(void *arg)
{
	uint64_t random = stress.seed + (uint64_t)(uintptr_t)arg * 77 + 1;
	const int64_t one[3] = { 1, 1, 1 };

	for (;;) {
		const struct freshet_handle *h = &group[stress_random(&random) % GROUPS];

		freshet_add_set(h, A, 3, one);
		freshet_add(h, OPS, 1);
		freshet_add(h, BUSY, 1);
		freshet_add(h, BUSY, -1);
	}
	return NULL;
}

static void produce(const char *path)
{
	struct freshet_handle above, leaf;
	pthread_t thread;
	char name[32];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (stress_open(path, 64, 0, &tree))
		_exit(1);
	above = freshet_tree_root(tree);
	for (unsigned i = 0; i < GROUPS; i++) {
		snprintf(name, sizeof(name), "g%u", i);
		if (freshet_create(tree, &above, name, 0, &group[i]))
			_exit(2);
		if (i % 2)
			above = group[i]; /* two at each depth */
	}
	for (uintptr_t i = 0; i < UPDATERS; i++)
		if (pthread_create(&thread, NULL, update, (void *)i))
			_exit(3);
	for (unsigned i = 0;; i++) {
		snprintf(name, sizeof(name), "leaf%u", i);
		if (freshet_create(tree, &above, name, 0, &leaf) == 0) {
			freshet_add(&leaf, OPS, 1);
			freshet_remove(tree, &leaf, 0);
		}
		freshet_flush(tree);
	}
}

static pid_t start_producer(void)
{
	pid_t pid = fork();

	if (pid == 0)
		produce(stress_path);
	return pid;
}

/* The view of a producer that has made its groups, or NULL. */
static struct freshet_view *attach(void)
{
	struct freshet_view *v;
	struct freshet_group g;
	int r = -ENOENT;

	for (unsigned i = 0; i < 5000; i++) {
		r = freshet_attach(stress_path, &v);
		if (r == 0) {
			r = freshet_find(v, "g1/g3/g5", &g);
			if (r == 0)
				return v;
			freshet_detach(v);
		}
		stress_nap(1000000);
	}
	EXPECT(0, "attach: %s", strerror(-r));
	return NULL;
}

struct last {
	uint64_t v[STATS];
};

/* Reads the root, which must be sane. Returns the time that it took, ns. */
static uint64_t read_root(const struct freshet_view *v, struct freshet_group root,
			  struct last *last)
{
	uint64_t value[STATS], present, began = clock_ns();
	int r = freshet_read(v, root, 0, STATS, value, &present, NULL);
	uint64_t took = clock_ns() - began;

	EXPECT(r == 0, "read: %d", r);
	if (r)
		return took;
	EXPECT(value[A] == value[B] && value[A] == value[C], "%llu %llu %llu",
	       (unsigned long long)value[A], (unsigned long long)value[B],
	       (unsigned long long)value[C]);
	EXPECT(value[OPS] >= last->v[OPS] && value[A] >= last->v[A], "%llu after %llu",
	       (unsigned long long)value[OPS], (unsigned long long)last->v[OPS]);
	EXPECT((int64_t)value[BUSY] >= 0, "%lld", (long long)value[BUSY]);
	memcpy(last->v, value, sizeof(value));
	return took;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The 99th percentile of the time of a read, and the longest, ns. */
static uint64_t measure(const struct freshet_view *v, struct freshet_group root, struct last *last,
			uint64_t *longest)
{
	static uint64_t took[SAMPLES];

	for (unsigned i = 0; i < SAMPLES; i++)
		took[i] = read_root(v, root, last);
	qsort(took, SAMPLES, sizeof(took[0]), compare);
	*longest = took[SAMPLES - 1];
	return took[SAMPLES * 99 / 100];
}

static void stop(pid_t pid)
{
	int status;

	EXPECT(kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid &&
	       WIFSTOPPED(status));
}

static void finish(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	EXPECT(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "%x", status);
}

struct measured {
	uint64_t running, stopped; /* median of the parts' 99th percentiles */
	uint64_t longest;          /* while stopped, of the part where that was shortest: a host may
				      interrupt anybody */
};

/* By turns: the producer runs; it is stopped at a random moment. */
static struct measured compare_stopped(const struct freshet_view *v, struct freshet_group root,
				       pid_t pid, struct last *last, uint64_t *random)
{
	uint64_t running[PARTS], stopped[PARTS], longest;
	struct measured m = { .longest = UINT64_MAX };

	for (unsigned i = 0; i < PARTS; i++) {
		running[i] = measure(v, root, last, &longest);
		stress_nap(stress_random(random) % 3000000);
		stop(pid);
		stopped[i] = measure(v, root, last, &longest);
		m.longest = longest < m.longest ? longest : m.longest;
		EXPECT_EQ(freshet_producer(v), FRESHET_ALIVE);
		kill(pid, SIGCONT);
	}
	qsort(running, PARTS, sizeof(running[0]), compare);
	qsort(stopped, PARTS, sizeof(stopped[0]), compare);
	m.running = running[PARTS / 2];
	m.stopped = stopped[PARTS / 2];
	return m;
}

TEST(stopped)
{
	uint64_t random = stress.seed;
	struct last last = { 0 };
	struct freshet_group root;
	struct freshet_view *v;
	struct measured m;
	bool good = false;
	pid_t pid;

	stress_make_path();
	pid = start_producer();
	v = attach();
	REQUIRE(v && freshet_root(v, &root) == 0);
	/* Other programs disturb it; a producer that is waited for, does so every time. */
	for (unsigned i = 0; i < 3 && !good; i++) {
		m = compare_stopped(v, root, pid, &last, &random);
		printf("# p99 of a read of the root: %llu ns, %llu ns with the producer stopped; "
		       "longest then %llu ns\n",
		       (unsigned long long)m.running, (unsigned long long)m.stopped,
		       (unsigned long long)m.longest);
		good = m.stopped <= 2 * m.running && m.longest < 100 * 1000 * 1000;
	}
	EXPECT(good);
	finish(pid);
	freshet_detach(v);
	stress_remove();
}

TEST(killed)
{
	uint64_t until = clock_ns() + stress.ns, random = stress.seed;
	unsigned kills = 0;

	stress_make_path();
	while (clock_ns() < until || kills < 4) {
		struct freshet_view *v;
		struct freshet_group root;
		struct last last = { 0 };
		struct freshet_tree *other;
		pid_t pid = start_producer();

		v = attach();
		REQUIRE(v && freshet_root(v, &root) == 0);
		EXPECT_EQ(stress_open(stress_path, 64, 0, &other), -EBUSY);
		for (uint64_t n = stress_random(&random) % 3000; n; n--)
			read_root(v, root, &last);
		finish(pid);
		kills++;
		EXPECT_EQ(freshet_producer(v), FRESHET_GONE);
		for (unsigned i = 0; i < 100; i++)
			read_root(v, root, &last);
		/* Its successor takes the place; the reader follows. */
		REQUIRE(stress_open(stress_path, 64, 0, &other) == 0);
		EXPECT_EQ(freshet_producer(v), FRESHET_REPLACED);
		read_root(v, root, &last); /* the old one is still mapped */
		EXPECT_EQ(freshet_reattach(v), 1);
		EXPECT_EQ(freshet_root(v, &root), 0);
		EXPECT_EQ(stress_read(v, root, OPS), 0);
		freshet_close(other);
		freshet_detach(v);
	}
	printf("# killed %u times\n", kills);
	stress_remove();
}

STRESS_MAIN(1)
