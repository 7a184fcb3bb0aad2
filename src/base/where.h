/* SPDX-License-Identifier: MIT */
/* Where segments live: the one rule that `serve` and all who read it share. */
#ifndef FRESHET_WHERE_H
#define FRESHET_WHERE_H

#include <stddef.h>

#define WHERE_DEFAULT "host" /* the segment that `serve` keeps unless told otherwise */

/*
 * File of the segment called name: /run/freshet/NAME for root, $XDG_RUNTIME_DIR/freshet/NAME
 * otherwise, /tmp/freshet-UID/NAME where that is not set. A name with a slash in it is a file name
 * already and is taken as it is.
 * -EINVAL: no name (letters, digits, '.', '_', '-'; no '.' in front, nor ".new" or ".lock" behind);
 * -EPERM: /tmp/freshet-UID is there and is somebody else's; -ENAMETOOLONG.
 */
int where_segment(const char *name, char *buf, size_t size);

/* The same for a given $XDG_RUNTIME_DIR (NULL, or not absolute: not set). */
int where_segment_in(const char *name, const char *runtime_dir, char *buf, size_t size);

/* Where segments of the superuser's `serve` are, whoever asks: /run/freshet/NAME. */
int where_system_segment(const char *name, char *buf, size_t size);

/* Makes the directory of the file (mode 0755, its parent must be there). 1: it is new; 0: it was
 * there; -errno. */
int where_make_directory(const char *file);

/* Removes the directory of the file if it is empty. */
void where_remove_directory(const char *file);

#endif
