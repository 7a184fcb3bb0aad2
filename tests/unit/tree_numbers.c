/* SPDX-License-Identifier: MIT */
/* What a program's tree counts is what every way of reading it gives: fresh, as of the last flush,
 * whole snapshots, histograms, another view of the same segment. */
#include "unit/tree_help.h"

#include <pthread.h>

ON_BOTH(counters_and_gauges)
{
	struct freshet_tree *tree = tree_open(NULL, 0, backend);
	struct freshet_handle root = freshet_tree_root(tree), a = tree_make(tree, root, "a", 0);

	for (int i = 0; i < 1000; i++) {
		EXPECT_EQ(freshet_add(&a, REQUESTS, i), 0);
		EXPECT_EQ(freshet_add(&a, OPEN, i % 2 ? -3 : 2), 0);
		EXPECT_EQ(freshet_add(&root, ERRORS, 1), 0);
		if (i % 100 == 0)
			EXPECT_EQ(freshet_flush(tree), 0);
	}
	EXPECT_EQ(tree_read(tree, a, REQUESTS), 999 * 1000 / 2);
	EXPECT_EQ(tree_read(tree, a, OPEN), -500);
	EXPECT_EQ(tree_read(tree, a, ERRORS), 0);
	EXPECT_EQ(tree_read(tree, root, REQUESTS), 999 * 1000 / 2);
	EXPECT_EQ(tree_read(tree, root, OPEN), -500);
	EXPECT_EQ(tree_read(tree, root, ERRORS), 1000);
	freshet_close(tree);
}

/* Large amounts, and those that need an own register. */
ON_BOTH(large_amounts)
{
	static const int64_t amounts[] = { 0, 1, INT32_MAX, 1ll << 31, 1ll << 40, INT64_MAX / 4 };
	struct freshet_tree *tree = tree_open(NULL, 0, backend);
	struct freshet_handle root = freshet_tree_root(tree);
	int64_t sum = 0;

	for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
		EXPECT_EQ(freshet_add(&root, REQUESTS, amounts[i]), 0);
		EXPECT_EQ(freshet_add(&root, OPEN, -amounts[i]), 0);
		sum += amounts[i];
		EXPECT_EQ(tree_read(tree, root, REQUESTS), sum);
		EXPECT_EQ(tree_read(tree, root, OPEN), -sum);
	}
	freshet_close(tree);
}

/* Sets of every size; a count that is no constant; single members. */
ON_BOTH(sets)
{
	struct freshet_tree *tree = tree_open(NULL, 0, backend);
	struct freshet_handle root = freshet_tree_root(tree), a = tree_make(tree, root, "a", 0);
	const int64_t n[] = { 1, 100, -7, 0 };
	volatile unsigned three = 3;

	for (int i = 0; i < 500; i++) {
		EXPECT_EQ(freshet_add_set(&a, SET, 3, n), 0);
		EXPECT_EQ(freshet_add_set(&a, SET, three, n), 0);
		EXPECT_EQ(freshet_add(&a, SET_B, 5), 0);
		EXPECT_EQ(freshet_add(&a, SET_GAUGE, i % 2 ? 1 : -1), 0);
		if (i % 50 == 0)
			EXPECT_EQ(freshet_flush(tree), 0);
	}
	for (int i = 0; i < 2; i++) {
		struct freshet_handle h = i ? root : a;

		EXPECT_EQ(tree_read(tree, h, SET), 1000);
		EXPECT_EQ(tree_read(tree, h, SET_B), 102500);
		EXPECT_EQ(tree_read(tree, h, SET_GAUGE), -7000);
	}
	/* Wrong ones count nothing. */
	EXPECT_EQ(freshet_add_set(&a, SET, 2, n), -EINVAL);
	EXPECT_EQ(freshet_add_set(&a, SET, 4, n), -EINVAL);
	EXPECT_EQ(freshet_add_set(&a, SET, 0, n), -EINVAL);
	EXPECT_EQ(freshet_add_set(&a, SET, 1, n), -EINVAL);
	EXPECT_EQ(freshet_add_set(&a, SET_B, 2, n), -EINVAL);
	EXPECT_EQ(freshet_add_set(&a, REQUESTS, 2, n), -EINVAL);
	EXPECT_EQ(freshet_add_set(&a, NSTATS, 3, n), -EINVAL);
	EXPECT_EQ(freshet_add_set(&a, FRESHET_MAX_STATS, 3, n), -EINVAL);
	EXPECT_EQ(freshet_add_set(&a, UINT32_MAX, 3, n), -EINVAL);
	EXPECT_EQ(tree_read(tree, a, SET), 1000);
	EXPECT_EQ(tree_read(tree, a, SET_B), 102500);
	/* A number on its own is a set of one. */
	EXPECT_EQ(freshet_add_set(&a, REQUESTS, 1, n), 0);
	EXPECT_EQ(tree_read(tree, a, REQUESTS), 1);
	freshet_close(tree);
}

