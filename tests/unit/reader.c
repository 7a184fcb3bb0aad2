/* SPDX-License-Identifier: MIT */
/* What was written is what is read: the tree, names, paths, numbers, the producer's particulars. */
#include "tap.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "unit/segment_help.h"

static struct writer *w;
static struct freshet_view *v;

static int open_both(unsigned max_groups)
{
	struct writer_options o = help_options(max_groups);

	return writer_open(NULL, &o, &w);
}

static void close_both(void)
{
	freshet_detach(v);
	writer_close(w);
	v = NULL;
	w = NULL;
}

/* /, /a, /a/b, /a/b/c, /a/d, /e */
static struct writer_node tree[6] = {
	{ 1, "ignored", 0, WRITER_NEW }, { 10, "a", 0, WRITER_NEW }, { 11, "b", 1, WRITER_NEW },
	{ 12, "c", 2, WRITER_NEW },      { 13, "d", 1, WRITER_NEW }, { 14, "e", 0, WRITER_NEW },
};

static int open_tree(void)
{
	if (open_both(100))
		return -1;
	for (int i = 0; i < 6; i++)
		tree[i].slot = WRITER_NEW;
	help_pass(w, tree, 6, 1);
	return freshet_attach_fd(writer_fd(w), &v);
}

TEST(nothing_published_yet)
{
	REQUIRE(open_both(10) == 0);
	EXPECT_EQ(freshet_attach_fd(writer_fd(w), &v), -EAGAIN);
	help_pass(w, tree, 0, 1);
	EXPECT_EQ(freshet_attach_fd(writer_fd(w), &v), 0);
	EXPECT_EQ(freshet_root(v, &(struct freshet_group){ 0 }), -ENOENT);
	close_both();
}

TEST(paths)
{
	static const struct {
		const char *path;
		int found; /* index in tree[], or -errno */
	} want[] = {
		{ "/", 0 },          { "", 0 },
		{ "//", 0 },         { "/a", 1 },
		{ "a", 1 },          { "/a/", 1 },
		{ "/a/b", 2 },       { "a//b", 2 },
		{ "/a/b/c", 3 },     { "/a/d", 4 },
		{ "/e", 5 },         { "/b", -ENOENT },
		{ "/a/e", -ENOENT }, { "/a/b/c/d", -ENOENT },
		{ "/aa", -ENOENT },  { "/A", -ENOENT },
		{ "/.", -EINVAL },   { "/x/..", -EINVAL },
		{ "../a", -EINVAL }, { "/a/./b", -EINVAL },
		{ "/...", -ENOENT },
	};
	struct freshet_snapshot *snap;

	REQUIRE(open_tree() == 0 && freshet_snapshot_new(&snap) == 0);
	EXPECT_EQ(freshet_snapshot_find(snap, "/", &(size_t){ 0 }), -ENOENT);
	EXPECT_EQ(freshet_snapshot_take(snap, v), 0);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct freshet_group g = { 77, 77 };
		size_t at = 77;
		int r = freshet_find(v, want[i].path, &g);
		int s = freshet_snapshot_find(snap, want[i].path, &at);

		if (want[i].found < 0) {
			EXPECT(r == want[i].found && g.slot == 77, "%s: %d", want[i].path, r);
			EXPECT(s == want[i].found && at == 77, "%s: %d", want[i].path, s);
		} else {
			EXPECT(r == 0 && g.slot == tree[want[i].found].slot, "%s: %d", want[i].path,
			       r);
			EXPECT(s == 0 && at == (size_t)want[i].found, "%s: %d", want[i].path, s);
		}
	}
	freshet_snapshot_free(snap);
	close_both();
}

