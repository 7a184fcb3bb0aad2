/* SPDX-License-Identifier: MIT */
/* What the commands' options have in common. One thread. */
#ifndef FRESHET_OPTIONS_H
#define FRESHET_OPTIONS_H

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>

/* The name that stands before messages ("freshet ls"), into argv[0]. */
void options_begin(char **argv);

/* As getopt_long(), but what is wrong is said with the arguments made safe, as everywhere here; then
 * '?'. No flags in options. */
int options_next(int argc, char **argv, const char *letters, const struct option *options);

/* Wrong usage: a line on stderr, made safe, and the hint. Returns EXIT_USAGE. */
int options_wrong(char **argv, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* After an error: "Try 'freshet ls --help'." on stderr. Returns EXIT_USAGE. */
int options_hint(char **argv);

/* An option's value that cannot be: says so and gives the hint. Returns EXIT_USAGE. */
int options_bad(char **argv, const char *option, const char *value, const char *wanted);

/* The value of --segment. 0, or EXIT_USAGE after a message when it names none. */
int options_segment(char **argv, const char *value, const char **ret);

/* At most one operand, and no empty one: *ret is it, or what it was. 0, or EXIT_USAGE after a
 * message. */
int options_path(int argc, char **argv, const char **ret);

/* A count from min to max. 0, or -EINVAL. */
int options_count(const char *text, uint32_t min, uint32_t max, uint32_t *ret);

/* Ends a command that has written to stdout: EXIT_OK, or EXIT_FAILED after a message. */
int options_written(void);

#endif
