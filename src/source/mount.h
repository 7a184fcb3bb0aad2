/* SPDX-License-Identifier: MIT */
/* Where the cgroup2 hierarchy is mounted, from /proc/self/mountinfo; hybrid hosts and cgroup
 * namespaces too. */
#ifndef FRESHET_MOUNT_H
#define FRESHET_MOUNT_H

#include <stddef.h>

struct cgroup_mount {
	char path[4096];     /* of the mount point */
	char fs_root[4096];  /* what of the hierarchy is mounted there, as seen from our cgroup
			      * namespace: "/" usually; "/.." and the like for foreign ones */
	int is_top;          /* path is the hierarchy's real root (kernfs id 1) */
	int hybrid;          /* v1 hierarchies are mounted too */
};

/* Pure: parses the text of a mountinfo file (octal escapes undone; when several cgroup2 mounts are
 * there, the one with fs_root "/" and the shortest path). -ENOENT: no cgroup2 in it. Does not touch
 * the file system: is_top is left 0. */
int mountinfo_parse(const char *text, size_t len, struct cgroup_mount *ret);

/* Reads /proc/self/mountinfo and looks at the mount. -ENOENT: cgroup2 is not mounted. */
int mount_find(struct cgroup_mount *ret);

/*
 * Absolute directory of a cgroup given as people write it: NULL, "" or "/" is the mount point;
 * "/a/b" or "a/b" is below it; an absolute path that already lies below the mount point is taken as
 * it is. -ENOENT: no such cgroup; -EINVAL: "." or ".." as a part; -ENAMETOOLONG.
 */
int mount_resolve(const struct cgroup_mount *m, const char *path, char *ret, size_t size);

/* The same path relative to the mount point: "/" or "/a/b". Does not touch the file system. */
int mount_relative(const struct cgroup_mount *m, const char *path, char *ret, size_t size);

#endif
