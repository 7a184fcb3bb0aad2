/* SPDX-License-Identifier: MIT */
/*
 * What the stress tests share: options, random numbers, a tree, and sums of what was added.
 * Every program takes --backend rseq|fallback, --seconds N, --seed N and the name of one test.
 */
#ifndef STRESS_H
#define STRESS_H

#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <freshet/freshet.h>

#include "base/atomics.h"
#include "base/clock.h"

static struct stress {
	enum freshet_backend backend;
	uint64_t ns; /* of a test that could go on for ever */
	uint64_t seed;
} stress = { .backend = FRESHET_AUTO };

enum { OPS, BUSY, A, B, C, STATS };

static const struct freshet_stat stress_stats[STATS] = {
	{ "test", "ops", NULL, "", FRESHET_COUNTER, FRESHET_COUNT, 0 },
	{ "test", "busy", NULL, "", FRESHET_GAUGE, FRESHET_COUNT, 0 },
	{ "test", "a", NULL, "", FRESHET_COUNTER, FRESHET_COUNT, 1 },
	{ "test", "b", NULL, "", FRESHET_COUNTER, FRESHET_COUNT, 1 },
	{ "test", "c", NULL, "", FRESHET_COUNTER, FRESHET_COUNT, 1 },
};
static const struct freshet_histogram stress_histogram = {
	"test", "size", NULL, "", FRESHET_BYTES, 1, 0, 6, 0, 0,
};
static const struct freshet_schema stress_schema = {
	.size = sizeof(stress_schema),
	.stats = stress_stats,
	.nstats = STATS,
	.histograms = &stress_histogram,
	.nhistograms = 1,
};

__attribute__((unused)) static int stress_open(const char *path, unsigned groups,
					       unsigned fallback_slots, struct freshet_tree **ret)
{
	const struct freshet_options o = { .size = sizeof(o),
					   .producer = "stress",
					   .max_groups = groups,
					   .backend = stress.backend,
					   .fallback_slots = fallback_slots };

	return freshet_open(path, &stress_schema, &o, ret);
}

__attribute__((unused)) static uint64_t stress_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* One number of a group, fresh. UINT64_MAX if it cannot be read. */
__attribute__((unused)) static uint64_t stress_read(const struct freshet_view *v,
						    struct freshet_group g, unsigned stat)
{
	uint64_t value, present;
	int r = freshet_read(v, g, stat, 1, &value, &present, NULL);

	EXPECT(r == 0, "read: %d", r);
	return r ? UINT64_MAX : value;
}

__attribute__((unused)) static void stress_nap(uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / NSEC_PER_SEC),
				    .tv_nsec = (long)(ns % NSEC_PER_SEC) };

	nanosleep(&t, NULL);
}

/* A new directory of our own, and a path in it; stress_remove() takes both away. */
static char stress_dir[64], stress_path[128];

__attribute__((unused)) static void stress_make_path(void)
{
	strcpy(stress_dir, "/tmp/freshet-stress.XXXXXX");
	if (!mkdtemp(stress_dir)) {
		perror("mkdtemp");
		exit(1);
	}
	snprintf(stress_path, sizeof(stress_path), "%s/tree", stress_dir);
}

__attribute__((unused)) static void stress_remove(void)
{
	char other[160];

	unlink(stress_path); /* of a process that was killed */
	snprintf(other, sizeof(other), "%s.lock", stress_path);
	unlink(other);
	snprintf(other, sizeof(other), "%s.new", stress_path);
	unlink(other);
	EXPECT(rmdir(stress_dir) == 0, "%s: %s", stress_dir, strerror(errno));
}

static int stress_main(int argc, char **argv, double seconds)
{
	const char *only = NULL;

	stress.ns = (uint64_t)(seconds * NSEC_PER_SEC);
	stress.seed = clock_ns() | 1;
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (argv[i][0] != '-') {
			only = argv[i];
			continue;
		}
		i++;
		if (!strcmp(argv[i - 1], "--seconds"))
			stress.ns = strtoull(value, NULL, 10) * NSEC_PER_SEC;
		else if (!strcmp(argv[i - 1], "--seed"))
			stress.seed = strtoull(value, NULL, 10) | 1;
		else if (!strcmp(argv[i - 1], "--backend"))
			stress.backend = !strcmp(value, "rseq") ? FRESHET_RSEQ : FRESHET_FALLBACK;
		else
			return 2;
	}
	printf("# --seed %llu\n", (unsigned long long)stress.seed);
	return tap_run(only);
}

#define STRESS_MAIN(seconds)                             \
	int main(int argc, char **argv)                  \
	{                                                \
		return stress_main(argc, argv, seconds); \
	}

#endif
