/* SPDX-License-Identifier: MIT */
/* Source "files" on trees of plain files, which can be changed at will. */
#include "files_fixture.h"

TEST(a_tree)
{
	if (begin(100))
		return;
	make("/b", 10);
	make("/a", 20);
	make("/a/x", 5);
	make("/a/x/deep", 4);
	make("/b/x", 6);
	mkdir(at("/a/cpu.stat.d"), 0755);
	put("/memory.stat", "anon 1\n");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 7);
	EXPECT_EQ(tree.left_out, 0);
	EXPECT_EQ(tree.gone, 0);
	EXPECT_EQ(usage(""), 1000);
	EXPECT_EQ(usage("/a/x/deep"), 4);
	EXPECT_EQ(usage("/b/x"), 6);
	REQUIRE(find("/a") && find("/a/cpu.stat.d"));
	EXPECT_EQ(find("/a")->present,
		  1 << HOST_USAGE | 1 << HOST_USER | 1 << HOST_SYSTEM | 1 << HOST_NICE);
	EXPECT_EQ(find("/a")->value[HOST_USER], 20000);
	EXPECT_EQ(find("/a")->slot, UINT32_MAX);
	EXPECT_EQ(find("/a/cpu.stat.d")->present, 0);
	end();
}

TEST(only_what_changed_is_marked)
{
	struct source_group *a, *b;
	uint64_t shape;

	if (begin(100))
		return;
	make("/a", 1);
	make("/b", 1);
	EXPECT_EQ(pass(), 0);
	shape = tree.shape;
	a = find("/a");
	b = find("/b");
	REQUIRE(a && b);
	EXPECT_EQ(a->changed, 1);
	a->slot = 7;
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.shape, shape);
	EXPECT_EQ(a->changed, 1);
	put("/a/cpu.stat", "usage_usec 2\nuser_usec 1\nsystem_usec 0\nnice_usec 0\n");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(a->changed, 4);
	EXPECT_EQ(b->changed, 1);
	EXPECT_EQ(tree.group[0]->changed, 1);
	EXPECT_EQ(usage("/a"), 2);
	/* a column that goes away is a change too, of no other column */
	put("/b/cpu.stat", "usage_usec 1\nuser_usec 1\nsystem_usec 0\n");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(b->changed, 5);
	EXPECT_EQ(b->present, 1 << HOST_USAGE | 1 << HOST_USER | 1 << HOST_SYSTEM);
	EXPECT_EQ(a->changed, 4);
	/* the tree grows: the others stay what and where they are, slots too */
	make("/a/new", 3);
	EXPECT_EQ(pass(), 0);
	EXPECT(tree.shape != shape);
	EXPECT(find("/a") == a && find("/b") == b);
	EXPECT_EQ(a->changed, 4);
	EXPECT_EQ(a->slot, 7);
	REQUIRE(find("/a/new"));
	EXPECT_EQ(find("/a/new")->changed, 6);
	EXPECT_EQ(find("/a/new")->slot, UINT32_MAX);
	shape = tree.shape;
	drop("/a/new");
	EXPECT_EQ(pass(), 0);
	EXPECT(tree.shape != shape);
	EXPECT_EQ(tree.gone, 0);
	EXPECT(!find("/a/new") && find("/a") == a);
	end();
}

TEST(made_again_is_another_group)
{
	uint64_t shape, id;

	if (begin(100))
		return;
	make("/a", 50);
	make("/a/x", 50);
	EXPECT_EQ(pass(), 0);
	REQUIRE(find("/a"));
	shape = tree.shape;
	id = find("/a")->id;
	find("/a")->slot = 3;
	make("/new", 2); /* while the old one is there, so that the inode is another */
	drop("/a/x");
	drop("/a");
	EXPECT(!rename(at("/new"), at("/a")));
	EXPECT_EQ(pass(), 0);
	REQUIRE(find("/a"));
	EXPECT(tree.shape != shape);
	EXPECT_EQ(tree.count, 2);
	EXPECT(find("/a")->id != id);
	EXPECT_EQ(find("/a")->slot, UINT32_MAX);
	EXPECT_EQ(find("/a")->changed, 2);
	EXPECT_EQ(usage("/a"), 2); /* and not the old one's 50 */
	end();
}

TEST(counters_never_fall)
{
	if (begin(100))
		return;
	put("/cpu.stat", "usage_usec 100\nuser_usec 60\nsystem_usec 40\n");
	EXPECT_EQ(pass(), 0);
	put("/cpu.stat", "usage_usec 90\nuser_usec 61\nsystem_usec 29\n");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.group[0]->value[HOST_USAGE], 100000);
	EXPECT_EQ(tree.group[0]->value[HOST_USER], 61000);
	EXPECT_EQ(tree.group[0]->value[HOST_SYSTEM], 40000);
	end();
}

