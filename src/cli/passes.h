/* SPDX-License-Identifier: MIT */
/* A view's passes, one after the other, into a top_model: what ls takes once and top again and
 * again. One thread. */
#ifndef FRESHET_PASSES_H
#define FRESHET_PASSES_H

#include <stdbool.h>

#include "cli/open_view.h"
#include "view/top_model.h"

enum passes_lack {
	PASSES_CURRENT,
	PASSES_NO_PRODUCER, /* it has ended: another may take its place */
	PASSES_STOPPED,     /* it does not publish any more */
	PASSES_FAILED,      /* neither waiting nor another producer would help */
};

struct passes {
	struct open_view open;
	struct freshet_snapshot *snapshot;
	size_t first;               /* entry of what was asked for */
	struct top_columns columns; /* of the segment that the view is attached to */
	struct open_options options;
	char stale[128];       /* why the last pass must not be taken for current, or "" */
	enum passes_lack lack; /* the same for programs */
	uint64_t lack_ns;      /* since when it is PASSES_NO_PRODUCER; else 0 */
	bool anew;             /* the last pass was the first of another producer */
	uint8_t identity[16];
	uint64_t left_out;   /* groups of the last pass that found no room in the segment */
	uint32_t max_groups; /* that room */
};

/* 0, or -errno after a line on stderr. */
int passes_open(const struct open_options *options, struct passes *ret);
void passes_close(struct passes *p);

/*
 * Makes a pass, when they are ours, or looks at the producer's last one, and gives it to the model:
 * as top_model_pass(). A producer that restarted is followed. What goes wrong with the producer or
 * the group asked for is no error: it is in p->stale and the model keeps what it has.
 */
int passes_take(struct passes *p, struct top_model *m);

/*
 * The same, but waits until the pass is news to the model. A producer that ended is given some
 * seconds to come back; when none did, or it is stopped, passes come from where open_view() finds
 * them now, after its line on stderr. One that takes no requests is waited for until its next pass
 * by the clock. 1: news; 0: there are none, p->stale says why; -ENOMEM; -ECANCELED: a line on
 * stderr has said why.
 */
int passes_take_news(struct passes *p, struct top_model *m);

/* Says on stderr what the last pass lacks, if anything. */
void passes_say_left_out(const struct passes *p);

/* Age of the pass taken last. 0: none yet. */
uint64_t passes_age(const struct passes *p);

#endif
