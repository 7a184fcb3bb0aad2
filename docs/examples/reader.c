/* SPDX-License-Identifier: MIT */
/*
 * Another process reads a program's tree, or the host collector's: one group's numbers, and a
 * snapshot of all groups. Reading costs the producer nothing, needs no request and no lock, and goes
 * on when the producer has stopped or died: ask whether it lives.
 *
 *   cc -O2 reader.c -o reader $(pkg-config --cflags --libs freshet)
 *   ./reader FILE /acme     FILE as watched.c prints it: /run/freshet/words, if root runs that
 */
#include <freshet/freshet.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

static void print(const char *path, const struct freshet_stat *stat, uint64_t value)
{
	if (stat->kind == FRESHET_GAUGE)
		printf("%s %s.%s %lld\n", path, stat->family, stat->key, (long long)value);
	else
		printf("%s %s.%s %llu\n", path, stat->family, stat->key, (unsigned long long)value);
}

static void print_group(const struct freshet_view *view, const char *path)
{
	uint64_t values[FRESHET_MAX_STATS], present;
	const struct freshet_stat *stats;
	struct freshet_group group;
	size_t n;

	stats = freshet_stats(view, &n);
	check(freshet_find(view, path, &group), path);
	check(freshet_read(view, group, 0, (unsigned)n, values, &present, NULL), path);
	for (size_t i = 0; i < n; i++)
		if (present >> i & 1)
			print(path, &stats[i], values[i]);
}

static void print_all(const struct freshet_view *view)
{
	const struct freshet_stat *stats;
	const struct freshet_entry *entries;
	struct freshet_snapshot *snap;
	char path[FRESHET_PATH_MAX];
	size_t n;

	stats = freshet_stats(view, &n);
	check(freshet_snapshot_new(&snap), "snapshot");
	check(freshet_snapshot_take(snap, view), "snapshot");
	entries = freshet_snapshot_entries(snap);
	for (size_t i = 0; i < freshet_snapshot_count(snap); i++) {
		check(freshet_snapshot_path(snap, i, path, sizeof(path)), "path");
		if (entries[i].present & 1)
			print(path, &stats[0], entries[i].values[0]);
	}
	freshet_snapshot_free(snap);
}

int main(int argc, char **argv)
{
	struct freshet_producer_info info;
	struct freshet_view *view;
	int alive;

	if (argc != 3) {
		fprintf(stderr, "usage: reader SEGMENT PATH\n");
		return 2;
	}
	check(freshet_attach(argv[1], &view), argv[1]);
	check(alive = freshet_producer(view), "producer");
	check(freshet_producer_info(view, &info), "producer");
	printf("%s is %s\n", info.name, alive == FRESHET_ALIVE ? "alive" : "gone");
	print_group(view, argv[2]);
	print_all(view);
	freshet_detach(view);
	return 0;
}
