/* SPDX-License-Identifier: MIT */
/* freshet ls --segments. */
#ifndef FRESHET_LS_SEGMENTS_H
#define FRESHET_LS_SEGMENTS_H

#include <stdbool.h>

/* Prints them. Returns the exit code. */
int ls_segments(bool json);

#endif
