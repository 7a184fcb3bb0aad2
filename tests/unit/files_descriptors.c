/* SPDX-License-Identifier: MIT */
/* Source "files" when descriptors run out. */
#include <sys/resource.h>

#include "files_fixture.h"

static void set_limit(rlim_t soft, rlim_t hard)
{
	struct rlimit limit = { soft, hard };

	EXPECT(!setrlimit(RLIMIT_NOFILE, &limit));
}

static rlim_t soft_limit(void)
{
	struct rlimit limit = { 0, 0 };

	getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur;
}

/* Opens descriptors until none is left; how many. */
static int exhaust(int fd[], int max)
{
	int n = 0;

	while (n < max && (fd[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n++;
	return n;
}

static void set_hundred(unsigned round)
{
	char path[32], text[32];

	for (unsigned i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), "/g%u/cpu.stat", i);
		snprintf(text, sizeof(text), "usage_usec %u\n", 1000 * round + i);
		put(path, text);
	}
}

static void check_hundred(unsigned round)
{
	char path[32];

	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 101);
	EXPECT_EQ(tree.gone, 0);
	EXPECT_EQ(tree.left_out, 0);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), "/g%u", i);
		EXPECT(usage(path) == 1000 * round + i, "%s: %llu", path,
		       (unsigned long long)usage(path));
	}
}

static int begin_hundred(void)
{
	char path[32];

	if (begin(1000))
		return -1;
	for (unsigned i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), "/g%u", i);
		make(path, i);
	}
	return 0;
}

static void few_descriptors_body(void)
{
	uint64_t shape;
	int fd[100], n, left;

	set_limit(40, 60);
	if (begin_hundred())
		return;
	EXPECT_EQ(soft_limit(), 60);
	source->ops->free(source);
	put("/cgroup.stat", "nr_descendants 100\n");
	if (open_source(1000))
		return;
	check_hundred(0);
	shape = tree.shape;
	for (unsigned round = 1; round < 4; round++) {
		set_hundred(round);
		check_hundred(round);
	}
	/* a quarter of them is left to others, and when those take all, some kept ones are given up */
	set_hundred(4);
	n = left = exhaust(fd, 100);
	EXPECT(n >= 8 && n <= 15, "%d", n);
	check_hundred(4);
	check_hundred(4);
	while (n)
		close(fd[--n]);
	set_hundred(5);
	check_hundred(5);
	/* and kept again when they are there again */
	n = exhaust(fd, 100);
	EXPECT_EQ(n, left);
	EXPECT_EQ(tree.shape, shape);
	while (n)
		close(fd[--n]);
	end();
}

TEST(few_descriptors)
{
	in_child(few_descriptors_body);
}

static void replace_last(void)
{
	drop("/g99");
	EXPECT(!rename(at("/new"), at("/g99")));
}

/* A group whose inode number is above another's, so that a walk comes to it later. File systems give
 * freed numbers again: what is too low is kept aside until the right one is there. */
static void make_above(const char *path, uint64_t above)
{
	char aside[16][PATH_MAX + 8], file[PATH_MAX + 32];
	struct stat st = { 0 };
	int n = 0;

	make(path, 7);
	while (!stat(at(path), &st) && st.st_ino <= above && n < 16) {
		snprintf(aside[n], sizeof(aside[n]), "%s-%d", root, n);
		EXPECT(!rename(at(path), aside[n]));
		n++;
		make(path, 7);
	}
	EXPECT(st.st_ino > above);
	while (n) {
		snprintf(file, sizeof(file), "%s/cpu.stat", aside[--n]);
		unlink(file);
		rmdir(aside[n]);
	}
}

/* The last group has no descriptor that would tell that it is another one now. */
static void replaced_body(void)
{
	uint64_t id;

	set_limit(60, 60);
	if (begin_hundred())
		return;
	check_hundred(0);
	REQUIRE(find("/g99"));
	id = find("/g99")->id;
	make_above("/new", id); /* will take the name when the root has been listed */
	hook = replace_last;
	hook_name = "g99";
	EXPECT_EQ(pass(), 0);
	EXPECT(!hook);
	EXPECT_EQ(tree.gone, 2); /* neither is where it was listed */
	EXPECT_EQ(tree.count, 100);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.gone, 0);
	REQUIRE(find("/g99"));
	EXPECT(find("/g99")->id != id);
	EXPECT_EQ(usage("/g99"), 7);
	end();
}

TEST(replaced_between_discovery_and_read)
{
	in_child(replaced_body);
}

static void no_descriptors_body(void)
{
	int fd[100], n;

	set_limit(60, 60);
	if (begin_hundred())
		return;
	n = exhaust(fd, 100);
	EXPECT_EQ(pass(), -EMFILE);
	close(fd[--n]);
	EXPECT_EQ(pass(), -EMFILE);
	close(fd[--n]); /* two are enough: a directory and a file */
	check_hundred(0);
	EXPECT_EQ(tree.pass, 1);
	while (n)
		close(fd[--n]);
	set_hundred(1);
	check_hundred(1);
	end();
}

TEST(no_descriptors)
{
	in_child(no_descriptors_body);
}

static void enough_descriptors_body(void)
{
	set_limit(50, 4000);
	if (begin_hundred())
		return;
	EXPECT_EQ(soft_limit(), 4000);
	check_hundred(0);
	end();
	/* a soft limit that is as high as it can be stays */
	set_limit(3000, 3000);
	if (begin(10))
		return;
	EXPECT_EQ(soft_limit(), 3000);
	end();
}

TEST(the_limit_of_descriptors_is_raised)
{
	in_child(enough_descriptors_body);
}

TAP_MAIN
