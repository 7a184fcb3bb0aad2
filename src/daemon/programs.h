/* SPDX-License-Identifier: MIT */
/*
 * Segments of programs that `serve` shows beside its own: those in the directories where segments live
 * that belong to its own user or the superuser, and all in directories that it was told of. They come,
 * end and restart as they like; what cannot be shown is said once. The loop's thread.
 */
#ifndef FRESHET_PROGRAMS_H
#define FRESHET_PROGRAMS_H

struct daemon;
struct programs;

/* directories: further ones, with ':' between them, or "". 0 or -ENOMEM. */
int programs_new(const char *directories, struct programs **ret);

/* Looks what has come and what is gone. Once a second or so. */
void programs_look(struct programs *p, const struct daemon *d);

/* Behind http_stop(). NULL is fine. */
void programs_free(struct programs *p);

#endif