TEST(absent_is_not_zero)
{
	if (begin(100))
		return;
	make("/missing", 1);
	unlink(at("/missing/cpu.stat"));
	make("/empty", 1);
	put("/empty/cpu.stat", "");
	make("/garbage", 1);
	put("/garbage/cpu.stat", "usage_usec\nusage_usec -1\n\nusage_usec 12");
	make("/directory", 1);
	unlink(at("/directory/cpu.stat"));
	mkdir(at("/directory/cpu.stat"), 0755);
	make("/link", 1);
	unlink(at("/link/cpu.stat"));
	EXPECT(!symlink("../cpu.stat", at("/link/cpu.stat")));
	EXPECT(!symlink("garbage", at("/linked")));
	make("/some", 1);
	put("/some/cpu.stat", "usage_usec 5\nnr_periods 6\n");
	make("/missing/child", 7);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 9); /* directory/cpu.stat is a group to us */
	EXPECT_EQ(tree.gone, 0);
	REQUIRE(find("/missing") && find("/empty") && find("/garbage") && find("/directory") &&
		find("/link") && find("/some"));
	EXPECT_EQ(find("/missing")->present, 0);
	EXPECT_EQ(find("/empty")->present, 0);
	EXPECT_EQ(find("/garbage")->present, 0);
	EXPECT_EQ(find("/directory")->present, 0);
	EXPECT_EQ(find("/link")->present, 0);
	EXPECT_EQ(find("/some")->present, 1 << HOST_USAGE | 1 << HOST_PERIODS);
	EXPECT_EQ(find("/some")->value[HOST_PERIODS], 6);
	EXPECT_EQ(usage("/missing/child"), 7);
	/* numbers can come, go and come back */
	put("/missing/cpu.stat", "usage_usec 9\n");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(usage("/missing"), 9);
	put("/missing/cpu.stat", "usage");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(find("/missing")->present, 0);
	EXPECT_EQ(find("/missing")->changed, 3);
	put("/missing/cpu.stat", "usage_usec 10\n");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(usage("/missing"), 10);
	end();
}

static void unreadable_body(void)
{
	if (begin(100))
		return;
	chmod(root, 0755);
	make("/file", 1);
	chmod(at("/file/cpu.stat"), 0);
	make("/file/child", 2);
	make("/closed", 3);
	make("/closed/child", 4);
	chmod(at("/closed"), 0);
	make("/open", 5);
	if (!geteuid() && seteuid(65534) < 0)
		SKIP("cannot become another user");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 5);
	EXPECT_EQ(tree.gone, 0);
	REQUIRE(find("/file") && find("/closed"));
	EXPECT_EQ(find("/file")->present, 0);
	EXPECT_EQ(find("/closed")->present, 0);
	EXPECT(!find("/closed/child"));
	EXPECT_EQ(usage("/file/child"), 2);
	EXPECT_EQ(usage("/open"), 5);
	if (getuid() != geteuid())
		EXPECT(!seteuid(getuid()));
	chmod(at("/closed"), 0755);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(usage("/closed"), 3);
	EXPECT_EQ(usage("/closed/child"), 4);
	end();
}

TEST(unreadable_groups_stay_in_the_tree)
{
	in_child(unreadable_body);
}

TEST(odd_names)
{
	char longest[258];
	static const char *const name[] = { "/a\"b\\c d",
					    "/tab\tnew\nline",
					    "/\xc3\xa9\xe2\x82\xac",
					    "/\xff\xfe",
					    "/...",
					    "/.hidden",
					    "/ ",
					    "/%s%n",
					    "/-rf",
					    "/a.b:c{}=\"" };
	size_t n = sizeof(name) / sizeof(*name);

	if (begin(100))
		return;
	memset(longest, 'n', sizeof(longest));
	longest[0] = '/';
	longest[256] = '\0';
	make(longest, 99);
	for (size_t i = 0; i < n; i++)
		make(name[i], (unsigned)i);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, n + 2);
	for (size_t i = 0; i < n; i++)
		EXPECT(usage(name[i]) == i, "%s", name[i]);
	EXPECT_EQ(usage(longest), 99);
	end();
}

/* A chain of levels directories with names of len bytes below dir, each with a cpu.stat. */
static void make_chain(unsigned levels, size_t len)
{
	int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[256];

	memset(name, 'd', sizeof(name));
	name[len] = '\0';
	for (unsigned i = 1; i <= levels; i++) {
		int below, file;

		EXPECT(!mkdirat(dir, name, 0755), "%s", strerror(errno));
		below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(dir);
		dir = below;
		file = openat(dir, "cpu.stat", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
		EXPECT(dprintf(file, "usage_usec %u\n", i) > 0);
		close(file);
	}
	close(dir);
}

TEST(fifty_deep_with_the_longest_names)
{
	if (begin(100))
		return;
	make_chain(50, 255);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(pass(), 0);
	REQUIRE(tree.count == 51);
	for (uint32_t i = 1; i < tree.count; i++) {
		EXPECT_EQ(tree.group[i]->parent, i - 1);
		EXPECT_EQ(tree.group[i]->value[HOST_USAGE], i * 1000);
		EXPECT_EQ(strlen(tree.group[i]->name), 255);
	}
	end();
}

TEST(deeper_than_sense_is_left_out)
{
	if (begin(10000))
		return;
	make_chain(600, 1);
	make("/z", 5);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 1 + 512 + 1);
	EXPECT_EQ(tree.left_out, 1); /* at least: what it hides is not counted here */
	EXPECT_EQ(usage("/z"), 5);
	/* but is where there is a cgroup.stat to tell */
	source->ops->free(source);
	tree.pass = 0;
	put("/cgroup.stat", "nr_descendants 601\nnr_dying_descendants 7\n");
	if (open_source(10000))
		return;
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 1 + 512 + 1);
	EXPECT_EQ(tree.left_out, 88);
	end();
}

