/* SPDX-License-Identifier: MIT */
/* Where a program's segment lies, who may have it, and what is left of it after fork, death and
 * close. */
#include "unit/tree_help.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/segment_help.h"

static int open_again(const char *path)
{
	struct freshet_tree *tree;
	int r = freshet_open(path, &tree_schema, NULL, &tree);

	if (r == 0)
		freshet_close(tree);
	return r;
}

/* What a function gives in a forked child: 0 to 255. */
static int in_child(int (*f)(void *), void *arg)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(f(arg));
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static int child_opens(void *path)
{
	return -open_again(path);
}

ON_BOTH(one_writer)
{
	char *dir = help_dir(), *path = help_path(dir, "segment"), *other = help_path(dir, "other");
	struct freshet_tree *tree = tree_open(path, 0, backend), *second;
	struct freshet_view *view;
	struct stat st;

	EXPECT_EQ(open_again(path), -EBUSY);
	EXPECT_EQ(in_child(child_opens, path), EBUSY);
	EXPECT_EQ(stat(path, &st), 0);
	EXPECT_EQ(st.st_mode & 07777, 0640);
	/* Another path is another tree, in the same process, too. */
	second = tree_open(other, 0, backend);
	freshet_close(second);
	EXPECT_EQ(access(other, F_OK), -1);

	EXPECT_EQ(freshet_attach(path, &view), 0);
	EXPECT_EQ(freshet_producer(view), FRESHET_ALIVE);
	freshet_close(tree);
	EXPECT_EQ(access(path, F_OK), -1);
	EXPECT_EQ(freshet_producer(view), FRESHET_GONE);
	EXPECT_EQ(open_again(path), 0);
	freshet_detach(view);
	free(other);
	EXPECT_EQ(rmdir(dir), 0);
	free(path);
	free(dir);
}

TEST(bad_paths)
{
	char *dir = help_dir(), *path = help_path(dir, "segment");
	char *none = help_path(dir, "none/segment");

	EXPECT_EQ(mkdir(path, 0700), 0);
	EXPECT(open_again(path) < 0);
	EXPECT_EQ(rmdir(path), 0);
	EXPECT_EQ(open_again(none), -ENOENT);
	EXPECT_EQ(chmod(dir, 0777), 0);
	EXPECT_EQ(open_again(path), -EPERM);
	EXPECT_EQ(access(path, F_OK), -1);
	EXPECT_EQ(chmod(dir, 0700), 0);
	free(none);
	EXPECT_EQ(rmdir(dir), 0);
	free(path);
	free(dir);
}

/* With standard input, output and error closed, none of them becomes a file of the tree's. */
static int opens_without_stdio(void *path)
{
	struct freshet_tree *tree;
	struct freshet_view *view;
	int r;

	for (int fd = 0; fd < 3; fd++)
		close(fd);
	r = freshet_open(path, &tree_schema, NULL, &tree);
	if (r == 0)
		r = freshet_attach(path, &view);
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return 100 + fd;
	return -r;
}

static int opens_beyond_the_limit(void *path)
{
	const struct rlimit limit = { 8192, 8192 };

	return setrlimit(RLIMIT_FSIZE, &limit) ? 1 : -open_again(path);
}

TEST(descriptors_and_limits)
{
	char *dir = help_dir(), *path = help_path(dir, "segment");

	EXPECT_EQ(in_child(opens_without_stdio, path), 0);
	EXPECT_EQ(open_again(path), 0);
	EXPECT_EQ(in_child(opens_beyond_the_limit, path), EFBIG);
	EXPECT_EQ(in_child(opens_beyond_the_limit, NULL), EFBIG);
	EXPECT_EQ(rmdir(dir), 0);
	free(path);
	free(dir);
}

