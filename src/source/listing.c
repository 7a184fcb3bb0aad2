/* SPDX-License-Identifier: MIT */
/* Implements listing.h with getdents, which names types and inode numbers: no entry is looked at.
 */
#include "source/listing.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int add(struct listing *l, const struct dirent64 *d)
{
	if (l->count == l->capacity) {
		size_t capacity = l->capacity ? 2 * l->capacity : 64;
		struct listing_entry *more = realloc(l->entry, capacity * sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->entry = more;
		l->capacity = capacity;
	}
	l->entry[l->count++] = (struct listing_entry){ d->d_ino, l->names.len };
	buf_add(&l->names, d->d_name, strlen(d->d_name) + 1);
	return l->names.error;
}

static int by_ino(const void *a, const void *b)
{
	uint64_t x = ((const struct listing_entry *)a)->ino;
	uint64_t y = ((const struct listing_entry *)b)->ino;

	return (x > y) - (x < y);
}

int listing_read(struct listing *l, int dir)
{
	_Alignas(struct dirent64) char block[8192];
	ssize_t n;
	int r;

	l->count = 0;
	l->has_cpu_stat = false;
	buf_clear(&l->names);
	if (lseek(dir, 0, SEEK_SET) < 0)
		return -errno;
	while ((n = getdents64(dir, block, sizeof(block))) > 0) {
		const struct dirent64 *d;

		for (const char *p = block; p < block + n; p += d->d_reclen) {
			d = (const struct dirent64 *)p;
			if (!strcmp(d->d_name, "cpu.stat"))
				l->has_cpu_stat = true;
			if (d->d_type != DT_DIR || !strcmp(d->d_name, ".") ||
			    !strcmp(d->d_name, ".."))
				continue;
			r = add(l, d);
			if (r < 0)
				return r;
		}
	}
	if (n < 0)
		return -errno;
	if (l->count)
		qsort(l->entry, l->count, sizeof(*l->entry), by_ino);
	return 0;
}

void listing_free(struct listing *l)
{
	free(l->entry);
	buf_free(&l->names);
}
