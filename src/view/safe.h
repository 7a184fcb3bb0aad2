/* SPDX-License-Identifier: MIT */
/* Names of groups on a terminal: they come from anybody and may hold any byte. Pure. */
#ifndef FRESHET_SAFE_H
#define FRESHET_SAFE_H

#include <stdbool.h>

#include "base/buf.h"

/*
 * Appends s with control characters (C0, C1, DEL), characters that reorder or break lines, and
 * invalid UTF-8 as \xNN, byte by byte; ascii: everything beyond ASCII too. A backslash stays as it
 * is (systemd's names are full of them), so this is for eyes: programs take JSON.
 */
void safe_name(struct buf *b, const char *s, bool ascii);

#endif
