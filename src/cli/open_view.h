/* SPDX-License-Identifier: MIT */
/* Where ls, show and top get their numbers: a segment that is kept up to date, or else passes of
 * our own. One thread. */
#ifndef FRESHET_OPEN_VIEW_H
#define FRESHET_OPEN_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include <freshet/freshet.h>

#define OPEN_ANY_AGE UINT64_MAX

struct open_options {
	const char *segment; /* as --segment gives it, or NULL: the host's */
	const char *path;    /* as people write it, or NULL: "/" */
	uint64_t max_age_ns; /* or OPEN_ANY_AGE */
};

struct open_view {
	struct freshet_view *view;
	struct collector *collector;   /* ours, of the cgroup at prefix; NULL: somebody's segment */
	char prefix[FRESHET_PATH_MAX]; /* what the paths of the view lack: "" or "/a" */
	char target[FRESHET_PATH_MAX]; /* path in the view of what was asked for; it was there */
	char source[128];              /* for people: "freshet serve, pid 12" */
};

/*
 * The host's numbers come from the segment of a running serve. Without one, or when that one is
 * gone, stopped, too old for max_age_ns or does not know the path, one pass is made here, and a
 * line on stderr says so and why. Any other segment named must be there and fresh.
 * 0, or -errno after a line on stderr. May block: files, a pass, a refresh.
 */
int open_view(const struct open_options *options, struct open_view *ret);
void open_view_close(struct open_view *o);

/* freshet_attach(); and should that segment be cut short while it is read, this file is named. */
int open_view_attach(const char *file, struct freshet_view **ret);

/* SIGBUS from now on: guarded reads (view/guard.h) go on, any other of a segment that was cut short ends
 * the program with a message and EXIT_FAILED. */
void open_view_catch(void);

/* Path to show for the path in_view of the view. Always terminated, cut short to size. */
void open_view_path(const struct open_view *o, const char *in_view, char *buf, size_t size);

/*
 * Whether the producer counts as stopped: its last pass is older than three intervals and than two
 * seconds; or, however long the interval, than ten seconds, and no younger one comes within
 * timeout_ns of asking for it. One that promises no interval never does. 1, 0, or -errno. May block
 * for timeout_ns.
 */
int open_view_stopped(const struct freshet_view *view, uint64_t timeout_ns);

/* Says on stderr "freshet: PATH: REASON" with the path made safe; returns 1, for exit codes. */
int complain(const char *path, const char *reason);

#endif
