/* SPDX-License-Identifier: MIT */
/* The segments that lie where segments live, and what is the matter with each: for `ls --segments` and
 * `doctor`. One thread. */
#ifndef FRESHET_FOUND_H
#define FRESHET_FOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <freshet/freshet.h>

enum found_state {
	FOUND_LIVE,       /* a program's tree: its numbers are those of now */
	FOUND_CURRENT,    /* published in passes, the last one age_ns ago */
	FOUND_STOPPED,    /* its producer does not publish any more */
	FOUND_ENDED,      /* its producer has ended: the file is what is left of it */
	FOUND_UNREADABLE, /* error says why; nothing else is known */
};

extern const char *const found_state_names[];

struct found {
	char file[2 * FRESHET_PATH_MAX];
	const char *name; /* in file */
	enum found_state state;
	int error;
	struct freshet_producer_info info;
	uint32_t groups;
	uint64_t age_ns;
};

/* In the order of directories and names; a line on stderr for a directory that holds more files than are
 * looked at. The caller frees *ret. 0 or -errno. */
int found_all(struct found **ret, size_t *count);

#endif
