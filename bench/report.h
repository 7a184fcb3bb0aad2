/* SPDX-License-Identifier: MIT */
/*
 * What a bench found, kept until its end and then printed as JSON or as tables: the machine, rows
 * of named values, bars that were met or not, notes. One per process.
 */
#ifndef FRESHET_BENCH_REPORT_H
#define FRESHET_BENCH_REPORT_H

#include <stdbool.h>

/* Describes the machine; says on stderr when it is busy. bench: its name. */
void report_begin(const char *bench);

/* A row begins; then its values in order. Keys and texts are copied by pointer. */
void report_row(void);
void report_text(const char *key, const char *value);
void report_number(const char *key, double value, int decimals);

enum report_bar { BAR_BELOW, BAR_AT_LEAST };
/* unit: what stands behind the numbers ("x", " %", " ms"). */
__attribute__((format(printf, 5, 6))) void report_bar(enum report_bar kind, double value,
						      double limit, const char *unit,
						      const char *what, ...);

/* A sentence about how it was measured; the text is copied. */
__attribute__((format(printf, 1, 2))) void report_note(const char *format, ...);

/* Prints all of it on stdout. 0, or 1 after a message. */
int report_print(bool json);

#endif
