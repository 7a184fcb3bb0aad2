/* SPDX-License-Identifier: MIT */
/*
 * Attaching to a segment: everything that describes it is copied and checked here, once, so that
 * reads can trust `struct freshet_view` and need to check only what a pass can change.
 *
 * Invariant: the mapping is as long as the header says, which is no longer than the file; every
 * section lies inside it, behind the header, and none over another.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "base/fds.h"
#include "core/bank.h"
#include "core/segment.h"
#include "core/view.h"
#include "core/words.h"

#define STRINGS_MAX (1u << 20)

static void view_release(struct freshet_view *v)
{
	if (v->header)
		munmap((void *)(uintptr_t)v->header, v->fixed.size);
	if (v->fd >= 0)
		close(v->fd);
	free(v->strings);
	free(v->parts);
	free(v->path);
}

/* The header's own fields. -EPROTO: not for us; -EIO: cannot be. */
static int check_header(const struct seg_header *h, uint64_t file_size)
{
	if (memcmp(h->magic, SEG_MAGIC, sizeof(h->magic)) || h->byteorder != SEG_BYTEORDER ||
	    h->version != SEG_VERSION)
		return -EPROTO;
	if (h->size < SEG_PAGE || h->size > file_size || h->size > SIZE_MAX)
		return -EIO;
	if (h->nsections > SEG_MAX_SECTIONS || h->nstats == 0 || h->nstats > FRESHET_MAX_STATS ||
	    h->max_groups == 0 || h->max_groups > SEG_MAX_GROUPS)
		return -EIO;
	if (h->nbanks < SEG_MIN_BANKS || h->nbanks > SEG_MAX_BANKS || h->nbanks & (h->nbanks - 1))
		return -EIO;
	if (h->row_stride % 8 || h->row_stride < sizeof(struct seg_row) + 8 * h->nstats)
		return -EIO;
	if (!memchr(h->producer, 0, sizeof(h->producer)) ||
	    !memchr(h->socket, 0, sizeof(h->socket)))
		return -EIO;
	return 0;
}

/* Where the sections lie, known or not. */
static int check_sections(const struct seg_header *h)
{
	for (uint32_t i = 0; i < h->nsections; i++) {
		const struct seg_section *a = &h->section[i];

		if (a->offset % SEG_PAGE || a->offset < SEG_PAGE || a->offset > h->size ||
		    a->size > h->size - a->offset)
			return -EIO;
		for (uint32_t j = 0; j < i; j++) {
			const struct seg_section *b = &h->section[j];

			if (a->type == b->type)
				return -EIO;
			if (a->offset < b->offset + b->size && b->offset < a->offset + a->size)
				return -EIO;
		}
	}
	return 0;
}

const struct seg_section *view_section(const struct freshet_view *v, uint32_t type, uint32_t count,
				       uint64_t element)
{
	const struct seg_header *h = &v->fixed;

	for (uint32_t i = 0; i < h->nsections; i++) {
		const struct seg_section *s = &h->section[i];

		if (s->type != type)
			continue;
		if (s->count != count || s->stride % 8 || s->stride < element ||
		    s->stride > s->size / count)
			return NULL;
		return s;
	}
	return NULL;
}

int view_string(const struct freshet_view *v, uint64_t size, uint32_t offset, const char **ret)
{
	if (offset >= size || !memchr(v->strings + offset, 0, size - offset))
		return -EIO;
	*ret = v->strings + offset;
	return 0;
}

static int load_stats(struct freshet_view *v)
{
	const char *map = (const char *)v->header;
	const struct seg_section *stats =
		view_section(v, SEG_STATS, v->nstats, sizeof(struct seg_stat));
	const struct seg_section *strings = NULL;

	for (uint32_t i = 0; i < v->fixed.nsections; i++)
		if (v->fixed.section[i].type == SEG_STRINGS)
			strings = &v->fixed.section[i];
	if (!stats || !strings || strings->size == 0 || strings->size > STRINGS_MAX)
		return -EIO;

	v->strings = malloc(seg_round(strings->size, 8));
	if (!v->strings)
		return -ENOMEM;
	/* By words, because even what never changes might, in a hostile segment. */
	words_load(v->strings, map + strings->offset, strings->size / 8);
	for (uint64_t i = strings->size / 8 * 8; i < strings->size; i++)
		v->strings[i] = load_relaxed(map + strings->offset + i);

	for (uint32_t i = 0; i < v->nstats; i++) {
		struct freshet_stat *t = &v->stats[i];
		_Alignas(8) struct seg_stat s;

		words_load(&s, map + stats->offset + i * stats->stride, sizeof(s) / 8);
		if (view_string(v, strings->size, s.family, &t->family) ||
		    view_string(v, strings->size, s.name, &t->name) ||
		    view_string(v, strings->size, s.key, &t->key) ||
		    view_string(v, strings->size, s.help, &t->help))
			return -EIO;
		if (s.index != i || s.set >= FRESHET_MAX_STATS)
			return -EIO;
		if ((s.kind != FRESHET_COUNTER && s.kind != FRESHET_GAUGE) ||
		    s.unit > FRESHET_BYTES)
			return -EPROTO;
		t->kind = s.kind;
		t->unit = s.unit;
		t->set = s.set;
	}
	v->words = v->nstats;
	return view_cells(v, strings->size);
}

const void *freshet_mapping(const struct freshet_view *v, size_t *size)
{
	*size = v->fixed.size;
	return v->header;
}