static void sets_of(unsigned count, enum freshet_backend backend)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h",
					     "i", "j", "k", "l", "m", "n", "o", "p" };
	const int64_t n[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
	struct freshet_stat stats[FRESHET_MAX_SET];
	const struct freshet_schema schema = { sizeof(schema), stats, count, NULL, 0 };
	const struct freshet_options options = { .size = sizeof(options), .backend = backend };
	struct freshet_tree *tree;
	struct freshet_handle root;

	for (unsigned i = 0; i < count; i++)
		stats[i] =
			(struct freshet_stat){ "f", names[i], NULL, NULL, FRESHET_COUNTER, 0, 1 };
	REQUIRE(freshet_open(NULL, &schema, &options, &tree) == 0);
	root = freshet_tree_root(tree);
	for (int i = 0; i < 100; i++) {
		int r = -1;

		switch (count) { /* constants, so that the inline sequences are taken */
		case 2:
			r = freshet_add_set(&root, 0, 2, n);
			break;
		case 3:
			r = freshet_add_set(&root, 0, 3, n);
			break;
		case 4:
			r = freshet_add_set(&root, 0, 4, n);
			break;
		case 5:
			r = freshet_add_set(&root, 0, 5, n);
			break;
		case 6:
			r = freshet_add_set(&root, 0, 6, n);
			break;
		case 7:
			r = freshet_add_set(&root, 0, 7, n);
			break;
		case 8:
			r = freshet_add_set(&root, 0, 8, n);
			break;
		case 9:
			r = freshet_add_set(&root, 0, 9, n);
			break;
		case 10:
			r = freshet_add_set(&root, 0, 10, n);
			break;
		case 11:
			r = freshet_add_set(&root, 0, 11, n);
			break;
		case 12:
			r = freshet_add_set(&root, 0, 12, n);
			break;
		case 13:
			r = freshet_add_set(&root, 0, 13, n);
			break;
		case 14:
			r = freshet_add_set(&root, 0, 14, n);
			break;
		case 15:
			r = freshet_add_set(&root, 0, 15, n);
			break;
		case 16:
			r = freshet_add_set(&root, 0, 16, n);
			break;
		}
		EXPECT_EQ(r, 0);
		EXPECT_EQ(freshet_add_set(&root, 0, count, n), 0);
	}
	for (unsigned i = 0; i < count; i++)
		EXPECT(tree_read(tree, root, i) == 200 * n[i], "stat %u of %u: %lld", i, count,
		       (long long)tree_read(tree, root, i));
	freshet_close(tree);
}

ON_BOTH(sets_of_every_size)
{
	for (unsigned count = 2; count <= FRESHET_MAX_SET; count++)
		sets_of(count, backend);
}

ON_BOTH(what_is_not_there)
{
	struct freshet_tree *tree = tree_open(NULL, 0, backend);
	const struct freshet_view *view = freshet_view_of(tree);
	struct freshet_handle root = freshet_tree_root(tree);
	uint64_t values[FRESHET_MAX_STATS], present;
	struct freshet_group none = { 0, 0 }, beyond = { 999999, 1 };

	EXPECT_EQ(freshet_add(&root, NSTATS, 1), -EINVAL);
	EXPECT_EQ(freshet_add(&root, UINT32_MAX, 1), -EINVAL);
	EXPECT_EQ(freshet_observe(&root, 2, 1), -EINVAL);
	EXPECT_EQ(freshet_observe(&root, FRESHET_MAX_HISTOGRAMS, 1), -EINVAL);
	EXPECT_EQ(freshet_observe(&root, UINT32_MAX, 1), -EINVAL);
	EXPECT_EQ(freshet_read(view, root.group, 0, NSTATS + 1, values, &present, NULL), -EINVAL);
	EXPECT_EQ(freshet_read(view, root.group, NSTATS, 1, values, &present, NULL), -EINVAL);
	EXPECT_EQ(freshet_read(view, root.group, 1, UINT32_MAX, values, &present, NULL), -EINVAL);
	EXPECT_EQ(freshet_read(view, none, 0, 1, values, &present, NULL), -ENOENT);
	EXPECT_EQ(freshet_read(view, beyond, 0, 1, values, &present, NULL), -ENOENT);
	EXPECT_EQ(freshet_read_histogram(view, root.group, 2, values, NULL), -EINVAL);
	EXPECT_EQ(freshet_read_histogram(view, root.group, UINT32_MAX, values, NULL), -EINVAL);
	EXPECT_EQ(freshet_read_histogram(view, none, 0, values, NULL), -ENOENT);
	freshet_close(tree);
}

