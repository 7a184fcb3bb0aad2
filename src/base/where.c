/* SPDX-License-Identifier: MIT */
/* Implements where.h. Whether a directory can be trusted is checked by who opens the file. */
#include "base/where.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), tail = strlen(end);

	return len >= tail && !strcmp(name + len - tail, end);
}

/* Not what the writer of another name makes beside it (core/segment_file.h). */
static bool good_name(const char *name)
{
	if (!*name || *name == '.' || ends_in(name, ".new") || ends_in(name, ".lock"))
		return false;
	for (const char *p = name; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		      (*p >= '0' && *p <= '9') || strchr("._-", *p)))
			return false;
	return true;
}

static int where_in(const char *directory, const char *name, char *buf, size_t size)
{
	int len;

	if (strchr(name, '/'))
		len = snprintf(buf, size, "%s", name);
	else if (good_name(name))
		len = snprintf(buf, size, "%s/%s", directory, name);
	else
		return -EINVAL;
	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

int where_system_segment(const char *name, char *buf, size_t size)
{
	return where_in("/run/freshet", name, buf, size);
}

int where_segment_in(const char *name, const char *runtime, char *buf, size_t size)
{
	char directory[4096];
	struct stat st;
	int len;

	if (geteuid() == 0 || strchr(name, '/'))
		return where_system_segment(name, buf, size);
	if (runtime && *runtime == '/') {
		len = snprintf(directory, sizeof(directory), "%s/freshet", runtime);
		if (len < 0 || (size_t)len >= sizeof(directory))
			return -ENAMETOOLONG;
		return where_in(directory, name, buf, size);
	}
	/* Anybody can make names in /tmp. */
	snprintf(directory, sizeof(directory), "/tmp/freshet-%u", (unsigned)geteuid());
	if (lstat(directory, &st) == 0 && (!S_ISDIR(st.st_mode) || st.st_uid != geteuid()))
		return -EPERM;
	return where_in(directory, name, buf, size);
}

/* The caller frees it. NULL with *error 0: the file has no directory to speak of. */
static char *directory_of(const char *file, int *error)
{
	const char *slash = strrchr(file, '/');
	char *directory;

	*error = 0;
	if (!slash || slash == file)
		return NULL;
	directory = strndup(file, (size_t)(slash - file));
	if (!directory)
		*error = -ENOMEM;
	return directory;
}

int where_make_directory(const char *file)
{
	int r;
	char *directory = directory_of(file, &r);

	if (!directory)
		return r;
	if (mkdir(directory, 0755) == 0)
		r = 1;
	else if (errno != EEXIST)
		r = -errno;
	free(directory);
	return r;
}

void where_remove_directory(const char *file)
{
	int r;
	char *directory = directory_of(file, &r);

	if (directory)
		rmdir(directory);
	free(directory);
}