TEST(max_groups)
{
	uint64_t shape;

	if (begin(4))
		return;
	make("/a", 1);
	make("/b", 2);
	make("/c", 3);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 4);
	EXPECT_EQ(tree.left_out, 0);
	/* full: who is known stays, who is new waits */
	make("/a/x", 4);
	make("/d", 5);
	shape = tree.shape;
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 4);
	EXPECT_EQ(tree.left_out, 2);
	EXPECT_EQ(tree.shape, shape);
	EXPECT(find("/a") && find("/b") && find("/c"));
	drop("/b");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 4);
	EXPECT_EQ(tree.left_out, 1);
	EXPECT(find("/a") && find("/c") && !find("/b"));
	drop("/c");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 4);
	EXPECT_EQ(tree.left_out, 0);
	EXPECT_EQ(usage("/a/x"), 4);
	EXPECT_EQ(usage("/d"), 5);
	end();
}

TEST(an_unchanged_tree_is_not_walked)
{
	if (begin(100))
		return;
	source->ops->free(source);
	make("/a", 1);
	put("/cgroup.stat", "nr_descendants 1\nnr_dying_descendants 0\n");
	if (open_source(100))
		return;
	EXPECT_EQ(pass(), 0);
	make("/b", 2); /* which no kernel would do without counting it */
	put("/a/cpu.stat", "usage_usec 11\n");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 2);
	EXPECT_EQ(usage("/a"), 11);
	put("/cgroup.stat", "nr_dying_descendants 1\nnr_descendants 2\n");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 3);
	EXPECT_EQ(usage("/b"), 2);
	/* a count that makes no sense is none */
	make("/c", 3);
	put("/cgroup.stat", "xnr_descendants 2\n");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 4);
	make("/d", 4);
	put("/cgroup.stat", "nr_descendants 3");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.count, 5);
	end();
}

static void drop_a(void)
{
	drop("/a");
}

static void drop_marked_a(void)
{
	rmdir(at("/a/marker"));
	drop("/a");
}

TEST(gone_between_discovery_and_read)
{
	if (begin(100))
		return;
	make("/b", 2);
	/* new, removed when its parent had been listed */
	make("/a", 1);
	hook = drop_a;
	hook_name = "a";
	EXPECT_EQ(pass(), 0);
	EXPECT(!hook);
	EXPECT_EQ(tree.gone, 1);
	EXPECT_EQ(tree.count, 2);
	EXPECT_EQ(usage("/b"), 2);
	/* new, removed when it had been listed itself: its cpu.stat was there and is no more */
	make("/a", 1);
	mkdir(at("/a/marker"), 0755);
	hook = drop_marked_a;
	hook_name = "marker";
	EXPECT_EQ(pass(), 0);
	EXPECT(!hook);
	EXPECT_EQ(tree.gone, 1);
	EXPECT_EQ(tree.count, 2);
	/* known */
	make("/a", 1);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.gone, 0);
	EXPECT_EQ(tree.count, 3);
	hook = drop_a;
	hook_name = "a";
	EXPECT_EQ(pass(), 0);
	EXPECT(!hook);
	EXPECT_EQ(tree.gone, 1);
	EXPECT_EQ(tree.count, 2);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(tree.gone, 0);
	end();
}

TEST(no_root)
{
	struct source_options options = { .root = "/nonexistent/freshet", .max_groups = 10 };
	char why[256] = "";
	struct source *s = NULL;

	EXPECT_EQ(source_files_open(&options, &s, why, sizeof(why)), -ENOENT);
	EXPECT(strstr(why, "/nonexistent/freshet"), "%s", why);
	options.root = "/proc/self/stat";
	EXPECT_EQ(source_files_open(&options, &s, why, sizeof(why)), -ENOTDIR);
	EXPECT(!s);
}

TEST(root_removed)
{
	if (begin(100))
		return;
	EXPECT_EQ(pass(), 0);
	drop("");
	EXPECT_EQ(pass(), -ENODEV);
	EXPECT_EQ(pass(), -ENODEV);
	EXPECT_EQ(tree.pass, 1);
	end();
}

TAP_MAIN