TEST(info_children_path)
{
	static const char *const path[6] = { "/", "/a", "/a/b", "/a/b/c", "/a/d", "/e" };
	static const unsigned depth[6] = { 0, 1, 2, 3, 2, 1 }, below[6] = { 5, 3, 1, 0, 0, 0 };
	struct freshet_group g, child[2];
	struct freshet_info info;
	char buf[32];
	size_t count;

	REQUIRE(open_tree() == 0);
	for (unsigned i = 0; i < 6; i++) {
		size_t len = strlen(path[i]);

		REQUIRE(freshet_find(v, path[i], &g) == 0);
		EXPECT_EQ(freshet_info(v, g, &info), 0);
		EXPECT_EQ(info.id, tree[i].id);
		EXPECT_EQ(info.depth, depth[i]);
		EXPECT_EQ(info.descendants, below[i]);
		EXPECT(!strcmp(info.name, i ? tree[i].name : ""));
		if (i)
			EXPECT_EQ(info.parent.slot, tree[tree[i].parent].slot);
		EXPECT_EQ(info.parent.generation != 0, i != 0);
		EXPECT_EQ(freshet_path(v, g, buf, sizeof(buf)), 0);
		EXPECT(!strcmp(buf, path[i]), "%s", buf);
		EXPECT_EQ(freshet_path(v, g, buf, len + 1), 0);
		EXPECT_EQ(freshet_path(v, g, buf, len), -ENAMETOOLONG);
		EXPECT_EQ(freshet_path(v, g, buf, 0), -ENAMETOOLONG);
	}
	EXPECT_EQ(freshet_root(v, &g), 0);
	EXPECT_EQ(freshet_children(v, g, child, 2, &count), 0);
	EXPECT_EQ(count, 2);
	EXPECT_EQ(child[0].slot, tree[1].slot);
	EXPECT_EQ(child[1].slot, tree[5].slot);
	child[1].slot = 77;
	EXPECT_EQ(freshet_children(v, g, child, 1, &count), 0);
	EXPECT_EQ(count, 2);
	EXPECT_EQ(child[1].slot, 77);
	EXPECT_EQ(freshet_children(v, g, NULL, 0, &count), 0);
	EXPECT_EQ(count, 2);
	g.generation++;
	EXPECT_EQ(freshet_children(v, g, child, 2, &count), -ENOENT);
	EXPECT_EQ(freshet_info(v, g, &info), -ENOENT);
	EXPECT_EQ(freshet_path(v, g, buf, sizeof(buf)), -ENOENT);
	g = (struct freshet_group){ 99, 0 };
	EXPECT_EQ(freshet_info(v, g, &info), -ENOENT);
	close_both();
}

TEST(numbers)
{
	uint64_t values[COLUMNS + 1] = { 0 }, present;
	struct freshet_moment m, last;
	struct freshet_group g;
	uint32_t overflowed;

	REQUIRE(open_tree() == 0);
	EXPECT_EQ(help_pass(w, tree, 6, 0), 2);
	for (unsigned i = 0; i < 6; i++) {
		g = (struct freshet_group){ tree[i].slot, 1 };
		EXPECT_EQ(freshet_read_total(v, g, 0, COLUMNS, values, &present, &m), 0);
		EXPECT_EQ(m.pass, 2);
		EXPECT_EQ(present, 7);
		for (unsigned c = 0; c < COLUMNS; c++)
			EXPECT_EQ(values[c], help_value(2, tree[i].id, c));
	}
	/* A part of the columns. */
	values[1] = 77;
	EXPECT_EQ(freshet_read_total(v, g, 2, 1, values, &present, NULL), 0);
	EXPECT_EQ(values[0], help_value(2, tree[5].id, 2));
	EXPECT_EQ(values[1], 77);
	EXPECT_EQ(present, 1);
	EXPECT_EQ(freshet_read_total(v, g, 0, 0, values, &present, NULL), 0);
	EXPECT_EQ(present, 0);
	EXPECT_EQ(freshet_read_total(v, g, 0, COLUMNS + 1, values, &present, NULL), -EINVAL);
	EXPECT_EQ(freshet_read_total(v, g, COLUMNS, 0, values, &present, NULL), -EINVAL);
	EXPECT_EQ(freshet_read_total(v, g, 2, 2, values, &present, NULL), -EINVAL);
	EXPECT_EQ(freshet_read_total(v, g, UINT32_MAX, 2, values, &present, NULL), -EINVAL);
	EXPECT_EQ(freshet_read_total(v, g, 1, UINT32_MAX, values, &present, NULL), -EINVAL);

	/* Absent, negative, unchanged. */
	writer_begin(w, 1000);
	values[0] = 5;
	values[1] = 6;
	values[2] = (uint64_t)-7;
	writer_row(w, tree[5].slot, values, 1 | 4);
	EXPECT_EQ(writer_publish(w, 1001), 3);
	EXPECT_EQ(freshet_read_total(v, g, 0, COLUMNS, values, &present, &m), 0);
	EXPECT_EQ(present, 1 | 4);
	EXPECT_EQ(values[0], 5);
	EXPECT_EQ(values[1], 0);
	EXPECT_EQ((int64_t)values[2], -7);
	EXPECT_EQ(m.begin_ns, 1000);
	EXPECT_EQ(m.end_ns, 1001);
	EXPECT_EQ(freshet_last_pass(v, &last), 0);
	EXPECT(!memcmp(&last, &m, sizeof(m)));
	g.slot = tree[1].slot;
	EXPECT_EQ(freshet_read_total(v, g, 0, COLUMNS, values, &present, &m), 0);
	EXPECT_EQ(m.pass, 3);
	EXPECT_EQ(values[0], help_value(2, tree[1].id, 0));

	/* A row that stays away keeps its value in every bank, in a new shape, too. */
	for (uint64_t pass = 4; pass < 20; pass++) {
		writer_begin(w, 1000 + pass);
		if (pass % 3 == 0)
			writer_shape(w, tree, 6 - (pass % 2), &overflowed);
		EXPECT_EQ(writer_publish(w, 1000 + pass), pass);
		EXPECT_EQ(freshet_read_total(v, g, 0, COLUMNS, values, &present, &m), 0);
		EXPECT_EQ(m.pass, pass);
		EXPECT_EQ(values[1], help_value(2, tree[1].id, 1));
	}
	close_both();
}

