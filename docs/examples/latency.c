/* SPDX-License-Identifier: MIT */
/*
 * A latency histogram, and its quantiles. Two workers have one each; their parent's is the sum, so
 * that its quantiles are those of all requests. Also valid C++17.
 *
 *   cc -O2 latency.c $(pkg-config --cflags --libs freshet) && ./a.out
 */
#include <freshet/freshet.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From 2^10 ns (1 us) to 2^33 ns (9 s), 2^3 buckets in each power of two: bounds 12.5 % apart. */
static const struct freshet_histogram histograms[] = {
	{ "http", "latency", NULL, "Time from request to answer.", FRESHET_NANOSECONDS, 3, 10, 33,
	  0, 0 },
};

/* A schema has one stat at least. */
static const struct freshet_stat stats[] = {
	{ "http", "errors", NULL, "Requests that failed.", FRESHET_COUNTER, FRESHET_COUNT, 0 },
};

static void check(int r, const char *what)
{
	if (r == 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

static void print(const struct freshet_view *view, const char *path)
{
	const struct freshet_histogram *h;
	uint64_t *buckets, sum, count = 0;
	struct freshet_group group;
	size_t n;

	/* As the segment has it: the library has filled in the number of buckets. */
	h = freshet_histograms(view, &n);
	buckets = (uint64_t *)calloc(h->buckets, sizeof(*buckets));
	if (!buckets)
		exit(1);
	check(freshet_find(view, path, &group), path);
	check(freshet_read_histogram(view, group, 0, buckets, &sum), path);
	for (unsigned i = 0; i < h->buckets; i++)
		count += buckets[i];
	printf("%s: %llu requests, mean %.1f us, half below %.1f us, 99%% below %.1f us\n", path,
	       (unsigned long long)count, (double)sum / (double)count / 1e3,
	       (double)freshet_quantile(h, buckets, 0.5) / 1e3,
	       (double)freshet_quantile(h, buckets, 0.99) / 1e3);
	free(buckets);
}

int main(void)
{
	const struct freshet_schema schema = { sizeof(schema), stats, 1, histograms, 1 };
	struct freshet_handle root, fast, slow;
	struct freshet_tree *tree;

	check(freshet_open(NULL, &schema, NULL, &tree), "open");
	root = freshet_tree_root(tree);
	check(freshet_create(tree, &root, "fast", 0, &fast), "fast");
	check(freshet_create(tree, &root, "slow", 0, &slow), "slow");
	/* 1 us, 2 us ... 1 ms; and ten times as long. A program would measure these. */
	for (uint64_t us = 1; us <= 1000; us++) {
		check(freshet_observe(&fast, 0, us * 1000), "observe");
		check(freshet_observe(&slow, 0, us * 10000), "observe");
	}
	print(freshet_view_of(tree), "/fast");
	print(freshet_view_of(tree), "/slow");
	print(freshet_view_of(tree), "/");
	freshet_close(tree);
	return 0;
}
