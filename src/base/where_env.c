/* SPDX-License-Identifier: MIT */
/* The part of where.h that asks the environment: not in the library. */
#include <stdlib.h>

#include "base/where.h"

int where_segment(const char *name, char *buf, size_t size)
{
	return where_segment_in(name, getenv("XDG_RUNTIME_DIR"), buf, size);
}