TEST(columns_and_producer)
{
	const struct freshet_stat *stats;
	struct freshet_producer_info info, second;
	size_t count;

	REQUIRE(open_tree() == 0);
	stats = freshet_stats(v, &count);
	EXPECT_EQ(count, COLUMNS);
	for (unsigned c = 0; c < COLUMNS; c++) {
		EXPECT(!strcmp(stats[c].family, help_stats[c].family));
		EXPECT(!strcmp(stats[c].name, help_stats[c].name));
		EXPECT(!strcmp(stats[c].key, help_stats[c].key));
		EXPECT(!strcmp(stats[c].help, help_stats[c].help));
		EXPECT_EQ(stats[c].kind, help_stats[c].kind);
		EXPECT_EQ(stats[c].unit, help_stats[c].unit);
		EXPECT_EQ(stats[c].set, help_stats[c].set);
		EXPECT_EQ(freshet_stat_index(v, stats[c].family, stats[c].key), c);
	}
	EXPECT_EQ(freshet_stat_index(v, "cpu", "usage"), -ENOENT);
	EXPECT_EQ(freshet_stat_index(v, "memory", "usage_usec"), -ENOENT);

	EXPECT_EQ(freshet_producer_info(v, &info), 0);
	EXPECT(!strcmp(info.name, "test"));
	EXPECT_EQ(info.pid, getpid());
	EXPECT_EQ(info.interval_ns, 1000000000);
	EXPECT_EQ(info.max_groups, 100);
	EXPECT_EQ(info.overflowed, 0);
	EXPECT(info.start_ns <= clock_ns() && info.start_ns + NSEC_PER_SEC * 60 > clock_ns());
	close_both();
	REQUIRE(open_tree() == 0);
	EXPECT_EQ(freshet_producer_info(v, &second), 0);
	EXPECT(memcmp(info.identity, second.identity, 16));
	close_both();
}

TEST(age)
{
	uint64_t before, age, after;

	REQUIRE(open_tree() == 0);
	before = clock_ns();
	writer_begin(w, before - 1000);
	writer_publish(w, before);
	EXPECT_EQ(freshet_age(v, &age), 0);
	after = clock_ns();
	EXPECT(age >= 1000 && age <= after - before + 1000);
	/* A pass of the future is no young pass. */
	writer_begin(w, after + 3600 * NSEC_PER_SEC);
	writer_publish(w, after);
	EXPECT_EQ(freshet_age(v, &age), -EIO);
	close_both();
}

