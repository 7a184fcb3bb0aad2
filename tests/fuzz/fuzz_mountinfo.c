/* SPDX-License-Identifier: MIT */
/* mountinfo, and what follows its last newline as a path that somebody asks for. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source/mount.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_path(const char *s, size_t size)
{
	return s[0] == '/' && memchr(s, '\0', size) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *end = size ? memrchr(text, '\n', size) : NULL;
	size_t len = end ? (size_t)(end - text) + 1 : 0;
	char path[1024], rel[4096], full[8192], again[4096];
	struct cgroup_mount m;
	int r = mountinfo_parse(text, len, &m);

	if (r < 0) {
		if (r != -ENOENT)
			abort();
		return 0;
	}
	if (!is_path(m.path, sizeof(m.path)) || !is_path(m.fs_root, sizeof(m.fs_root)) || m.is_top)
		abort();
	r = mount_relative(&m, m.path, rel, sizeof(rel));
	if (r < 0 || strcmp(rel, "/"))
		abort();
	snprintf(path, sizeof(path), "%.*s", (int)(size - len), text + len);
	r = mount_relative(&m, path, rel, sizeof(rel));
	if (r < 0) {
		if (r != -EINVAL && r != -ENAMETOOLONG)
			abort();
		return 0;
	}
	/* The same below the mount point by its absolute name, and no way out of it. */
	if (rel[0] != '/' || strstr(rel, "//") || strstr(rel, "/../") || strstr(rel, "/./"))
		abort();
	snprintf(full, sizeof(full), "%s%s", m.path, rel);
	if (mount_relative(&m, full, again, sizeof(again)) || strcmp(rel, again))
		abort();
	return 0;
}
