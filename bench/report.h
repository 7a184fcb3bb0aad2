/* SPDX-License-Identifier: MIT */
/*
 * What a bench found, kept until its end and then printed as JSON or as tables: the machine, rows
 * of named values, bars that were met or not, what else was expected of them, notes. One per process.
 */
#ifndef FRESHET_BENCH_REPORT_H
#define FRESHET_BENCH_REPORT_H

#include <stdbool.h>

#include "base/buf.h"

/* Describes the machine. bench: its name. measures: says on stderr when the machine is busy. */
void report_begin(const char *bench, bool measures);

/* A row begins; then its values in order, at most 32. Keys and texts are copied by pointer. A number
 * that is not finite is one that could not be had: null, or "-" in tables. */
void report_row(void);
void report_text(const char *key, const char *value);
void report_number(const char *key, double value, int decimals);

/*
 * Several narrow tables instead of one: rows with the same values of all keys of `group` stand together
 * below a line that says them (numbers), in `count` tables of the columns that each one names. JSON has the rows
 * as ever. Keys end with NULL; all is kept by pointer. Each row has all those keys.
 */
struct report_table {
	const char *title;
	const char *const *keys;
};
void report_tables(const char *const *group, const struct report_table *tables, int count);

/* An array of numbers. */
void report_numbers(const char *key, const double *values, int count, int decimals);

/*
 * What a plot draws and no table shows, in the JSON alone: the points (x, y) of the line that is
 * called `line`, in the plot that is called `plot`. Texts are copied by pointer; points are copied,
 * but those that could not be had, of which a number is not finite.
 */
void report_line(const char *plot, const char *line, const double *x, const double *y, int count);

/* A goal of Freshet's. unit: what stands behind the numbers ("x", " %", " ms"). */
enum report_bar { BAR_BELOW, BAR_AT_LEAST };
__attribute__((format(printf, 5, 6))) void report_bar(enum report_bar kind, double value,
						      double limit, const char *unit,
						      const char *what, ...);

/* What a design is said to do, also where it is bad: no goal, but it shows that the bench can see it. */
__attribute__((format(printf, 5, 6))) void report_check(enum report_bar kind, double value,
							double limit, const char *unit,
							const char *what, ...);

/* A sentence about how it was measured; the text is copied. */
__attribute__((format(printf, 1, 2))) void report_note(const char *format, ...);

/* Lines that stand between tables and notes, and not in the JSON. Takes what the buffer has. At most
 * one. */
void report_picture(struct buf *text);

/* Prints all of it on stdout. 0, or 1 after a message. */
int report_print(bool json);

#endif
