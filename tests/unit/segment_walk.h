/* SPDX-License-Identifier: MIT */
/*
 * Reads everything that a segment says, whatever it says: for fuzzing and for damaged segments.
 * Reports a result that the reader may not give (abort() when nobody expects).
 */
#ifndef SEGMENT_WALK_H
#define SEGMENT_WALK_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <freshet/freshet.h>

#define WALK_CHECK(cond)                                                            \
	do {                                                                        \
		if (!(cond)) {                                                      \
			printf("# %s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
			fflush(stdout);                                             \
			abort();                                                    \
		}                                                                   \
	} while (0)

static int walk_known(int r)
{
	return r == 0 || r == -EIO || r == -ENOENT || r == -EAGAIN || r == -ENAMETOOLONG ||
	       r == -ENOMEM;
}

static void walk_histograms(const struct freshet_view *v, struct freshet_group g)
{
	uint64_t buckets[FRESHET_MAX_WORDS], sum;
	const struct freshet_histogram *h;
	size_t n;

	h = freshet_histograms(v, &n);
	for (unsigned i = 0; i < n; i++) {
		int r = freshet_read_histogram(v, g, i, buckets, &sum);

		WALK_CHECK(walk_known(r));
		if (r == 0)
			WALK_CHECK(freshet_quantile(&h[i], buckets, 0.5) <= UINT64_MAX);
	}
	WALK_CHECK(freshet_read_histogram(v, g, (unsigned)n, buckets, &sum) == -EINVAL);
}

static void walk_group(const struct freshet_view *v, struct freshet_group g)
{
	struct freshet_group child[4], again;
	uint64_t values[FRESHET_MAX_STATS], present;
	struct freshet_moment m;
	struct freshet_info info;
	char path[300];
	size_t count;
	unsigned columns;
	int r;

	freshet_stats(v, &count);
	columns = (unsigned)count;
	r = freshet_read_total(v, g, 0, columns, values, &present, &m);
	WALK_CHECK(walk_known(r));
	if (r == 0 && columns < 64)
		WALK_CHECK(present >> columns == 0);
	r = freshet_read(v, g, 0, columns, values, &present, &m);
	WALK_CHECK(walk_known(r));
	if (r == 0 && columns < 64)
		WALK_CHECK(present >> columns == 0);
	walk_histograms(v, g);
	r = freshet_info(v, g, &info);
	WALK_CHECK(walk_known(r));
	if (r == 0)
		WALK_CHECK(strlen(info.name) <= FRESHET_NAME_MAX && !strchr(info.name, '/'));
	WALK_CHECK(walk_known(freshet_children(v, g, child, 4, &count)));
	r = freshet_path(v, g, path, sizeof(path));
	WALK_CHECK(walk_known(r));
	if (r == 0) {
		WALK_CHECK(path[0] == '/' && strlen(path) < sizeof(path));
		r = freshet_find(v, path, &again);
		WALK_CHECK(walk_known(r) || r == -EINVAL); /* a group may call itself ".." */
	}
}

static void walk_snapshot(const struct freshet_view *v)
{
	struct freshet_snapshot *snap;
	const struct freshet_entry *e;
	struct freshet_moment m;
	char path[300];
	const struct freshet_histogram *h;
	size_t n, at, columns, histograms;
	int r;

	if (freshet_snapshot_new(&snap))
		return;
	/* Twice: the second time its shape is there already. */
	r = freshet_snapshot_take(snap, v);
	WALK_CHECK(walk_known(r));
	WALK_CHECK(freshet_snapshot_take(snap, v) == r);
	freshet_stats(v, &columns);
	h = freshet_histograms(v, &histograms);
	freshet_snapshot_moment(snap, &m);
	n = freshet_snapshot_count(snap);
	e = freshet_snapshot_entries(snap);
	WALK_CHECK(r == 0 || n == 0);
	for (size_t i = 0; i < n; i++) {
		volatile uint64_t sum = 0; /* so that every value is read */

		WALK_CHECK(e[i].size >= 1 && e[i].size <= n - i);
		WALK_CHECK(i ? e[i].parent < i : e[i].size == n && e[i].parent == 0);
		if (i)
			WALK_CHECK(e[i].depth == e[e[i].parent].depth + 1 &&
				   i + e[i].size <= e[i].parent + e[e[i].parent].size);
		for (size_t c = 0; c < columns; c++)
			sum = sum + e[i].values[c];
		for (size_t c = 0; c < histograms; c++)
			sum = sum + freshet_quantile(&h[c], e[i].values + h[c].word, 0.5) +
			      e[i].values[h[c].word + h[c].buckets];
		WALK_CHECK(e[i].group.generation != 0);
		r = freshet_snapshot_path(snap, i, path, sizeof(path));
		WALK_CHECK(walk_known(r));
		if (r == 0 && freshet_snapshot_find(snap, path, &at) == 0)
			WALK_CHECK(at <= i && !strcmp(e[at].name, e[i].name));
	}
	freshet_snapshot_free(snap);
}

/* What freshet_attach_fd() said. */
static int walk_segment(int fd)
{
	struct freshet_producer_info info;
	const struct freshet_histogram *histograms;
	const struct freshet_stat *stats;
	struct freshet_view *v;
	struct freshet_group g;
	struct freshet_moment m;
	size_t columns, n;
	uint64_t age;
	int r;

	r = freshet_attach_fd(fd, &v);
	if (r)
		return r;
	stats = freshet_stats(v, &columns);
	for (size_t i = 0; i < columns; i++)
		WALK_CHECK(strlen(stats[i].help) < 1 << 20 &&
			   freshet_stat_index(v, stats[i].family, stats[i].key) <= (int)i);
	histograms = freshet_histograms(v, &n);
	for (size_t i = 0; i < n; i++)
		WALK_CHECK(strlen(histograms[i].help) < 1 << 20 && histograms[i].buckets > 1 &&
			   histograms[i].word >= columns);
	WALK_CHECK(freshet_is_live(v) || n == 0);
	WALK_CHECK(freshet_producer_info(v, &info) == 0 && strlen(info.name) < sizeof(info.name));
	WALK_CHECK(freshet_producer(v) > 0);
	WALK_CHECK(walk_known(freshet_last_pass(v, &m)));
	WALK_CHECK(walk_known(freshet_age(v, &age)));
	WALK_CHECK(walk_known(freshet_root(v, &g)));
	WALK_CHECK(walk_known(freshet_find(v, "/a/b", &g)));
	WALK_CHECK(walk_known(freshet_find(v, "c", &g)));
	WALK_CHECK(freshet_refresh(v, 0, 0) == -EOPNOTSUPP);
	for (g.slot = 0; g.slot < 12; g.slot++)
		for (g.generation = 0; g.generation < 3; g.generation++)
			walk_group(v, g);
	g.slot = UINT32_MAX;
	walk_group(v, g);
	walk_snapshot(v);
	freshet_detach(v);
	return 0;
}

#endif
