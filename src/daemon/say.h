/* SPDX-License-Identifier: MIT */
/* What `freshet serve` says to people, on stderr. */
#ifndef FRESHET_SAY_H
#define FRESHET_SAY_H

/*
 * One line, without its newline, at most 8 KiB. Arguments and paths in it may hold any byte: control
 * characters and what is no UTF-8 come out as \xNN. Any thread.
 */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
