/* SPDX-License-Identifier: MIT */
/* A view's passes, one after the other, into a top_model: what ls takes once and top again and
 * again. One thread. */
#ifndef FRESHET_PASSES_H
#define FRESHET_PASSES_H

#include <stdbool.h>

#include "cli/open_view.h"
#include "view/top_model.h"

struct passes {
	struct open_view open;
	struct freshet_snapshot *snapshot;
	size_t first;    /* entry of what was asked for */
	char stale[128]; /* why the last pass must not be taken for current, or "" */
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

/* Waits for a pass that began at most max_age_ns ago, if they are the producer's. May block. */
int passes_refresh(struct passes *p, uint64_t max_age_ns, uint64_t timeout_ns);

/* Says on stderr what the last pass lacks, if anything. */
void passes_say_left_out(const struct passes *p);

/* Age of the pass taken last. 0: none yet. */
uint64_t passes_age(const struct passes *p);

#endif
