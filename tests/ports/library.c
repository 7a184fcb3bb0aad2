/* SPDX-License-Identifier: MIT */
/*
 * A small tour of the library, for what a machine, an emulator or valgrind can break: 64-bit numbers
 * are whole, threads lose nothing, other processes read the same. All numbers are multiples of
 * 2^32 + 1, so that one whose halves come from different moments has unequal ones.
 *
 * FRESHET_TEST_BACKEND=fallback: there is no rseq here, and the library must know.
 */
#include <errno.h>
#include <freshet/freshet.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/rseq.h"
#include "tap.h"

#define STEP    ((1ll << 32) + 1)
#define THREADS 3
#define GROUPS  2
#define UPDATES 20000

static const struct freshet_stat stats[] = {
	{ .family = "t", .name = "alone", .kind = FRESHET_COUNTER },
	{ .family = "t", .name = "level", .kind = FRESHET_GAUGE },
	{ .family = "t", .name = "a", .kind = FRESHET_COUNTER, .set = 1 },
	{ .family = "t", .name = "b", .kind = FRESHET_COUNTER, .set = 1 },
	{ .family = "t", .name = "c", .kind = FRESHET_COUNTER, .set = 1 },
};
static const struct freshet_histogram histograms[] = {
	{ .family = "t", .name = "sizes", .precision = 2, .lowest = 0, .highest = 40 },
};
static const struct freshet_schema schema = {
	.size = sizeof(schema),
	.stats = stats,
	.nstats = 5,
	.histograms = histograms,
	.nhistograms = 1,
};

static struct freshet_tree *tree;
static struct freshet_handle group[GROUPS];
static char directory[] = "/tmp/freshet-ports-XXXXXX", path[sizeof(directory) + 8];
static int stop;

static int setup(void)
{
	struct freshet_handle root;

	if (!mkdtemp(directory))
		return -errno;
	snprintf(path, sizeof(path), "%s/tour", directory);
	if (freshet_open(path, &schema, NULL, &tree))
		return -EIO;
	root = freshet_tree_root(tree);
	return freshet_create(tree, &root, "x", 0, &group[0]) |
	       freshet_create(tree, &group[0], "y", 0, &group[1]);
}

TEST(backend)
{
	const char *expected = getenv("FRESHET_TEST_BACKEND");
	struct rseq_place place;

	REQUIRE(setup() == 0);
	if (expected && !strcmp(expected, "fallback"))
		EXPECT_EQ(freshet_backend(tree), FRESHET_FALLBACK);
	else
		EXPECT_EQ(freshet_backend(tree),
			  rseq_find(&place) ? FRESHET_FALLBACK : FRESHET_RSEQ);
}

static void *update(void *arg)
{
	const int64_t n[] = { STEP, STEP, STEP };
	int *failed = arg;

	for (unsigned i = 0; i < UPDATES; i++) {
		const struct freshet_handle *g = &group[i % GROUPS];

		*failed += freshet_add(g, 0, STEP) != 0;
		*failed += freshet_add(g, 1, 2 * STEP) != 0;
		*failed += freshet_add(g, 1, -STEP) != 0;
		*failed += freshet_add_set(g, 2, 3, n) != 0;
		*failed += freshet_observe(g, 0, STEP) != 0;
	}
	return NULL;
}

/* The numbers of a group while it is updated, and what was wrong with them. */
static void *read_all(void *arg)
{
	const struct freshet_view *v = freshet_view_of(tree);
	uint64_t last[2][5] = { 0 };
	int *bad = arg;

	while (!load_relaxed(&stop))
		for (unsigned g = 0; g < GROUPS; g++) {
			uint64_t value[5], present;

			if (freshet_read(v, group[g].group, 0, 5, value, &present, NULL)) {
				(*bad)++;
				continue;
			}
			for (unsigned i = 0; i < 5; i++)
				*bad += (uint32_t)value[i] != value[i] >> 32 ||
					(i != 1 && value[i] < last[g][i]);
			*bad += value[2] != value[3] || value[3] != value[4];
			memcpy(last[g], value, sizeof(value));
		}
	return NULL;
}

