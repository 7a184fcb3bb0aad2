/* SPDX-License-Identifier: MIT */
/*
 * Where the segment and the refresh socket lie, and that they stay there: somebody may remove them
 * under a running daemon (who cleans /run or /tmp), and readers that come later find nothing.
 * The loop's thread.
 */
#ifndef FRESHET_PLACE_H
#define FRESHET_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "source/collector.h"

struct daemon;

struct place {
	char path[4096];  /* of the segment */
	char socket[256]; /* file name of the refresh socket beside it */
	bool named;       /* the user gave a name: its directory is ours to make */
	bool made;        /* and we made it */
	bool lost;        /* the segment is not at its path now */
	char why[512];    /* it could not be made anew */
	struct collector_options options;
};

/* Makes the directory if it is ours to make. 0 or -errno. */
int place_directory(struct place *p);

/* Opens the refresh socket; without it passes go on by the clock, and that is said. */
void place_socket(struct daemon *d);

/* Once a second: what is gone is made anew, or is tried again the next time; says what happens. */
void place_check(struct daemon *d);

/* At the end, behind everything else: the directory goes if we made it and it is empty. */
void place_leave(struct place *p);

#endif
