/* SPDX-License-Identifier: MIT */
/* The screen of `freshet top` (ncurses): draws a top_model and turns keys into calls of it. One in
 * a process; one thread. */
#ifndef FRESHET_TOP_SCREEN_H
#define FRESHET_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "view/top_model.h"

/* What the head of the screen says beside the model. Strings are the caller's. */
struct top_status {
	const char *host;
	const char *source; /* "freshet serve" */
	const char *root;   /* path of the model's first group */
	uint64_t age_ns;
	uint64_t left_out; /* groups that found no room in the segment */
	const char *stale; /* why the numbers are not current, or NULL */
	unsigned cpus;
};

/* Takes the terminal over; the locale must be set. -ENOTTY: ncurses does not know this terminal. */
int top_screen_open(bool colour);
void top_screen_close(void);

void top_screen_draw(struct top_model *m, const struct top_status *status);

/* Waits at most timeout_ms for a key and obeys it: 1, and the screen is to be drawn again; 0: none
 * came; -ECANCELED: the user or the terminal is gone. */
int top_screen_key(struct top_model *m, int timeout_ms);

#endif
