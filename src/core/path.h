/* SPDX-License-Identifier: MIT */
/* Taking a path apart: "/", "/a/b", "a/b"; more than one slash counts as one. Pure. */
#ifndef FRESHET_PATH_H
#define FRESHET_PATH_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* The next part of *path, which moves behind it. 1; 0 at the end; -EINVAL for "." and "..". */
static inline int path_part(const char **path, const char **part, size_t *len)
{
	const char *p = *path + strspn(*path, "/");

	*part = p;
	*len = strcspn(p, "/");
	*path = p + *len;
	if ((*len == 1 && p[0] == '.') || (*len == 2 && p[0] == '.' && p[1] == '.'))
		return -EINVAL;
	return *len > 0;
}

#endif