/* Maps and checks v->fd. The caller releases v on failure, too. */
static int view_map(struct freshet_view *v)
{
	struct seg_header *h = &v->fixed;
	const struct seg_section *groups, *banks;
	struct stat st;
	ssize_t n;
	void *map;
	int r;

	if (fstat(v->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EPROTO;
	v->dev = st.st_dev;
	v->ino = st.st_ino;

	n = pread(v->fd, h, sizeof(*h), 0);
	if (n < 0)
		return -errno;
	if (n != sizeof(*h))
		return -EPROTO;
	r = check_header(h, (uint64_t)st.st_size);
	if (r)
		return r;
	r = check_sections(h);
	if (r)
		return r;

	v->nstats = h->nstats;
	v->nbanks = h->nbanks;
	v->max_groups = h->max_groups;
	v->row_stride = h->row_stride;
	v->rows_offset = seg_rows_offset(h->max_groups);
	groups = view_section(v, SEG_GROUPS, h->max_groups, sizeof(struct seg_group));
	/* No overflow: 2^5 + 2^24 * (2^4 + 2^32). */
	banks = view_section(v, SEG_BANKS, h->nbanks,
			     v->rows_offset + (uint64_t)h->max_groups * h->row_stride);
	if (!groups || !banks || banks->stride % 64)
		return -EIO;
	v->group_stride = groups->stride;
	v->bank_stride = banks->stride;

	map = mmap(NULL, h->size, PROT_READ, MAP_SHARED, v->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	v->header = map;
	v->groups = (const char *)map + groups->offset;
	v->banks = (const char *)map + banks->offset;

	r = load_stats(v);
	if (r)
		return r;
	/* Pairs with writer_publish(); reads load it again. */
	return load_acquire(&v->header->generation) ? 0 : -EAGAIN;
}

/* Relative names are completed now: the directory may change, or be made anew. */
static int absolute_path(const char *path, char **ret)
{
	char *cwd = NULL;
	int r = 0;

	if (path[0] == '/') {
		*ret = strdup(path);
		return *ret ? 0 : -ENOMEM;
	}
	cwd = getcwd(NULL, 0);
	if (!cwd)
		return -errno;
	if (asprintf(ret, "%s/%s", cwd, path) < 0) {
		*ret = NULL;
		r = -ENOMEM;
	}
	free(cwd);
	return r;
}

/* Takes fd and path, on failure too. */
static int view_new(int fd, char *path, struct freshet_view **ret)
{
	struct freshet_view *v = calloc(1, sizeof(*v));
	int r = -ENOMEM;

	if (!v) {
		close(fd);
		free(path);
		return r;
	}
	v->fd = fd;
	v->path = path;
	r = view_map(v);
	if (r) {
		freshet_detach(v);
		return r;
	}
	*ret = v;
	return 0;
}

int freshet_attach(const char *path, struct freshet_view **ret)
{
	char *absolute;
	int fd, r;

	r = absolute_path(path, &absolute);
	if (r)
		return r;
	/* Not blocking, for the case that it is a FIFO. */
	fd = fd_beyond_stdio(open(absolute, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
	if (fd < 0) {
		r = -errno;
		free(absolute);
		return r;
	}
	return view_new(fd, absolute, ret);
}

int freshet_attach_fd(int fd, struct freshet_view **ret)
{
	char path[32];
	struct stat st;
	int own;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EPROTO;
	/* An open file description of our own: through the writer's its lock would not show, and
	 * would live on with us. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = fd_beyond_stdio(open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
	if (own < 0)
		return -errno;
	return view_new(own, NULL, ret);
}

void freshet_detach(struct freshet_view *v)
{
	if (!v)
		return;
	view_release(v);
	free(v);
}

int freshet_producer(const struct freshet_view *v)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	struct stat st;

	if (load_relaxed(&v->header->state) != SEG_CLOSED) {
		if (fcntl(v->fd, F_OFD_GETLK, &lock))
			return -errno;
		if (lock.l_type != F_UNLCK)
			return FRESHET_ALIVE;
	}
	/* Our inode is open, so that its number is not used again. */
	if (v->path && stat(v->path, &st) == 0 && (st.st_dev != v->dev || st.st_ino != v->ino))
		return FRESHET_REPLACED;
	return FRESHET_GONE;
}

int freshet_reattach(struct freshet_view *v)
{
	struct freshet_view *new, old;
	struct stat st;
	int r;

	if (!v->path)
		return -EINVAL;
	if (stat(v->path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (st.st_dev == v->dev && st.st_ino == v->ino)
		return 0;
	r = freshet_attach(v->path, &new);
	if (r)
		return r;
	old = *v;
	*v = *new;
	free(new);
	view_release(&old);
	return 1;
}

const struct freshet_stat *freshet_stats(const struct freshet_view *v, size_t *count)
{
	*count = v->nstats;
	return v->stats;
}

int freshet_stat_index(const struct freshet_view *v, const char *family, const char *key)
{
	for (uint32_t i = 0; i < v->nstats; i++)
		if (!strcmp(v->stats[i].family, family) && !strcmp(v->stats[i].key, key))
			return (int)i;
	return -ENOENT;
}

int freshet_producer_info(const struct freshet_view *v, struct freshet_producer_info *ret)
{
	memset(ret, 0, sizeof(*ret));
	strcpy(ret->name, v->fixed.producer); /* NUL-terminated: check_header() */
	ret->pid = v->fixed.pid;
	ret->interval_ns = load_relaxed(&v->header->interval_ns);
	ret->start_ns = v->fixed.start_ns;
	memcpy(ret->identity, v->fixed.identity, sizeof(ret->identity));
	ret->max_groups = v->max_groups;
	ret->overflowed = load_relaxed(&v->header->overflowed);
	return 0;
}
