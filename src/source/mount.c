/* SPDX-License-Identifier: MIT */
/*
 * Implements mount.h.
 *
 * A line of mountinfo (proc(5)):
 *   36 35 98:0 /fs_root /mount/point rw,noatime shared:1 master:2 - cgroup2 source rw
 * with any number of optional fields before the "-", and blanks, tabs, newlines and backslashes of
 * a name as \ooo.
 *
 * Which of several cgroup2 mounts: a mount on the same point as an earlier one hides it; otherwise
 * the one that shows most (fs_root "/", then a subtree, then what lies outside of our cgroup
 * namespace), and of those the shortest path. mount_find() also passes over mounts that another
 * mount hides.
 */
#include "source/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define CGROUP2_MAGIC     0x63677270
#define KERNFS_ROOT_INODE 1 /* kernfs numbers from 1, and a hierarchy's root comes first */

struct field {
	const char *text;
	size_t len;
};

/* The next blank-separated field of a line, or false at its end. */
static bool next_field(struct field *line, struct field *ret)
{
	const char *end;

	if (!line->len)
		return false;
	end = memchr(line->text, ' ', line->len);
	ret->text = line->text;
	ret->len = end ? (size_t)(end - line->text) : line->len;
	line->text += ret->len + (end != NULL);
	line->len -= ret->len + (end != NULL);
	return true;
}

static bool field_is(struct field f, const char *s)
{
	return f.len == strlen(s) && !memcmp(f.text, s, f.len);
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* Undoes \ooo into ret[4096]; false when it does not fit or is no absolute path. */
static bool unescape(struct field f, char ret[4096])
{
	size_t n = 0;

	for (size_t i = 0; i < f.len; i++) {
		unsigned char c = (unsigned char)f.text[i];

		if (c == '\\' && f.len - i > 3 && f.text[i + 1] <= '3' && is_octal(f.text[i + 1]) &&
		    is_octal(f.text[i + 2]) && is_octal(f.text[i + 3])) {
			c = (unsigned char)((f.text[i + 1] - '0') << 6 |
					    (f.text[i + 2] - '0') << 3 | (f.text[i + 3] - '0'));
			i += 3;
		}
		if (!c || n == 4095)
			return false;
		ret[n++] = (char)c;
	}
	ret[n] = '\0';
	return ret[0] == '/';
}

/* One line: 2 and *ret for a cgroup2 mount, 1 for a v1 hierarchy, 0 for anything else. */
static int parse_line(struct field line, struct cgroup_mount *ret)
{
	struct field f, root, point;

	for (int i = 0; i < 3; i++) {
		if (!next_field(&line, &f))
			return 0;
	}
	if (!next_field(&line, &root) || !next_field(&line, &point))
		return 0;
	do {
		if (!next_field(&line, &f))
			return 0;
	} while (!field_is(f, "-"));
	if (!next_field(&line, &f))
		return 0;
	if (field_is(f, "cgroup"))
		return 1;
	if (!field_is(f, "cgroup2"))
		return 0;
	return unescape(root, ret->fs_root) && unescape(point, ret->path) ? 2 : 0;
}

/* How little of the hierarchy a mount shows. */
static int narrowness(const struct cgroup_mount *m)
{
	if (!strcmp(m->fs_root, "/"))
		return 0;
	return strncmp(m->fs_root, "/..", 3) || (m->fs_root[3] && m->fs_root[3] != '/') ? 1 : 2;
}

static bool better(const struct cgroup_mount *a, const struct cgroup_mount *than)
{
	int d = narrowness(a) - narrowness(than);

	if (!strcmp(a->path, than->path))
		return true;
	return d ? d < 0 : strlen(a->path) < strlen(than->path);
}

static bool shows_cgroup2(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && fs.f_type == CGROUP2_MAGIC;
}

static int pick(const char *text, size_t len, bool look, struct cgroup_mount *ret)
{
	struct cgroup_mount best = { .path = "" }, m = { .path = "" };
	bool found = false;

	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t line = end ? (size_t)(end - text) : len;
		int kind = parse_line((struct field){ text, line }, &m);

		if (kind == 1)
			best.hybrid = 1;
		if (kind == 2 && (!found || better(&m, &best)) &&
		    (!look || shows_cgroup2(m.path))) {
			memcpy(best.path, m.path, sizeof(m.path));
			memcpy(best.fs_root, m.fs_root, sizeof(m.fs_root));
			found = true;
		}
		text += line + (end != NULL);
		len -= line + (end != NULL);
	}
	if (!found)
		return -ENOENT;
	*ret = best;
	return 0;
}

