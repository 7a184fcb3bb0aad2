/* SPDX-License-Identifier: MIT */
/*
 * Making, locking, placing and removing a segment's file.
 *
 * Locks are open file description locks: the kernel drops them with the last descriptor, however
 * the process ends. Descriptors are close-on-exec; a child that was forked without exec would keep
 * the locks, and so the appearance of a living producer.
 *
 * One writer: who holds the lock of the inode that lies at NAME.lock. That file is removed only by
 * who holds it, and who gets the lock looks afterwards whether the inode still lies there (else it
 * waited at a removed one, and tries again). So two can never both pass. The segment has a lock of
 * its own, on its own inode, which is what readers ask for: it says "the writer of *this* segment
 * lives".
 *
 * Attacks: the directory is opened once, without following a link at its end, must be ours and
 * writable by nobody else; everything else is relative to that descriptor, follows no links, and
 * what is at the path is replaced only if it is a segment.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fds.h"
#include "core/segment.h"
#include "core/segment_file.h"

#define FILE_MODE  0640
#define LOCK_MODE  0600 /* who can open it can lock it, and so keep writers out */
#define LOCK_TRIES 100

/* 0, -EBUSY, -errno */
static int lock(int fd)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(fd, F_OFD_SETLK, &l) == 0)
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

/* Whether fd is what lies at name. */
static bool lies_at(int fd, int dir_fd, const char *name)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstatat(dir_fd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int open_dir(const char *path, int *ret)
{
	struct stat st;
	int fd = fd_beyond_stdio(open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	int r = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		r = -errno;
	else if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		r = -EPERM;
	if (r) {
		close(fd);
		return r;
	}
	*ret = fd;
	return 0;
}

/* Directory and name; ret->name and ret->temp. */
static int split_path(const char *path, struct segment_file *f)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char *dir = NULL;
	int r;

	if (!name[0] || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EINVAL;
	/* With a slash at its end the directory would be followed, O_NOFOLLOW or not. */
	while (slash && slash > path && slash[-1] == '/')
		slash--;
	dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	f->name = strdup(name);
	if (!dir || !f->name || asprintf(&f->temp, "%s.new", name) < 0) {
		f->temp = NULL;
		free(dir);
		return -ENOMEM;
	}
	r = open_dir(dir, &f->dir_fd);
	free(dir);
	return r;
}

static int take_lock_file(struct segment_file *f)
{
	char *name;
	int r = -EBUSY;

	if (asprintf(&name, "%s.lock", f->name) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < LOCK_TRIES; i++) {
		int fd = fd_beyond_stdio(
			openat(f->dir_fd, name,
			       O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, LOCK_MODE));

		if (fd < 0) {
			r = -errno;
			break;
		}
		r = lock(fd);
		if (r == 0 && lies_at(fd, f->dir_fd, name)) {
			f->lock_fd = fd;
			break;
		}
		close(fd);
		if (r)
			break;
		r = -EBUSY;
	}
	free(name);
	return r;
}

/* What lies at the path must be nothing, or a segment whose writer is gone. */
static int check_predecessor(const struct segment_file *f)
{
	struct flock l = { .l_type = F_RDLCK, .l_whence = SEEK_SET }; /* finds write locks */
	char magic[sizeof(((struct seg_header *)0)->magic)];
	int fd =
		openat(f->dir_fd, f->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int r = -EEXIST;

	if (fd < 0)
		switch (errno) {
		case ENOENT:
			return 0;
		case EMFILE: /* says nothing about what lies there */
		case ENFILE:
		case ENOMEM:
			return -errno;
		default:
			return -EEXIST;
		}
	if (pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	    !memcmp(magic, SEG_MAGIC, sizeof(magic))) {
		r = 0;
		if (fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK)
			r = -EBUSY;
	}
	close(fd);
	return r;
}

static int create_named(const char *path, struct segment_file *f)
{
	int r = split_path(path, f);

	if (r)
		return r;
	r = take_lock_file(f);
	if (r)
		return r;
	r = check_predecessor(f);
	if (r)
		return r;
	/* Left by a writer that died in between: we have its lock. */
	if (unlinkat(f->dir_fd, f->temp, 0) && errno != ENOENT)
		return -errno;
	f->fd = fd_beyond_stdio(openat(
		f->dir_fd, f->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE));
	return f->fd < 0 ? -errno : 0;
}

/* Beyond the limit of file sizes the kernel would send a signal that ends the process. */
static int set_size(int fd, uint64_t size)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    size > limit.rlim_cur)
		return -EFBIG;
	return ftruncate(fd, (off_t)size) ? -errno : 0;
}

int segment_file_create(const char *path, uint64_t size, struct segment_file *ret)
{
	struct segment_file f = { .fd = -1, .dir_fd = -1, .lock_fd = -1 };
	int r = 0;

	if (path) {
		r = create_named(path, &f);
	} else {
		f.fd = fd_beyond_stdio(memfd_create("freshet", MFD_CLOEXEC));
		if (f.fd < 0)
			r = -errno;
	}
	if (r == 0)
		r = lock(f.fd);
	if (r == 0)
		r = set_size(f.fd, size);
	if (r) {
		segment_file_close(&f);
		return r;
	}
	*ret = f;
	return 0;
}

int segment_file_reopen(const struct segment_file *f)
{
	char path[32];
	int fd;

	if (f->name) {
		fd = openat(f->dir_fd, f->temp ? f->temp : f->name,
			    O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	} else {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT) /* no /proc; and nobody else to see the lock */
			fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
	}
	return fd < 0 ? -errno : fd;
}

int segment_file_commit(struct segment_file *f)
{
	if (!f->name)
		return 0;
	if (renameat(f->dir_fd, f->temp, f->dir_fd, f->name))
		return -errno;
	free(f->temp);
	f->temp = NULL;
	return 0;
}

void segment_file_close(struct segment_file *f)
{
	char *lock_name;

	if (f->fd >= 0 && f->name) {
		const char *name = f->temp ? f->temp : f->name;

		if (lies_at(f->fd, f->dir_fd, name))
			unlinkat(f->dir_fd, name, 0);
	}
	if (f->fd >= 0)
		close(f->fd);
	if (f->lock_fd >= 0) {
		/* Before the lock goes: see the head of this file. */
		if (asprintf(&lock_name, "%s.lock", f->name) >= 0) {
			if (lies_at(f->lock_fd, f->dir_fd, lock_name))
				unlinkat(f->dir_fd, lock_name, 0);
			free(lock_name);
		}
		close(f->lock_fd);
	}
	if (f->dir_fd >= 0)
		close(f->dir_fd);
	free(f->name);
	free(f->temp);
}

void segment_file_disown(struct segment_file *f)
{
	int *fds[] = { &f->fd, &f->lock_fd, &f->dir_fd };

	for (unsigned i = 0; i < 3; i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}
