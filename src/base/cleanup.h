/* SPDX-License-Identifier: MIT */
/* The cleanup attribute, for daemon, command line and tests (the core uses goto). */
#ifndef FRESHET_CLEANUP_H
#define FRESHET_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _free_       _cleanup_(cleanup_free)
#define _close_      _cleanup_(cleanup_close)

#endif