static void check_totals(const struct freshet_view *v)
{
	static const char *const paths[] = { "/", "x", "x/y" };
	const uint64_t all = (uint64_t)STEP * THREADS * UPDATES;

	for (unsigned p = 0; p < 3; p++) {
		uint64_t total = p < 2 ? all : all / 2, value[5], present, sum = 0, counts = 0;
		uint64_t bucket[FRESHET_MAX_WORDS];
		struct freshet_group g;
		size_t n;

		EXPECT_EQ(freshet_find(v, paths[p], &g), 0);
		EXPECT_EQ(freshet_read(v, g, 0, 5, value, &present, NULL), 0);
		for (unsigned i = 0; i < 5; i++)
			EXPECT(value[i] == total, "%s stat %u: %llx", paths[p], i,
			       (unsigned long long)value[i]);
		EXPECT_EQ(freshet_read_histogram(v, g, 0, bucket, &sum), 0);
		EXPECT_EQ(sum, total);
		for (unsigned i = 0; i < freshet_histograms(v, &n)[0].buckets; i++)
			counts += bucket[i];
		EXPECT_EQ(counts, total / STEP);
	}
}

TEST(threads)
{
	pthread_t writer[THREADS], reader;
	int failed[THREADS] = { 0 }, bad = 0;

	REQUIRE(tree);
	REQUIRE(pthread_create(&reader, NULL, read_all, &bad) == 0);
	for (unsigned i = 0; i < THREADS; i++)
		REQUIRE(pthread_create(&writer[i], NULL, update, &failed[i]) == 0);
	for (unsigned i = 0; i < 20; i++)
		EXPECT_EQ(freshet_flush(tree), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(writer[i], NULL);
		EXPECT_EQ(failed[i], 0);
	}
	store_relaxed(&stop, 1);
	pthread_join(reader, NULL);
	EXPECT_EQ(bad, 0);
	check_totals(freshet_view_of(tree));
}

/* Runs in a child: its exit code is whether something was wrong. */
static int in_child(void (*run)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		tap_bad = 0;
		run();
		fflush(stdout);
		_exit(tap_bad != 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void child(void)
{
	struct freshet_view *v;
	int64_t n[3] = { 1, 1, 1 };

	EXPECT_EQ(freshet_add(&group[0], 0, 1), -ECHILD);
	EXPECT_EQ(freshet_add_set(&group[0], 2, 3, n), -ECHILD);
	EXPECT_EQ(freshet_observe(&group[0], 0, 1), -ECHILD);
	EXPECT_EQ(freshet_flush(tree), -ECHILD);
	REQUIRE(freshet_attach(path, &v) == 0);
	EXPECT_EQ(freshet_producer(v), FRESHET_ALIVE);
	check_totals(v);
	freshet_detach(v);
	freshet_close(tree);
}

TEST(fork)
{
	REQUIRE(tree);
	EXPECT_EQ(in_child(child), 0);
}

TEST(snapshot)
{
	struct freshet_snapshot *s;
	const struct freshet_entry *e;

	REQUIRE(tree);
	REQUIRE(freshet_snapshot_new(&s) == 0);
	EXPECT_EQ(freshet_snapshot_take(s, freshet_view_of(tree)), 0);
	EXPECT_EQ(freshet_snapshot_count(s), 3);
	e = freshet_snapshot_entries(s);
	EXPECT_EQ(e[0].values[0], STEP * THREADS * UPDATES);
	EXPECT_EQ(e[2].values[4], STEP * THREADS * UPDATES / 2);
	freshet_snapshot_free(s);
}

TEST(remove)
{
	struct freshet_handle root;
	uint64_t value[5], present;

	REQUIRE(tree);
	EXPECT_EQ(freshet_remove(tree, &group[0], 0), -ENOTEMPTY);
	EXPECT_EQ(freshet_remove(tree, &group[1], 0), 0);
	EXPECT_EQ(freshet_add(&group[1], 0, 1), -ENOENT);
	EXPECT_EQ(freshet_remove(tree, &group[0], 0), 0);
	root = freshet_tree_root(tree);
	EXPECT_EQ(freshet_read(freshet_view_of(tree), root.group, 0, 5, value, &present, NULL), 0);
	for (unsigned i = 0; i < 5; i++)
		EXPECT(value[i] == (uint64_t)STEP * THREADS * UPDATES, "stat %u", i);
	freshet_close(tree);
	EXPECT_EQ(access(path, F_OK), -1);
	EXPECT_EQ(rmdir(directory), 0);
}

TAP_MAIN
