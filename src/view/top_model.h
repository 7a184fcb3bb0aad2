/* SPDX-License-Identifier: MIT */
/*
 * What `freshet top` shows, without a screen: passes of a tree go in, rows with rates come out.
 *
 * Pure: no clock, no terminal, no segment; times are those of the passes. One thread.
 *
 * A group is known by its id across passes and across restarts of the producer: folds and the
 * selection follow it.
 *
 * Rates are the difference to an earlier pass, the base, which is at least TOP_SPAN_NS older (and
 * percentiles are of what was observed since): CPU
 * time moves in steps of up to a scheduler tick, 10 ms, and over less time one step would look like
 * more CPUs than there are. A pass that is that much younger than the base gives rates and is the
 * next base; those in between bring values, and rates stay as they are. A rate is void (NaN, shown
 * as "-") before there is a base, for a group that is not in it, for a counter that fell, and after
 * a producer's restart.
 */
#ifndef FRESHET_TOP_MODEL_H
#define FRESHET_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <freshet/freshet.h>

#include "base/buf.h"
#include "view/top_columns.h"

#define TOP_SPAN_NS 100000000ull /* the shortest time that rates are taken over */

/* One pass as the model takes it. Copied; nothing is kept of it. */
struct top_pass {
	const struct freshet_entry *entries; /* pre-order, as a snapshot has them */
	size_t first;                        /* the subtree's root; its `size` says how many */
	const struct top_columns *columns;   /* the same as long as the identity is */
	struct freshet_moment moment;
	uint8_t identity[16]; /* of the producer */
};

/* A number of a group. */
struct top_cell {
	double number;  /* as it is shown and sorted by; NaN: there is none */
	uint64_t value; /* of the pass; of a histogram: what `number` is */
	uint64_t base;  /* value in the base; the model's own */
	bool present;
	bool in_base;
};

struct top_group {
	uint64_t id;
	const char *name;
	uint32_t parent;       /* position; of the first: 0 */
	uint32_t size;         /* of its subtree, itself included */
	uint32_t depth;        /* 0 for the first */
	struct top_cell *cell; /* by column */
	uint64_t *buckets;     /* of all its histograms, in the base; the model's own */
	bool folded;
	bool matched; /* the filter's text is in its path; true without a filter */
};

struct top_row {
	uint32_t group;
	uint32_t parent; /* row; of the first: 0. Flat: 0 */
	bool last;       /* among the rows of its siblings */
};

struct top_model;

int top_model_new(struct top_model **ret); /* 0 or -ENOMEM */
void top_model_free(struct top_model *m);

/*
 * Takes a pass. 1: it is news; 0: the same pass again, everything stays; -ENOMEM: everything stays.
 * Rows are built anew.
 */
int top_model_pass(struct top_model *m, const struct top_pass *pass);

/* Groups of the last pass, in its order, and rows as they are to be shown. The model's, until the
 * next call that changes it. */
const struct top_group *top_model_groups(const struct top_model *m, size_t *count);
const struct top_row *top_model_rows(const struct top_model *m, size_t *count);

/* Path of a group below the model's first one: "" for that, else "/a/b"; "..." and its last parts
 * when it does not fit into FRESHET_PATH_MAX. Always terminated, cut short to size. */
void top_model_path(const struct top_model *m, uint32_t group, char *buf, size_t size);

/* The lines that lead to a row's name in a tree, two columns a level ("│ ├╴"), appended to b; of the
 * deepest `levels` levels only. Nothing for the first row and in flat order. */
void top_model_guides(const struct top_model *m, size_t row, unsigned levels, bool ascii,
		      struct buf *b);

/* Columns of the last pass; NULL before there was one. */
const struct top_columns *top_model_columns(const struct top_model *m);

/* How rows are made of groups. Each rebuilds the rows. by: a column's number, or TOP_BY_NAME; the
 * first column where the last pass has no such one. */
void top_model_sort(struct top_model *m, int by, bool reverse);
int top_model_sorted_by(const struct top_model *m, bool *reverse);
void top_model_flat(struct top_model *m, bool flat);
bool top_model_is_flat(const struct top_model *m);
/* Shows groups whose path has text in it (letters' case is not looked at), in a tree their
 * ancestors too, and folds do not count; "" or NULL: all. */
void top_model_filter(struct top_model *m, const char *text);
const char *top_model_filtered(const struct top_model *m);
/* Folds or unfolds the selected row; of a row without descendants: nothing. */
void top_model_fold(struct top_model *m);

/* The selected row. A selection whose group vanished stays at its place on the screen; one that
 * was folded away goes to the nearest ancestor that is shown. */
size_t top_model_selected(const struct top_model *m);
void top_model_select(struct top_model *m, size_t row);
void top_model_move(struct top_model *m, long rows);

/* First row to show in a window of height rows, so that the selected one is in it and the window
 * moves as little as possible. */
size_t top_model_scroll(struct top_model *m, size_t height);

#endif
