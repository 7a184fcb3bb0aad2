/* SPDX-License-Identifier: MIT */
/*
 * What the tests of source "files" share: a tree below a directory, helpers to change it, and a pass
 * with the checks that hold after every one.
 * getdents64() is ours here, so that a test can change the tree right after a directory was listed.
 */
#ifndef FRESHET_FILES_FIXTURE_H
#define FRESHET_FILES_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "source/source.h"
#include "tap.h"

/* Runs once, when the listing of a directory that shows hook_name is through. */
static void (*hook)(void);
static const char *hook_name;

ssize_t getdents64(int fd, void *buf, size_t size)
{
	static int seen;
	ssize_t n = syscall(SYS_getdents64, fd, buf, size);

	for (char *p = buf; hook && hook_name && p < (char *)buf + n;
	     p += ((struct dirent64 *)p)->d_reclen)
		seen |= !strcmp(((struct dirent64 *)p)->d_name, hook_name);
	if (hook && n == 0 && seen) {
		void (*run)(void) = hook;

		hook = NULL;
		seen = 0;
		run();
	}
	return n;
}

/* The tree under test; paths of the helpers are below it. */
static char root[PATH_MAX];
static struct source *source;
static struct source_tree tree;

static inline const char *at(const char *path)
{
	static char full[2][4 * PATH_MAX];
	static int turn;

	turn = !turn;
	snprintf(full[turn], sizeof(full[turn]), "%s%s", root, path);
	return full[turn];
}

static inline void put(const char *path, const char *text)
{
	FILE *f = fopen(at(path), "we");

	if (!EXPECT(f != NULL, "%s: %s", path, strerror(errno)))
		return;
	fputs(text, f);
	fclose(f);
}

static inline void make(const char *path, unsigned usage)
{
	char file[PATH_MAX], text[200];

	if (*path)
		EXPECT(!mkdir(at(path), 0755), "%s: %s", path, strerror(errno));
	snprintf(file, sizeof(file), "%s/cpu.stat", path);
	snprintf(text, sizeof(text), "usage_usec %u\nuser_usec %u\nsystem_usec 0\nnice_usec 0\n",
		 usage, usage);
	put(file, text);
}

static inline void drop(const char *path)
{
	char file[PATH_MAX];

	snprintf(file, sizeof(file), "%s/cpu.stat", path);
	unlink(at(file));
	EXPECT(!rmdir(at(path)), "%s: %s", path, strerror(errno));
}

static inline int open_source(uint32_t max_groups)
{
	struct source_options options = { .root = root, .max_groups = max_groups };
	char why[256] = "";
	int r = source_files_open(&options, &source, why, sizeof(why));

	EXPECT(r == 0, "%s", why);
	return r;
}

/* A new directory with a root group of usage 1000, opened. */
static inline int begin(uint32_t max_groups)
{
	memset(&tree, 0, sizeof(tree));
	source = NULL;
	snprintf(root, sizeof(root), "/tmp/freshet-files-XXXXXX");
	if (!EXPECT(mkdtemp(root) != NULL))
		return -1;
	make("", 1000);
	return open_source(max_groups);
}

static inline void end(void)
{
	char command[PATH_MAX + 16];

	if (source)
		source->ops->free(source);
	source = NULL;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	EXPECT_EQ(system(command), 0);
}

static inline void path_of(uint32_t i, char *ret, size_t size)
{
	const struct source_group *g = tree.group[i];

	if (!i) {
		*ret = '\0';
		return;
	}
	path_of(g->parent, ret, size);
	snprintf(ret + strlen(ret), size - strlen(ret), "/%s", g->name);
}

/* What must be so after every pass. */
static inline void check_tree(void)
{
	uint32_t open[1024] = { 0 }, depth = 0; /* the path to the group before */

	for (uint32_t i = 0; i < tree.count; i++) {
		const struct source_group *g = tree.group[i];
		struct stat st;
		char path[3 * PATH_MAX];

		if (!i) {
			EXPECT(!g->parent && !*g->name);
		} else {
			/* pre-order: the parent is on the path to the group before */
			while (depth && open[depth] != g->parent)
				depth--;
			if (!EXPECT(open[depth] == g->parent, "%u: parent %u", i, g->parent))
				return;
			if (++depth == 1024)
				return;
			if (tree.group[open[depth]]->parent == g->parent && open[depth] > g->parent)
				EXPECT(tree.group[open[depth]]->id < g->id, "%s", g->name);
			open[depth] = i;
			open[depth + 1 < 1024 ? depth + 1 : depth] = 0;
		}
		EXPECT(g->changed >= 1 && g->changed <= tree.pass, "%s", g->name);
		for (unsigned s = 0; s < HOST_NSTATS; s++)
			EXPECT(g->present >> s & 1 || !g->value[s]);
		path_of(i, path, sizeof(path));
		if (strlen(at(path)) < PATH_MAX && !stat(at(path), &st))
			EXPECT(st.st_ino == g->id, "%s: %llu", path, (unsigned long long)g->id);
	}
}

static inline int pass(void)
{
	uint64_t before = tree.pass, now = clock_ns();
	int r = source->ops->pass(source, &tree);

	if (r < 0)
		return r;
	EXPECT_EQ(tree.pass, before + 1);
	EXPECT(tree.begin_ns >= now && tree.begin_ns <= clock_ns());
	check_tree();
	return 0;
}

static inline struct source_group *find(const char *path)
{
	char full[3 * PATH_MAX];

	for (uint32_t i = 0; i < tree.count; i++) {
		path_of(i, full, sizeof(full));
		if (!strcmp(full, path))
			return tree.group[i];
	}
	return NULL;
}

static inline uint64_t usage(const char *path)
{
	struct source_group *g = find(path);

	return g && g->present >> HOST_USAGE & 1 ? g->value[HOST_USAGE] / 1000 : UINT64_MAX;
}

/* Runs body in a child, for tests that change the process; its failed checks count here. */
static inline void in_child(void (*body)(void))
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		body();
		fflush(stdout);
		_exit(tap_skipped ? 77 : tap_bad ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("may not do this here");
	EXPECT(WIFEXITED(status) && !WEXITSTATUS(status), "status 0x%x", (unsigned)status);
}

#endif
