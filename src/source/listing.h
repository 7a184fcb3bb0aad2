/* SPDX-License-Identifier: MIT */
/* The subdirectories of a cgroup's directory, in a buffer that is used again for each listing. */
#ifndef FRESHET_LISTING_H
#define FRESHET_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct listing {
	struct listing_entry {
		uint64_t ino;
		size_t name_at; /* see listing_name() */
	} *entry;               /* by ino, which is the order in which cgroups were made */
	size_t count;
	bool has_cpu_stat;      /* a file of that name is there */
	size_t capacity;
	struct buf names;
};

/* Reads the directory open as dir. -ENOENT: it was removed; -ENOMEM; other errors of getdents. */
int listing_read(struct listing *l, int dir);

static inline const char *listing_name(const struct listing *l, size_t i)
{
	return l->names.data + l->entry[i].name_at;
}

void listing_free(struct listing *l);

#endif