ON_BOTH(histograms)
{
	struct freshet_tree *tree = tree_open(NULL, 0, backend);
	const struct freshet_view *view = freshet_view_of(tree);
	struct freshet_handle root = freshet_tree_root(tree), a = tree_make(tree, root, "a", 0);
	uint64_t small[SMALL_BUCKETS], sum, count = 0, expected_sum = 0;
	const struct freshet_histogram *h;
	uint64_t large[1000];
	size_t n;

	h = freshet_histograms(view, &n);
	REQUIRE(n == 2 && h[0].buckets == SMALL_BUCKETS && h[1].buckets < 1000);
	for (uint64_t v = 0; v < 20; v++) {
		EXPECT_EQ(freshet_observe(&a, 0, v), 0);
		EXPECT_EQ(freshet_observe(&root, 1, v * v * v * v * v * v), 0);
		expected_sum += v * v * v * v * v * v;
		if (v == 10)
			EXPECT_EQ(freshet_flush(tree), 0);
	}
	for (int i = 0; i < 2; i++) {
		static const uint64_t want[SMALL_BUCKETS] = { 1, 1, 1, 1, 2, 2, 4, 4, 4 };

		EXPECT_EQ(freshet_read_histogram(view, i ? root.group : a.group, 0, small, &sum),
			  0);
		EXPECT(!memcmp(small, want, sizeof(want)));
		EXPECT_EQ(sum, 190);
	}
	EXPECT_EQ(freshet_read_histogram(view, root.group, 1, large, &sum), 0);
	EXPECT_EQ(sum, expected_sum);
	for (unsigned i = 0; i < h[1].buckets; i++)
		count += large[i];
	EXPECT_EQ(count, 20);
	EXPECT_EQ(freshet_read_histogram(view, a.group, 1, large, NULL), 0);
	for (unsigned i = 0; i < h[1].buckets; i++)
		EXPECT_EQ(large[i], 0);
	/* Neither runs over into what lies beside it. */
	EXPECT_EQ(freshet_observe(&a, 0, UINT64_MAX), 0);
	EXPECT_EQ(freshet_read_histogram(view, a.group, 0, small, &sum), 0);
	EXPECT_EQ(small[SMALL_BUCKETS - 1], 5);
	EXPECT_EQ(sum, 189);
	for (unsigned s = 0; s < NSTATS; s++)
		EXPECT_EQ(tree_read(tree, root, s), 0);
	freshet_close(tree);
}

