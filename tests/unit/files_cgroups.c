/* SPDX-License-Identifier: MIT */
/* Source "files" on real cgroups, against what a plain reader of cpu.stat sees. */
#include <time.h>

#include "files_fixture.h"
#include "source/mount.h"
#include "source/parse.h"

/* A cgroup of our own as the root; false: this machine does not let us. */
static bool begin_cgroup(void)
{
	struct cgroup_mount m;

	memset(&tree, 0, sizeof(tree));
	source = NULL;
	if (mount_find(&m) < 0)
		return false;
	snprintf(root, sizeof(root), "%.4000s/freshet-unit-files-%d", m.path, getpid());
	return !mkdir(root, 0755);
}

static void end_cgroup(void)
{
	source->ops->free(source);
	EXPECT(!rmdir(root) || errno == ENOENT, "%s", strerror(errno));
}

/* Uses 20 ms of CPU in the group. */
static void burn(const char *path)
{
	char procs[PATH_MAX];
	pid_t pid;

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int fd = open(at(procs), O_WRONLY | O_CLOEXEC);
		clock_t begin_ = clock();

		if (fd < 0 || write(fd, "0", 1) != 1)
			_exit(1);
		while (clock() - begin_ < CLOCKS_PER_SEC / 50)
			;
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

/* cpu.stat as a plain reader sees it. */
static uint64_t direct(const char *path, uint64_t value[HOST_NSTATS])
{
	char file[PATH_MAX], text[4096];
	uint64_t present = 0;
	ssize_t n;
	int fd;

	memset(value, 0, HOST_NSTATS * sizeof(*value));
	snprintf(file, sizeof(file), "%s/cpu.stat", path);
	fd = open(at(file), O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text));
	close(fd);
	EXPECT(n > 0 && !parse_cpu_stat(text, (size_t)n, value, &present), "%s", path);
	return present;
}

/* A pass reads what a direct read gives right before and right after it. */
static void expect_as_kernel(const char *const *path, size_t n)
{
	uint64_t before[4][HOST_NSTATS], after[HOST_NSTATS];

	for (size_t i = 0; i < n; i++)
		direct(path[i], before[i]);
	EXPECT_EQ(source->ops->pass(source, &tree), 0);
	for (size_t i = 0; i < n; i++) {
		struct source_group *g = find(path[i]);
		uint64_t present = direct(path[i], after);

		if (!EXPECT(g != NULL, "%s", path[i]))
			continue;
		EXPECT_EQ(g->present, present);
		for (unsigned s = 0; s < HOST_NSTATS; s++)
			EXPECT(before[i][s] <= g->value[s] && g->value[s] <= after[s],
			       "%s %s: %llu <= %llu <= %llu", path[i], host_stats[s].key,
			       (unsigned long long)before[i][s], (unsigned long long)g->value[s],
			       (unsigned long long)after[s]);
	}
}

TEST(real_cgroups)
{
	static const char *const path[] = { "", "/a", "/a/b\"c", "/a/idle" };

	if (!begin_cgroup())
		SKIP("no cgroup2, or may not make cgroups");
	for (size_t i = 1; i < 4; i++)
		EXPECT(!mkdir(at(path[i]), 0755));
	if (!open_source(100)) {
		expect_as_kernel(path, 4);
		burn(path[2]);
		for (int i = 0; i < 3; i++)
			expect_as_kernel(path, 4);
		EXPECT(usage("/a/b\"c") >= 20000, "%llu", (unsigned long long)usage("/a/b\"c"));
		EXPECT(usage("") >= 20000);
		EXPECT_EQ(usage("/a/idle"), 0);
		check_tree();
	}
	for (size_t i = 4; i-- > 1;)
		EXPECT(!rmdir(at(path[i])));
	end_cgroup();
}

static void drop_cgroup(void)
{
	EXPECT(!rmdir(at("/a/x")));
}

TEST(real_cgroups_come_and_go)
{
	uint64_t shape, id;

	if (!begin_cgroup())
		SKIP("no cgroup2, or may not make cgroups");
	mkdir(at("/a"), 0755);
	mkdir(at("/a/x"), 0755);
	mkdir(at("/b"), 0755);
	if (open_source(100))
		return;
	burn("/a/x");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 4);
	EXPECT_EQ(pass(), 0);
	shape = tree.shape;
	REQUIRE(find("/a/x"));
	id = find("/a/x")->id;
	EXPECT(usage("/a/x") >= 20000);
	/* as many as before, of the same names: the kernel's count alone would not tell */
	EXPECT(!rmdir(at("/a/x")));
	EXPECT(!mkdir(at("/a/x"), 0755));
	EXPECT_EQ(pass(), 0);
	REQUIRE(find("/a/x"));
	EXPECT(find("/a/x")->id != id && tree.shape != shape);
	EXPECT_EQ(tree.count, 4);
	EXPECT_EQ(usage("/a/x"), 0);
	EXPECT(usage("/a") >= 20000);
	/* elsewhere */
	EXPECT(!rmdir(at("/a/x")));
	EXPECT(!mkdir(at("/b/y"), 0755));
	EXPECT_EQ(pass(), 0);
	EXPECT(find("/b/y") && !find("/a/x"));
	/* in the middle of a pass, which is a walk as the count has changed */
	EXPECT(!mkdir(at("/a/x"), 0755));
	hook = drop_cgroup;
	hook_name = "x";
	EXPECT_EQ(pass(), 0);
	EXPECT(!hook);
	EXPECT_EQ(tree.gone, 1);
	EXPECT_EQ(tree.count, 4);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.gone, 0);
	EXPECT(!rmdir(at("/b/y")) && !rmdir(at("/a")) && !rmdir(at("/b")));
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 1);
	EXPECT(!rmdir(root));
	EXPECT_EQ(pass(), -ENODEV);
	end_cgroup();
}

TEST(the_real_root)
{
	static const char *const path[] = { "" };
	struct cgroup_mount m;

	if (mount_find(&m) < 0)
		SKIP("no cgroup2");
	memset(&tree, 0, sizeof(tree));
	strcpy(root, m.path);
	if (open_source(65536))
		return;
	expect_as_kernel(path, 1);
	expect_as_kernel(path, 1);
	EXPECT(usage("") != UINT64_MAX);
	source->ops->free(source);
}

TAP_MAIN