TEST(deep_and_odd_names)
{
	static const char *const odd[] = { "\"",       "\\",  "a\tb",
					   "\n",       " ",   "\xc3\xa4\xe2\x82\xac",
					   "\xff\xfe", "...", "a b",
					   "{}" };
	enum { DEPTH = 50, ODD = sizeof(odd) / sizeof(odd[0]) };
	struct writer_node nodes[1 + DEPTH + ODD] = { { 1, "", 0, WRITER_NEW } };
	struct freshet_snapshot *snap;
	struct freshet_group g, again;
	struct freshet_info info;
	char longest[256] = { 0 }, path[256 + (DEPTH - 1) * 78 + 1],
	     *want = calloc(1, sizeof(path));
	size_t at;

	REQUIRE(want && open_both(200) == 0 && freshet_snapshot_new(&snap) == 0);
	memset(longest, 'x', 255);
	for (uint32_t i = 1; i <= DEPTH; i++) {
		/* 255 bytes at the top, then as long as the whole path may be. */
		const char *name = i == 1 ? longest : longest + 255 - 77;

		nodes[i] = (struct writer_node){ 1 + i, name, i - 1, WRITER_NEW };
		strcat(strcat(want, "/"), name);
	}
	for (uint32_t i = 0; i < ODD; i++)
		nodes[1 + DEPTH + i] = (struct writer_node){ 100 + i, odd[i], 0, WRITER_NEW };
	help_pass(w, nodes, 1 + DEPTH + ODD, 1);
	REQUIRE(freshet_attach_fd(writer_fd(w), &v) == 0);
	EXPECT_EQ(freshet_snapshot_take(snap, v), 0);
	EXPECT_EQ(freshet_find(v, want, &g), 0);
	EXPECT_EQ(freshet_info(v, g, &info), 0);
	EXPECT_EQ(info.depth, DEPTH);
	EXPECT_EQ(info.id, 1 + DEPTH);
	EXPECT_EQ(freshet_path(v, g, path, sizeof(path)), 0);
	EXPECT(!strcmp(path, want));
	EXPECT_EQ(freshet_path(v, g, path, sizeof(path) - 1), -ENAMETOOLONG);
	EXPECT_EQ(freshet_snapshot_find(snap, want, &at), 0);
	EXPECT_EQ(at, DEPTH);
	memset(path, 0, sizeof(path));
	EXPECT_EQ(freshet_snapshot_path(snap, at, path, sizeof(path)), 0);
	EXPECT(!strcmp(path, want));
	EXPECT_EQ(freshet_snapshot_path(snap, at, path, sizeof(path) - 1), -ENAMETOOLONG);
	EXPECT_EQ(freshet_snapshot_path(snap, 1 + DEPTH + ODD, path, sizeof(path)), -EINVAL);
	for (uint32_t i = 0; i < ODD; i++) {
		EXPECT_EQ(freshet_find(v, odd[i], &g), 0);
		EXPECT_EQ(freshet_info(v, g, &info), 0);
		EXPECT(!strcmp(info.name, odd[i]));
		EXPECT_EQ(freshet_path(v, g, path, sizeof(path)), 0);
		EXPECT_EQ(freshet_find(v, path, &again), 0);
		EXPECT_EQ(again.slot, g.slot);
		EXPECT(!strcmp(freshet_snapshot_entries(snap)[1 + DEPTH + i].name, odd[i]));
	}
	freshet_snapshot_free(snap);
	close_both();
	free(want);
}

TEST(not_a_segment)
{
	char *dir = help_dir(), *fifo = help_path(dir, "fifo");
	int fds[2];

	EXPECT_EQ(freshet_attach(dir, &v), -EPROTO);
	EXPECT_EQ(freshet_attach("/dev/null", &v), -EPROTO);
	EXPECT_EQ(freshet_attach(fifo, &v), -ENOENT);
	REQUIRE(mkfifo(fifo, 0600) == 0);
	EXPECT_EQ(freshet_attach(fifo, &v), -EPROTO); /* and does not wait for a writer */
	EXPECT_EQ(freshet_attach_fd(-1, &v), -EBADF);
	REQUIRE(pipe(fds) == 0);
	EXPECT_EQ(freshet_attach_fd(fds[0], &v), -EPROTO);
	close(fds[0]);
	close(fds[1]);
	unlink(fifo);
	rmdir(dir);
	free(fifo);
	free(dir);
	freshet_detach(NULL);
	freshet_snapshot_free(NULL);
	writer_close(NULL);
}

TAP_MAIN