ON_BOTH(totals_are_of_the_last_flush)
{
	struct freshet_tree *tree = tree_open(NULL, 0, backend);
	const struct freshet_view *view = freshet_view_of(tree);
	struct freshet_handle root = freshet_tree_root(tree), a = tree_make(tree, root, "a", 0);
	struct freshet_moment before, after, of_read;
	uint64_t value, present, age = 1;

	EXPECT_EQ(freshet_add(&a, REQUESTS, 1), 0);
	EXPECT_EQ(tree_total(tree, root, REQUESTS), 0);
	EXPECT_EQ(tree_read(tree, root, REQUESTS), 1);
	EXPECT_EQ(freshet_last_pass(view, &before), 0);
	EXPECT_EQ(freshet_flush(tree), 0);
	EXPECT_EQ(freshet_last_pass(view, &after), 0);
	EXPECT_EQ(after.pass, before.pass + 1);
	EXPECT(after.begin_ns >= before.end_ns && after.end_ns >= after.begin_ns);
	EXPECT_EQ(tree_total(tree, root, REQUESTS), 1);
	EXPECT_EQ(tree_total(tree, a, REQUESTS), 1);
	EXPECT_EQ(freshet_add(&a, REQUESTS, 1), 0);
	EXPECT_EQ(freshet_read_total(view, a.group, REQUESTS, 1, &value, &present, &of_read), 0);
	EXPECT_EQ(value, 1);
	EXPECT_EQ(of_read.pass, after.pass);
	EXPECT_EQ(freshet_read(view, a.group, REQUESTS, 1, &value, &present, &of_read), 0);
	EXPECT_EQ(value, 2);
	EXPECT_EQ(present, 1);
	EXPECT_EQ(of_read.begin_ns, after.begin_ns);
	EXPECT_EQ(freshet_age(view, &age), 0);
	EXPECT_EQ(age, 0);
	EXPECT_EQ(freshet_refresh(view, 0, 0), -EOPNOTSUPP);
	freshet_close(tree);
}

/* Any range of stats, across the parts that they are kept in. */
ON_BOTH(ranges)
{
	struct freshet_tree *tree = tree_open(NULL, 0, backend);
	struct freshet_handle root = freshet_tree_root(tree), a = tree_make(tree, root, "a", 0);
	const int64_t n[] = { 30, 40, -50 };
	const int64_t want[] = { 10, -20, 30, 40, -50, 60 };
	uint64_t values[NSTATS], present;

	EXPECT_EQ(freshet_add(&a, REQUESTS, 10), 0);
	EXPECT_EQ(freshet_add(&a, OPEN, -20), 0);
	EXPECT_EQ(freshet_add_set(&a, SET, 3, n), 0);
	EXPECT_EQ(freshet_add(&a, ERRORS, 60), 0);
	for (unsigned flushed = 0; flushed < 2; flushed++) {
		for (unsigned first = 0; first < NSTATS; first++) {
			for (unsigned count = 1; first + count <= NSTATS; count++) {
				for (unsigned k = 0; k < 2; k++) {
					EXPECT_EQ(freshet_read(freshet_view_of(tree),
							       k ? root.group : a.group, first,
							       count, values, &present, NULL),
						  0);
					EXPECT_EQ(present, (1u << count) - 1);
					EXPECT(!memcmp(values, want + first, 8 * count),
					       "%u from %u", count, first);
				}
			}
		}
		EXPECT_EQ(freshet_flush(tree), 0);
	}
	freshet_close(tree);
}

ON_BOTH(snapshots)
{
	struct freshet_tree *tree = tree_open(NULL, 0, backend);
	const struct freshet_view *view = freshet_view_of(tree);
	struct freshet_handle root = freshet_tree_root(tree), a = tree_make(tree, root, "a", 0);
	struct freshet_handle b = tree_make(tree, a, "b", 0), c = tree_make(tree, root, "c", 0);
	const struct freshet_histogram *h;
	const struct freshet_entry *e;
	struct freshet_moment first, second;
	struct freshet_snapshot *snap;
	const int64_t n[] = { 1, 2, -3 };
	size_t count, at;

	h = freshet_histograms(view, &count);
	REQUIRE(freshet_snapshot_new(&snap) == 0);
	for (int round = 1; round <= 3; round++) {
		EXPECT_EQ(freshet_add(&a, REQUESTS, 1), 0);
		EXPECT_EQ(freshet_add(&b, REQUESTS, 10), 0);
		EXPECT_EQ(freshet_add(&c, REQUESTS, 100), 0);
		EXPECT_EQ(freshet_add(&b, OPEN, -1), 0);
		EXPECT_EQ(freshet_add_set(&b, SET, 3, n), 0);
		EXPECT_EQ(freshet_observe(&b, 0, 3), 0);
		EXPECT_EQ(freshet_observe(&c, 1, 1ull << 50), 0);
		EXPECT_EQ(freshet_snapshot_take(snap, view), 0);
		REQUIRE(freshet_snapshot_count(snap) == 4);
		e = freshet_snapshot_entries(snap);
		EXPECT_EQ(freshet_snapshot_find(snap, "/a/b", &at), 0);
		EXPECT_EQ(at, 2);
		for (size_t i = 0; i < 4; i++) {
			static const int requests[] = { 111, 11, 10, 100 };
			static const int below_b[] = { 1, 1, 1, 0 }, below_c[] = { 1, 0, 0, 1 };
			const uint64_t *v = e[i].values, *small = v + h[0].word;
			const uint64_t *large = v + h[1].word;

			EXPECT_EQ(e[i].present, (1 << NSTATS) - 1);
			EXPECT_EQ(v[REQUESTS], round * requests[i]);
			EXPECT_EQ(v[OPEN], -round * below_b[i]);
			EXPECT_EQ(v[SET_B], 2 * round * below_b[i]);
			EXPECT_EQ(v[SET_GAUGE], -3 * round * below_b[i]);
			EXPECT_EQ(small[3], round * below_b[i]);
			EXPECT_EQ(small[h[0].buckets], 3 * round * below_b[i]);
			EXPECT_EQ(large[h[1].buckets - 1], round * below_c[i]);
			EXPECT_EQ(large[h[1].buckets], ((int64_t)round << 50) * below_c[i]);
		}
		freshet_snapshot_moment(snap, &first);
		EXPECT(first.begin_ns <= first.end_ns);
		if (round == 2)
			EXPECT_EQ(freshet_flush(tree), 0);
	}
	/* Its moment is that of the copy, though nothing was published in between. */
	EXPECT_EQ(freshet_snapshot_take(snap, view), 0);
	freshet_snapshot_moment(snap, &second);
	EXPECT_EQ(second.pass, first.pass);
	EXPECT(second.begin_ns >= first.end_ns);
	freshet_snapshot_free(snap);
	freshet_close(tree);
}

