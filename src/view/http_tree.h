/* SPDX-License-Identifier: MIT */
/*
 * A segment as the HTTP server shows it: a snapshot, and what was rendered of that one.
 *
 * A tree that is published in passes is copied once a pass. A live one (freshet_is_live()) has other
 * numbers at any moment: it is copied anew when somebody asks and the last copy is TREE_LIVE_NS old,
 * or TREE_LIVE_SHARE times as long as that copy and its renderings took; until then all who ask share
 * it.
 *
 * A copy that fails is tried again no sooner either. Until one works the last good one is shown, unless
 * the producer is gone or damage was found.
 *
 * Segments of programs are not believed: reads of them are guarded (guard.h), and a copy or a text that
 * takes more than TREE_BYTES_MAX, or a copy that takes longer than TREE_COPY_NS, is not made. All
 * copies together take at most TREES_BYTES_MAX, and all texts of one answer TREE_BYTES_MAX: who comes
 * later has to do with what is left (http_programs.c).
 *
 * The server's thread, while it holds http.view_lock.
 */
#ifndef FRESHET_HTTP_TREE_H
#define FRESHET_HTTP_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include <freshet/freshet.h>

#include "base/clock.h"
#include "view/claims.h"
#include "view/http_body.h"
#include "view/json.h"
#include "view/openmetrics.h"

#define TREE_LIVE_NS    (10 * NSEC_PER_MSEC)
#define TREE_LIVE_SHARE 4u
#define TREE_BYTES_MAX  (64u << 20)
#define TREE_COPY_NS    (250 * NSEC_PER_MSEC)
#define TREES_BYTES_MAX (128u << 20)

struct tree {
	char name[FRESHET_NAME_MAX + 1];
	char prefix[FRESHET_NAME_MAX + 16]; /* of its metrics */
	bool program;                       /* it is somebody else's: the view is ours to detach */
	bool live;
	struct freshet_view *view;
	struct metrics_schema metrics;
	struct json_schema json;
	struct claims claims; /* names of its metrics */

	struct freshet_snapshot *snapshot;
	bool spoilt;                  /* it is of a read that failed, or of a former view */
	struct freshet_moment moment; /* of the snapshot */
	uint64_t copies;              /* so far; the cache is of the last one */
	uint64_t copied_ns;           /* when the last try began */
	uint64_t cost_ns;             /* of it, and of renderings */
	struct body_cache cache;
	size_t body_bytes; /* of the largest body that is up to date */
	int error;         /* of the last try to copy, or that it had no room for its text */

	struct tree *next;
};

/* Takes the view over on success if it is a program's. prefix NULL: that of a program's segment. The
 * metrics' names are claimed by the caller. -ENOMEM. */
int tree_new(const char *name, const char *prefix, bool program, const struct freshet_view *view,
	     struct tree **ret);
void tree_free(struct tree *t);

/* Frees a program's tree but for its bodies, which are the server's thread's: true, and that thread
 * calls tree_free(); false: there are none, and nothing is left. Who holds http.view_lock. */
bool tree_retire(struct tree *t);

/* The same segment under another view, which was made anew. */
void tree_view(struct tree *t, const struct freshet_view *view);

/* Brings the snapshot and the cache up to date, as far as can be. As tree_error(). */
int tree_catch_up(struct tree *t);

/* 0: it can be shown. -ENODEV: the producer has ended; -E2BIG, -EIO. Without any copy yet -EAGAIN,
 * -ENOMEM, ..., too. */
int tree_error(const struct tree *t);

/* The segment's last pass, which the snapshot need not be of. 0, -EIO, -EAGAIN. */
int tree_last_pass(const struct tree *t, struct freshet_moment *ret);

/* Groups that there are. 0 or -EIO. */
int tree_groups(const struct tree *t, uint32_t *ret);

/* Age of the snapshot's numbers. */
uint64_t tree_age(const struct tree *t);

/* What is asked for, apart from the encoding. */
struct rendering {
	bool metrics; /* else JSON */
	enum metrics_format format;
	const char *path;
	uint32_t depth;
	size_t at; /* entry of the path, once it was looked up */
};

/* Looks the path up in the snapshot, so that all ways to write one request share one rendering.
 * -ENOENT: no such group. */
int tree_look_up(const struct tree *t, struct rendering *what);

/* The body if it was rendered before, for the caller to keep a reference; or NULL. *plain: the same
 * uncompressed, or NULL. */
struct body *tree_cached(struct tree *t, const struct rendering *what, bool gzip,
			 struct body **plain);

/* Renders it in room bytes (0: any), and compresses it if gzip; the caller gets a reference. plain: what
 * tree_cached() gave. *rendered grows by the bytes rendered. 0, -ENOMEM or -E2BIG. */
int tree_render(struct tree *t, const struct rendering *what, bool gzip, struct body *plain,
		size_t room, size_t *live, uint64_t *rendered, struct body **ret);

#endif
