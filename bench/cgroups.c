/* SPDX-License-Identifier: MIT */
/* Implements cgroups.h. */
#include "cgroups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "source/mount.h"

#define NAME      "freshet-bench-" /* and the process's number */
#define TEMPORARY "/dev/shm"

static struct cgroup_mount mount_point;
static char folder[4200];
static char temporary[64];

/* Depth first. Ended processes leave a cgroup a moment late. */
static void remove_cgroups(const char *dir)
{
	const struct timespec moment = { 0, 5000000 };
	DIR *d = opendir(dir);
	struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d))) {
		char path[8192];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		remove_cgroups(path);
	}
	closedir(d);
	for (int i = 0; i < 400 && rmdir(dir) < 0 && errno == EBUSY; i++)
		nanosleep(&moment, NULL);
}

static void kill_and_remove(const char *dir)
{
	char file[4300];
	int fd;

	snprintf(file, sizeof(file), "%s/cgroup.kill", dir);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (write(fd, "1", 1) < 0)
			fprintf(stderr, "freshet-bench: %s: %s\n", file, strerror(errno));
		close(fd);
	}
	remove_cgroups(dir);
}

/* Takes a directory of ours away with its files. Not through a link, and not another user's: anybody
 * may make names in /dev/shm. */
static void remove_temporary(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *e;
	struct stat st;
	DIR *d;

	if (fd < 0)
		return;
	d = fstat(fd, &st) == 0 && st.st_uid == geteuid() ? fdopendir(fd) : NULL;
	if (!d) {
		close(fd);
		return;
	}
	while ((e = readdir(d)))
		if (e->d_type != DT_DIR)
			unlinkat(fd, e->d_name, 0);
	closedir(d);
	rmdir(dir);
}

/* What benches left in parent that were killed with SIGKILL. */
static void remove_stale(const char *parent, void (*remove)(const char *dir))
{
	DIR *d = opendir(parent);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[4400];
		int pid;

		if (sscanf(e->d_name, NAME "%d", &pid) != 1 || kill(pid, 0) == 0 || errno != ESRCH)
			continue;
		snprintf(path, sizeof(path), "%s/%s", parent, e->d_name);
		remove(path);
	}
	if (d)
		closedir(d);
}

static int make_temporary(void)
{
	remove_stale(TEMPORARY, remove_temporary);
	snprintf(temporary, sizeof(temporary), TEMPORARY "/" NAME "%d", (int)getpid());
	if (mkdir(temporary, 0700) == 0)
		return 0;
	fprintf(stderr, "freshet-bench: %s: %s\n", temporary, strerror(errno));
	temporary[0] = 0;
	return -1;
}

static int make_folder(void)
{
	int err = mount_find(&mount_point);

	if (err) {
		fprintf(stderr, "freshet-bench: no cgroup2 is mounted here (%s)\n", strerror(-err));
		return -1;
	}
	remove_stale(mount_point.path, kill_and_remove);
	snprintf(folder, sizeof(folder), "%s/" NAME "%d", mount_point.path, (int)getpid());
	if (mkdir(folder, 0755) == 0)
		return 0;
	fprintf(stderr, "freshet-bench: cannot make cgroups: %s: %s%s\n", folder, strerror(errno),
		geteuid() ? " (run it as root)" : "");
	folder[0] = 0;
	return -1;
}

int cgroups_begin(bool with_cgroups)
{
	if (make_temporary() < 0)
		return -1;
	return with_cgroups ? make_folder() : 0;
}

void cgroups_end(void)
{
	if (folder[0])
		kill_and_remove(folder);
	if (temporary[0])
		remove_temporary(temporary);
	folder[0] = temporary[0] = 0;
}

const char *cgroups_temporary(void)
{
	return temporary;
}

/* Like the names of containers, which are long. */
static void child_name(uint32_t i, char *ret, size_t size)
{
	snprintf(ret, size, "group-%08x%08x.scope", i * 2654435761u, i);
}

int cgroups_make(struct cgroups *ret, uint32_t count)
{
	struct cgroups c = { 0 };

	c.path = calloc(count, sizeof(*c.path));
	if (!c.path)
		goto no_memory;
	for (; c.count < count; c.count++) {
		uint32_t i = c.count;
		char name[64], *path;

		child_name(i, name, sizeof(name));
		if (asprintf(&path, "%s/%s", i ? c.path[(i - 1) / CGROUPS_FANOUT] : folder, name) <
		    0)
			goto no_memory;
		c.path[i] = path;
		if (mkdir(path, 0755) < 0) {
			fprintf(stderr, "freshet-bench: %s: %s\n", path, strerror(errno));
			c.count++;
			cgroups_remove(&c);
			return -1;
		}
	}
	*ret = c;
	return 0;
no_memory:
	fprintf(stderr, "freshet-bench: %s\n", strerror(ENOMEM));
	cgroups_remove(&c);
	return -1;
}

void cgroups_remove(struct cgroups *c)
{
	if (c->count)
		kill_and_remove(c->path[0]);
	for (uint32_t i = 0; i < c->count; i++)
		free(c->path[i]);
	free(c->path);
	*c = (struct cgroups){ 0 };
}
