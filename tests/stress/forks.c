/* SPDX-License-Identifier: MIT */
/*
 * fork() while threads update: children, many of them, find the tree gone for updates and there for
 * reads, and do no harm by closing it; the parent loses nothing. One child outlives its parent.
 */
#include "stress/stress.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#define UPDATERS 2u

static struct freshet_tree *tree;
static struct freshet_handle group;
static uint32_t stop;

static void *update(void *arg)
{
	const int64_t one[3] = { 1, 1, 1 };
	uint64_t *done = arg;

	while (!load_relaxed(&stop)) {
		EXPECT_EQ(freshet_add(&group, OPS, 1), 0);
		EXPECT_EQ(freshet_add_set(&group, A, 3, one), 0);
		store_relaxed(done, *done + 1);
	}
	return NULL;
}

static void *flush(void *arg)
{
	while (!load_relaxed(&stop)) {
		EXPECT_EQ(freshet_flush(tree), 0);
		stress_nap(100000);
	}
	return NULL;
}

/* In a child. 0, or the number of what went wrong. */
static int be_child(uint64_t known)
{
	const struct freshet_view *v = freshet_view_of(tree);
	const int64_t one[3] = { 1, 1, 1 };
	volatile unsigned three = 3;
	struct freshet_handle h;
	uint64_t value, present;

	if (freshet_add(&group, OPS, 1) != -ECHILD || freshet_add(&group, BUSY, -1) != -ECHILD)
		return 1;
	if (freshet_add_set(&group, A, 3, one) != -ECHILD ||
	    freshet_add_set(&group, A, three, one) != -ECHILD)
		return 2;
	if (freshet_observe(&group, 0, 7) != -ECHILD)
		return 3;
	if (freshet_create(tree, &group, "child", 0, &h) != -ECHILD ||
	    freshet_remove(tree, &group, 0) != -ECHILD || freshet_flush(tree) != -ECHILD ||
	    freshet_lookup(tree, &group, "child", &h) != -ECHILD)
		return 4;
	/* The parent goes on, and is seen to. */
	for (unsigned i = 0; i < 3; i++) {
		if (freshet_read(v, group.group, OPS, 1, &value, &present, NULL))
			return 5;
		if (value < known)
			return 6;
		known = value;
	}
	if (freshet_producer(v) != FRESHET_ALIVE)
		return 7;
	freshet_close(tree);
	return access(stress_path, F_OK) ? 8 : 0;
}

TEST(storm)
{
	uint64_t done[UPDATERS] = { 0 }, until, forks = 0, sum = 0;
	pthread_t thread[UPDATERS + 1];
	struct freshet_handle root;

	stress_make_path();
	REQUIRE(stress_open(stress_path, 16, 0, &tree) == 0);
	root = freshet_tree_root(tree);
	REQUIRE(freshet_create(tree, &root, "g", 0, &group) == 0);
	stop = 0;
	for (unsigned i = 0; i < UPDATERS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, update, &done[i]) == 0);
	REQUIRE(pthread_create(&thread[UPDATERS], NULL, flush, NULL) == 0);
	until = clock_ns() + stress.ns;
	while (clock_ns() < until || forks < 12) {
		pid_t pid[4];

		for (unsigned i = 0; i < 4; i++) {
			uint64_t known = load_acquire(&done[0]) + load_acquire(&done[1]);

			pid[i] = fork();
			if (pid[i] == 0)
				_exit(be_child(known));
			REQUIRE(pid[i] > 0);
			forks++;
		}
		for (unsigned i = 0; i < 4; i++) {
			int status;

			REQUIRE(waitpid(pid[i], &status, 0) == pid[i]);
			EXPECT(status == 0, "child: %x", status);
		}
	}
	store_relaxed(&stop, 1);
	for (unsigned i = 0; i <= UPDATERS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < UPDATERS; i++)
		sum += done[i];
	EXPECT_EQ(stress_read(freshet_view_of(tree), root.group, OPS), sum);
	EXPECT_EQ(stress_read(freshet_view_of(tree), root.group, C), sum);
	printf("# %llu forks beside %llu updates\n", (unsigned long long)forks,
	       (unsigned long long)sum);
	freshet_close(tree);
	EXPECT(access(stress_path, F_OK) != 0, "the file stays");
	stress_remove();
}

/* Waits for the end of process ppid, and then says what it sees. */
static int outlive(pid_t ppid, uint64_t known)
{
	const struct freshet_view *v = freshet_view_of(tree);
	uint64_t value, present;

	while (getppid() == ppid)
		stress_nap(1000000);
	if (freshet_producer(v) != FRESHET_GONE)
		return 10;
	if (freshet_read(v, group.group, OPS, 1, &value, &present, NULL) || value != known)
		return 11;
	if (freshet_add(&group, OPS, 1) != -ECHILD)
		return 12;
	freshet_close(tree);
	return access(stress_path, F_OK) ? 13 : 0;
}

/* A process that makes a tree, forks a child and is killed. The child's verdict comes down a pipe. */
TEST(child_survives)
{
	struct freshet_handle root;
	int fd[2], verdict = -1, status;
	pid_t pid;

	stress_make_path();
	REQUIRE(pipe(fd) == 0);
	pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		if (stress_open(stress_path, 16, 0, &tree))
			_exit(1);
		root = freshet_tree_root(tree);
		if (freshet_create(tree, &root, "g", 0, &group))
			_exit(2);
		for (unsigned i = 0; i < 1000; i++)
			freshet_add(&group, OPS, 1);
		pid = getpid();
		if (fork() == 0) {
			verdict = outlive(pid, 1000);
			if (write(fd[1], &verdict, sizeof(verdict)) < 0)
				_exit(1);
			_exit(0);
		}
		kill(getpid(), SIGKILL);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFSIGNALED(status), "%x", status);
	close(fd[1]);
	EXPECT(read(fd[0], &verdict, sizeof(verdict)) == sizeof(verdict));
	EXPECT_EQ(verdict, 0);
	close(fd[0]);
	/* And the path is free for the next. */
	EXPECT_EQ(stress_open(stress_path, 16, 0, &tree), 0);
	freshet_close(tree);
	stress_remove();
}

STRESS_MAIN(1)
