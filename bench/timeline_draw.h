/* SPDX-License-Identifier: MIT */
/* Pictures of simulated designs (timeline_sim.h): a line for each actor, time to the right, all designs
 * on one axis. Pure; errors are the buffer's. */
#ifndef FRESHET_BENCH_TIMELINE_DRAW_H
#define FRESHET_BENCH_TIMELINE_DRAW_H

#include "base/buf.h"
#include "timeline_sim.h"

/* Lines of at most 80 columns. */
void timeline_text(struct buf *out, const struct timeline *t,
		   const struct timeline_run runs[TIMELINE_DESIGNS]);

/* A whole SVG file. Neither colours nor patterns need a background of their own: it can be white or
 * dark, on screen or in print. */
void timeline_svg(struct buf *out, const struct timeline *t,
		  const struct timeline_run runs[TIMELINE_DESIGNS]);

#endif