/* Counts 7 into /a of a tree of its own, says so and waits to be killed. */
static pid_t start_producer(const char *path, enum freshet_backend backend)
{
	int ready[2];
	pid_t pid;
	char c;

	fflush(stdout);
	if (pipe(ready) || (pid = fork()) < 0)
		return -1;
	if (pid == 0) {
		struct freshet_tree *tree = tree_open(path, 0, backend);
		struct freshet_handle a = tree_make(tree, freshet_tree_root(tree), "a", 0);

		c = (char)freshet_add(&a, REQUESTS, 7);
		if (write(ready[1], &c, 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1 || c != 0)
		pid = -1;
	close(ready[0]);
	return pid;
}

static int64_t requests_of(const struct freshet_view *view, const char *path)
{
	uint64_t value, present;
	struct freshet_group g;
	int r = freshet_find(view, path, &g);

	if (r == 0)
		r = freshet_read(view, g, REQUESTS, 1, &value, &present, NULL);
	return r ? r : (int64_t)value;
}

/* Another process reads what was counted and never flushed; so it does when the counting one is
 * dead; a new one begins at 0. */
ON_BOTH(killed_and_replaced)
{
	char *dir = help_dir(), *path = help_path(dir, "segment");
	pid_t pid = start_producer(path, backend);
	struct freshet_tree *tree;
	struct freshet_view *view;

	REQUIRE(pid > 0);
	REQUIRE(freshet_attach(path, &view) == 0);
	EXPECT_EQ(freshet_producer(view), FRESHET_ALIVE);
	EXPECT_EQ(freshet_is_live(view), 1);
	EXPECT_EQ(requests_of(view, "/a"), 7);
	EXPECT_EQ(requests_of(view, "/"), 7);
	EXPECT_EQ(open_again(path), -EBUSY);

	kill(pid, SIGKILL);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
	EXPECT_EQ(freshet_producer(view), FRESHET_GONE);
	EXPECT_EQ(requests_of(view, "/a"), 7);
	EXPECT_EQ(freshet_reattach(view), 0);

	tree = tree_open(path, 0, backend);
	EXPECT_EQ(freshet_producer(view), FRESHET_REPLACED);
	EXPECT_EQ(requests_of(view, "/a"), 7); /* the old one, still mapped */
	EXPECT_EQ(freshet_reattach(view), 1);
	EXPECT_EQ(requests_of(view, "/a"), -ENOENT);
	EXPECT_EQ(requests_of(view, "/"), 0);
	freshet_detach(view);
	freshet_close(tree);
	EXPECT_EQ(rmdir(dir), 0);
	free(path);
	free(dir);
}

struct forked {
	struct freshet_tree *tree;
	struct freshet_handle a;
};

/* The number of the first thing that is not so. */
static int child_of_fork(void *arg)
{
	struct forked *f = arg;
	struct freshet_handle none;
	const int64_t n[] = { 1, 1, 1 };

	if (freshet_add(&f->a, REQUESTS, 100) != -ECHILD)
		return 1;
	if (freshet_add(&f->a, OPEN, -100) != -ECHILD)
		return 2;
	if (freshet_add_set(&f->a, SET, 3, n) != -ECHILD)
		return 3;
	if (freshet_observe(&f->a, 0, 1) != -ECHILD)
		return 4;
	if (freshet_create(f->tree, &f->a, "x", 0, &none) != -ECHILD)
		return 5;
	if (freshet_remove(f->tree, &f->a, 0) != -ECHILD)
		return 6;
	if (freshet_flush(f->tree) != -ECHILD)
		return 7;
	if (tree_read(f->tree, f->a, REQUESTS) != 3)
		return 8;
	freshet_close(f->tree);
	return 0;
}

ON_BOTH(forked_child)
{
	char *dir = help_dir(), *path = help_path(dir, "segment");
	struct forked f = { .tree = tree_open(path, 0, backend) };
	struct freshet_view *view;

	f.a = tree_make(f.tree, freshet_tree_root(f.tree), "a", 0);
	EXPECT_EQ(freshet_add(&f.a, REQUESTS, 3), 0);
	EXPECT_EQ(in_child(child_of_fork, &f), 0);
	/* The parent's is as it was. */
	EXPECT_EQ(freshet_attach(path, &view), 0);
	EXPECT_EQ(freshet_producer(view), FRESHET_ALIVE);
	EXPECT_EQ(freshet_add(&f.a, REQUESTS, 1), 0);
	EXPECT_EQ(freshet_flush(f.tree), 0);
	EXPECT_EQ(requests_of(view, "/a"), 4);
	freshet_detach(view);
	freshet_close(f.tree);
	EXPECT_EQ(rmdir(dir), 0);
	free(path);
	free(dir);
}

TEST(auto_backend)
{
	struct freshet_tree *tree = tree_open(NULL, 0, FRESHET_AUTO);

	EXPECT_EQ(freshet_backend(tree), tree_has_rseq() ? FRESHET_RSEQ : FRESHET_FALLBACK);
	freshet_close(tree);
	freshet_close(NULL);
}

static int place_as_user(void *unused)
{
	char path[256], want[64];

	if (geteuid() == 0 && setresuid(65534, 65534, 65534))
		return 1;
	/* Directories of others, which cannot be made. */
	if (freshet_place("x", "/proc/self", path, sizeof(path)) >= 0 ||
	    freshet_place("x", "/nonexistent", path, sizeof(path)) != -ENOENT)
		return 2;
	snprintf(want, sizeof(want), "/tmp/freshet-%u/x", (unsigned)geteuid());
	for (int i = 0; i < 2; i++)
		if (freshet_place("x", i ? "" : NULL, path, sizeof(path)) || strcmp(path, want))
			return 3;
	*strrchr(want, '/') = '\0';
	rmdir(want);
	return 0;
}

TEST(places)
{
	static const char *const bad[] = { NULL,     "",      ".x",  "a/b",     "/run/freshet/a",
					   "x.lock", "x.new", "a b", "\xc3\xa4" };
	char *dir = help_dir(), *inside = help_path(dir, "freshet"), path[256], small[8];
	struct stat st;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT(freshet_place(bad[i], dir, path, sizeof(path)) == -EINVAL, "%s", bad[i]);
	EXPECT_EQ(freshet_place("name", dir, small, sizeof(small)), -ENAMETOOLONG);
	EXPECT_EQ(freshet_place("name", dir, path, sizeof(path)), 0);
	if (geteuid() == 0) {
		EXPECT(!strcmp(path, "/run/freshet/name"), "%s", path);
	} else {
		EXPECT(!strncmp(path, inside, strlen(inside)) && strstr(path, "/name"), "%s", path);
		EXPECT_EQ(stat(inside, &st), 0);
		EXPECT_EQ(rmdir(inside), 0);
	}
	EXPECT_EQ(in_child(place_as_user, NULL), 0);
	EXPECT_EQ(rmdir(dir), 0);
	free(inside);
	free(dir);
}

TAP_MAIN
