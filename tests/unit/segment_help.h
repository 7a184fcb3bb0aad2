/* SPDX-License-Identifier: MIT */
/* What the tests of segments share: columns, trees, numbers that tell from which pass they are. */
#ifndef SEGMENT_HELP_H
#define SEGMENT_HELP_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/writer.h"

#define COLUMNS 3u

static const struct freshet_stat help_stats[COLUMNS] = {
	{ "cpu", "usage", "usage_usec", "CPU time.", FRESHET_COUNTER, FRESHET_NANOSECONDS, 0 },
	{ "cpu", "user", "user_usec", "CPU time in user mode.", FRESHET_COUNTER,
	  FRESHET_NANOSECONDS, 0 },
	{ "memory", "current", "current", "Memory in use.", FRESHET_GAUGE, FRESHET_BYTES, 1 },
};

__attribute__((unused)) static struct writer_options help_options(unsigned max_groups)
{
	return (struct writer_options){
		.size = sizeof(struct writer_options),
		.producer = "test",
		.socket = "test.sock",
		.stats = help_stats,
		.nstats = COLUMNS,
		.max_groups = max_groups,
		.interval_ns = 1000000000,
	};
}

/* The number of column c of group id in pass p, different for all small ids and passes. */
__attribute__((unused)) static uint64_t help_value(uint64_t p, uint64_t id, unsigned c)
{
	return p * 1000003 + id * 7919 * 1000003 + c;
}

/* A whole pass: a shape if nodes are given, and every node's numbers. Returns its number. */
__attribute__((unused)) static uint64_t help_pass(struct writer *w, struct writer_node *nodes,
						  uint32_t count, int new_shape)
{
	static uint64_t clock = 1; /* any time that only grows */
	uint64_t values[COLUMNS];
	uint32_t overflowed;
	static uint64_t pass;
	static struct writer *last;

	if (w != last)
		pass = 0;
	last = w;
	pass++;
	writer_begin(w, clock++);
	if (new_shape)
		writer_shape(w, nodes, count, &overflowed);
	for (uint32_t i = 0; i < count; i++) {
		for (unsigned c = 0; c < COLUMNS; c++)
			values[c] = help_value(pass, nodes[i].id, c);
		if (nodes[i].slot != WRITER_NEW)
			writer_row(w, nodes[i].slot, values, 7);
	}
	return writer_publish(w, clock++);
}

/* A new directory of our own; free and remove_dir() it. */
__attribute__((unused)) static char *help_dir(void)
{
	const char *tmp = getenv("TMPDIR");
	char *dir;

	if (asprintf(&dir, "%s/freshet-test.XXXXXX", tmp ? tmp : "/tmp") < 0 || !mkdtemp(dir)) {
		perror("mkdtemp");
		exit(1);
	}
	return dir;
}

__attribute__((unused)) static char *help_path(const char *dir, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		exit(1);
	return path;
}

#endif