#define THREADS 8
#define EACH    20000

struct worker {
	struct freshet_handle mine, shared;
	int bad;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct freshet_handle mine = w->mine, shared = w->shared;
	const int64_t n[] = { 1, 1, 1 };

	for (int i = 0; i < EACH; i++) {
		w->bad |= freshet_add(&mine, REQUESTS, 1);
		w->bad |= freshet_add_set(&shared, SET, 3, n);
		w->bad |= freshet_add(&shared, OPEN, i % 2 ? -1 : 1);
		w->bad |= freshet_observe(&shared, 1, (uint64_t)i);
	}
	return NULL;
}

/* More threads than CPUs, flushed and read meanwhile: nothing is lost, no set is torn. */
ON_BOTH(threads)
{
	struct freshet_tree *tree = tree_open(NULL, 0, backend);
	const struct freshet_view *view = freshet_view_of(tree);
	struct freshet_handle root = freshet_tree_root(tree);
	struct freshet_handle shared = tree_make(tree, root, "shared", 0);
	struct worker worker[THREADS];
	pthread_t thread[THREADS];
	uint64_t v[3], last = 0, present;
	char name[8];

	for (int i = 0; i < THREADS; i++) {
		snprintf(name, sizeof(name), "w%d", i);
		worker[i] = (struct worker){ tree_make(tree, root, name, 0), shared, 0 };
		REQUIRE(pthread_create(&thread[i], NULL, work, &worker[i]) == 0);
	}
	for (int i = 0; i < 200; i++) {
		EXPECT_EQ(freshet_read(view, i % 2 ? root.group : shared.group, SET, 3, v, &present,
				       NULL),
			  0);
		EXPECT(v[0] == v[1] && v[1] == v[2] && v[0] >= last, "%llu %llu %llu after %llu",
		       (unsigned long long)v[0], (unsigned long long)v[1], (unsigned long long)v[2],
		       (unsigned long long)last);
		last = v[0];
		if (i % 20 == 0)
			EXPECT_EQ(freshet_flush(tree), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_EQ(worker[i].bad, 0);
		EXPECT_EQ(tree_read(tree, worker[i].mine, REQUESTS), EACH);
	}
	EXPECT_EQ(tree_read(tree, root, REQUESTS), THREADS * EACH);
	EXPECT_EQ(tree_read(tree, root, SET_GAUGE), THREADS * EACH);
	EXPECT_EQ(tree_read(tree, root, OPEN), 0);
	EXPECT_EQ(freshet_flush(tree), 0);
	EXPECT_EQ(tree_total(tree, root, REQUESTS), THREADS * EACH);
	EXPECT_EQ(tree_total(tree, shared, SET), THREADS * EACH);
	freshet_close(tree);
}

TAP_MAIN
