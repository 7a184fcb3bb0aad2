/* SPDX-License-Identifier: MIT */
/* Implements cg.h. */
#include "oracle/cg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "source/mount.h"

static struct cgroup_mount mount_point;
static char home[4200];
static pid_t owner;

static void nap(unsigned ms)
{
	struct timespec ts = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&ts, NULL);
}

/* Depth first; only directories can be and need to be removed. */
static void remove_below(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d))) {
		char path[8192];

		if (e->d_type != DT_DIR || !strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		remove_below(path);
	}
	closedir(d);
	for (int i = 0; i < 200 && rmdir(dir) < 0 && errno == EBUSY; i++)
		nap(10);
}

static void remove_home(void)
{
	if (home[0] && getpid() == owner)
		remove_below(home);
}

const char *cg_home(const char **why)
{
	static const char *reason;

	if (home[0])
		return home;
	if (!reason) {
		if (mount_find(&mount_point) < 0) {
			reason = "cgroup2 is not mounted";
		} else {
			snprintf(home, sizeof(home), "%s/freshet-test-%d", mount_point.path,
				 (int)getpid());
			owner = getpid();
			if (mkdir(home, 0755) < 0) {
				home[0] = 0;
				reason = "cannot make cgroups (not root?)";
			} else {
				atexit(remove_home);
				return home;
			}
		}
	}
	*why = reason;
	return NULL;
}

const char *cg_mount(void)
{
	return mount_point.path;
}

void cg_full(const char *path, char *ret)
{
	snprintf(ret, CG_PATH, "%s%s%s", home, *path ? "/" : "", path);
}

int cg_make(const char *path)
{
	char full[CG_PATH];

	cg_full(path, full);
	return mkdir(full, 0755) < 0 ? -errno : 0;
}

int cg_remove(const char *path)
{
	char full[CG_PATH];

	cg_full(path, full);
	return rmdir(full) < 0 ? -errno : 0;
}

int cg_remove_wait(const char *path)
{
	int err;

	for (int i = 0; i < 500; i++) {
		err = cg_remove(path);
		if (err != -EBUSY)
			return err;
		nap(2);
	}
	return err;
}

int cg_write(const char *path, const char *file, const char *text)
{
	char full[CG_PATH];
	ssize_t n;
	int fd;

	cg_full(path, full);
	strncat(full, "/", sizeof(full) - strlen(full) - 1);
	strncat(full, file, sizeof(full) - strlen(full) - 1);
	fd = open(full, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -errno : 0;
}

uint64_t cg_id(const char *path)
{
	char full[CG_PATH];
	struct stat st;

	cg_full(path, full);
	return stat(full, &st) < 0 ? 0 : st.st_ino;
}

int cg_read_file(const char *absolute, struct cg_stat *ret)
{
	struct cg_stat s = { 0 };
	char text[4096], *line, *rest = text;
	ssize_t n;
	int fd;

	fd = open(absolute, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n < 0)
		return -errno;
	text[n] = 0;
	/* Not parse.c: an oracle shares no code with what it checks. */
	while ((line = strsep(&rest, "\n"))) {
		unsigned long long v;
		char key[64];

		if (sscanf(line, "%63s %llu", key, &v) != 2)
			continue;
		if (!strcmp(key, "usage_usec"))
			s.usage = v;
		else if (!strcmp(key, "user_usec"))
			s.user = v;
		else if (!strcmp(key, "system_usec"))
			s.system = v;
		else if (!strcmp(key, "nice_usec"))
			s.nice = v, s.has_nice = 1;
		else if (!strcmp(key, "nr_periods"))
			s.periods = v, s.has_throttle = 1;
		else if (!strcmp(key, "nr_throttled"))
			s.throttled = v;
		else if (!strcmp(key, "throttled_usec"))
			s.throttled_usec = v;
	}
	*ret = s;
	return 0;
}

int cg_read(const char *path, struct cg_stat *ret)
{
	char full[CG_PATH];

	cg_full(path, full);
	strncat(full, "/cpu.stat", sizeof(full) - strlen(full) - 1);
	return cg_read_file(full, ret);
}

static void burn(enum cg_burn how)
{
	volatile unsigned x = 0;

	if (how == CG_USER || how == CG_MIXED || how == CG_NICE)
		for (int i = 0; i < 20000; i++)
			x += (unsigned)i;
	(void)x;
	if (how == CG_SYSTEM || how == CG_MIXED)
		for (int i = 0; i < 50; i++)
			syscall(SYS_getppid);
}

/* In the child: joins, or ends at once. */
static void join(const char *path)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (cg_write(path, "cgroup.procs", "0") < 0)
		_exit(1);
}

pid_t cg_burn(const char *path, enum cg_burn how)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	join(path);
	if (how == CG_NICE)
		setpriority(PRIO_PROCESS, 0, 10);
	for (;;)
		burn(how);
}

pid_t cg_burn_for(const char *path, unsigned us)
{
	pid_t pid = fork();
	struct timespec ts;

	if (pid)
		return pid;
	join(path);
	do {
		burn(CG_MIXED);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	} while ((uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000 < us);
	_exit(0);
}

void cg_kill(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int dying_below(const char *path)
{
	char full[CG_PATH], text[512], *at;
	ssize_t n;
	int fd;

	cg_full(path, full);
	strncat(full, "/cgroup.stat", sizeof(full) - strlen(full) - 1);
	fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	at = strstr(text, "nr_dying_descendants ");
	return at ? atoi(at + strlen("nr_dying_descendants ")) : 0;
}

void cg_rest(const char *path)
{
	struct cg_stat a, b;

	for (int i = 0; i < 250; i++) {
		if (cg_read(path, &a) < 0)
			return;
		nap(20);
		if (!cg_read(path, &b) && !memcmp(&a, &b, sizeof(a)) && !dying_below(path))
			return;
	}
}