int mountinfo_parse(const char *text, size_t len, struct cgroup_mount *ret)
{
	return pick(text, len, false, ret);
}

static void free_buf(struct buf *b)
{
	buf_free(b);
}

static int read_all(const char *path, struct buf *ret)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char chunk[4096];
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n > 0)
			buf_add(ret, chunk, (size_t)n);
		else if (errno != EINTR)
			return -errno;
	}
	return ret->error;
}

int mount_find(struct cgroup_mount *ret)
{
	_cleanup_(free_buf) struct buf text = BUF_INIT;
	struct cgroup_mount m;
	struct stat st;
	int r;

	r = read_all("/proc/self/mountinfo", &text);
	if (r < 0)
		return r;
	r = pick(text.data, text.len, true, &m);
	if (r < 0)
		return r;
	if (stat(m.path, &st) < 0)
		return -errno;
	m.is_top = st.st_ino == KERNFS_ROOT_INODE;
	*ret = m;
	return 0;
}

/* Appends "/part" for every part of path to ret, which holds *len bytes; doubled and trailing
 * slashes go. ret stays NUL-terminated. */
static int join(const char *path, char *ret, size_t size, size_t *len)
{
	for (;;) {
		size_t n;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (!n)
			return 0;
		if ((n == 1 && path[0] == '.') || (n == 2 && path[0] == '.' && path[1] == '.'))
			return -EINVAL;
		if (size - *len < n + 2)
			return -ENAMETOOLONG;
		ret[(*len)++] = '/';
		memcpy(ret + *len, path, n);
		*len += n;
		ret[*len] = '\0';
		path += n;
	}
}

/* What is left of an absolute path that lies at or below the mount point, else the path itself.
 * Whole parts only: /sys/fs/cgroup2 does not lie below /sys/fs/cgroup. */
static const char *below(const struct cgroup_mount *m, const char *path)
{
	const char *mount = m->path, *rest = path;

	if (*path != '/')
		return path;
	for (;;) {
		size_t n;

		mount += strspn(mount, "/");
		rest += strspn(rest, "/");
		n = strcspn(mount, "/");
		if (!n)
			return rest;
		if (n != strcspn(rest, "/") || memcmp(mount, rest, n))
			return path;
		mount += n;
		rest += n;
	}
}

static int relative(const struct cgroup_mount *m, const char *path, char *ret, size_t size)
{
	size_t len = 0;
	int r;

	if (size < 2)
		return -ENAMETOOLONG;
	ret[0] = '\0';
	r = join(below(m, path ? path : ""), ret, size, &len);
	if (r == 0 && !len)
		strcpy(ret, "/");
	return r;
}

int mount_relative(const struct cgroup_mount *m, const char *path, char *ret, size_t size)
{
	char rel[4096];
	int r = relative(m, path, rel, sizeof(rel));

	if (r < 0)
		return r;
	if (strlen(rel) >= size)
		return -ENAMETOOLONG;
	strcpy(ret, rel);
	return 0;
}

int mount_resolve(const struct cgroup_mount *m, const char *path, char *ret, size_t size)
{
	char rel[4096], full[sizeof(m->path) + sizeof(rel)];
	struct stat st;
	int r;

	r = relative(m, path, rel, sizeof(rel));
	if (r < 0)
		return r;
	r = snprintf(full, sizeof(full), "%s%s", strcmp(m->path, "/") ? m->path : "",
		     strcmp(rel, "/") ? rel : "");
	if (!full[0])
		strcpy(full, "/");
	if ((size_t)r >= size || (size_t)r >= 4096)
		return -ENAMETOOLONG;
	if (stat(full, &st) < 0)
		return errno == ENOTDIR ? -ENOENT : -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOENT;
	strcpy(ret, full);
	return 0;
}
