/* SPDX-License-Identifier: MIT */
/* Implements segments.h. */
#include "view/segments.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/where.h"
#include "view/guard.h"

unsigned segments_directories(char (*ret)[FRESHET_PATH_MAX])
{
	unsigned n = 0;

	/* The file of any name is in it. */
	if (where_segment("x", ret[n], FRESHET_PATH_MAX) == 0)
		*strrchr(ret[n++], '/') = '\0';
	if (where_system_segment("x", ret[n], FRESHET_PATH_MAX) == 0) {
		*strrchr(ret[n], '/') = '\0';
		n += n == 0 || strcmp(ret[0], ret[n]) != 0;
	}
	return n;
}

static bool may_be_segment(int dir_fd, const char *name, struct stat *st)
{
	char path[FRESHET_PATH_MAX];

	return strlen(name) <= FRESHET_NAME_MAX &&
	       where_system_segment(name, path, sizeof(path)) == 0 &&
	       fstatat(dir_fd, name, st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISSOCK(st->st_mode) &&
	       !S_ISDIR(st->st_mode);
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct segments_entry *)a)->name,
		      ((const struct segments_entry *)b)->name);
}

static int read_entries(DIR *dir, struct segments_list *ret)
{
	size_t capacity = 0, seen = 0;
	struct dirent *d;

	while ((d = readdir(dir))) {
		struct segments_entry *e;
		struct stat st;

		if (++seen > 4 * SEGMENTS_LOOK_MAX || ret->count == SEGMENTS_LOOK_MAX) {
			ret->more = true;
			break;
		}
		if (!may_be_segment(ret->dir_fd, d->d_name, &st))
			continue;
		if (ret->count == capacity) {
			capacity = capacity ? 2 * capacity : 16;
			e = reallocarray(ret->entry, capacity, sizeof(*e));
			if (!e)
				return -ENOMEM;
			ret->entry = e;
		}
		e = &ret->entry[ret->count++];
		strcpy(e->name, d->d_name);
		e->st = st;
	}
	if (ret->count)
		qsort(ret->entry, ret->count, sizeof(*ret->entry), compare);
	return 0;
}

int segments_list(const char *directory, struct segments_list *ret)
{
	DIR *dir;
	int fd, r;

	*ret = (struct segments_list){ .dir_fd = -1 };
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	ret->dir_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	r = ret->dir_fd < 0 ? -errno : read_entries(dir, ret);
	closedir(dir);
	if (r < 0)
		segments_list_free(ret);
	return r;
}

void segments_list_free(struct segments_list *list)
{
	free(list->entry);
	if (list->dir_fd >= 0)
		close(list->dir_fd);
	*list = (struct segments_list){ .dir_fd = -1 };
}

/* Before it is opened: opening can do something with a device or a FIFO. */
static int check(const struct stat *st, bool any_owner)
{
	if (S_ISLNK(st->st_mode))
		return -ELOOP;
	if (!S_ISREG(st->st_mode))
		return -EPROTO;
	if (!any_owner && st->st_uid != geteuid() && st->st_uid != 0)
		return -EPERM;
	/* the superuser could read it all the same */
	return st->st_mode & (S_IRUSR | S_IRGRP | S_IROTH) ? 0 : -EACCES;
}

int segments_attach(const struct segments_list *list, size_t i, bool any_owner,
		    struct freshet_view **ret)
{
	const struct segments_entry *e = &list->entry[i];
	int r = check(&e->st, any_owner), fd _close_ = -1;
	struct freshet_view *view;
	struct stat st;

	if (r < 0)
		return r;
	fd = openat(list->dir_fd, e->name,
		    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != e->st.st_dev || st.st_ino != e->st.st_ino)
		return -ESTALE;
	r = check(&st, any_owner);
	if (r < 0)
		return r;
	guard_begin(NULL);
	r = freshet_attach_fd(fd, &view);
	if (guard_end()) {
		if (r == 0)
			freshet_detach(view);
		return -EIO;
	}
	if (r == 0)
		*ret = view;
	return r;
}

const char *segments_error(int error)
{
	switch (error) {
	case -ENOENT:
		return "no such segment";
	case -EACCES:
		return "no permission to read it";
	case -EAGAIN:
		return "it holds no numbers yet";
	case -EPROTO:
		return "not a segment, or one of another version";
	case -EIO:
		return "the segment is damaged";
	case -ELOOP:
		return "it is a symbolic link";
	case -EPERM:
		return "it belongs to another user";
	case -E2BIG:
		return "it takes too much memory, or time, to be shown";
	default:
		return strerror(-error);
	}
}
