/* SPDX-License-Identifier: MIT */
/* Which files of a directory are taken for segments; and reading one that is cut short meanwhile. */
#include "view/segments.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/writer.h"
#include "tap.h"
#include "unit/segment_help.h"
#include "view/guard.h"
#include "view/http_tree.h"

static char dir[64];

/* Two at a time. */
static const char *in_dir(const char *name)
{
	static char path[2][128];
	static unsigned turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
	return path[turn];
}

static void begin(void)
{
	strcpy(dir, "/tmp/freshet-test-XXXXXX");
	if (!mkdtemp(dir))
		abort();
}

static void end(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	if (system(command))
		abort();
}

static void touch(const char *name, mode_t mode)
{
	int fd = open(in_dir(name), O_CREAT | O_WRONLY, 0600);

	if (fd < 0 || write(fd, "garbage", 7) != 7 || fchmod(fd, mode))
		abort();
	close(fd);
}

static struct writer *segment(const char *name)
{
	struct writer_options o = help_options(8);
	struct writer_node root = { .id = 1, .name = "", .slot = WRITER_NEW };
	uint64_t values[COLUMNS] = { 1, 2, 3 };
	struct writer *w;
	uint32_t over;

	if (writer_open(in_dir(name), &o, &w))
		abort();
	writer_begin(w, 1);
	writer_shape(w, &root, 1, &over);
	writer_row(w, root.slot, values, 7);
	writer_publish(w, 2);
	return w;
}

/* What segments_attach() gives for a name; -ENXIO: it is not in the list. */
static int attach(const char *name, bool any_owner)
{
	struct segments_list list;
	struct freshet_view *view;
	int r = segments_list(dir, &list);

	if (r)
		return r;
	r = -ENXIO;
	for (size_t i = 0; i < list.count; i++) {
		if (strcmp(list.entry[i].name, name) != 0)
			continue;
		r = segments_attach(&list, i, any_owner, &view);
		if (r == 0)
			freshet_detach(view);
	}
	segments_list_free(&list);
	return r;
}

TEST(what_is_taken)
{
	struct writer *w;

	begin();
	w = segment("good");
	touch("garbage", 0600);
	touch("half.new", 0600);
	touch(".hidden", 0600);
	touch("odd name", 0600);
	touch("nobody", 0);
	if (symlink(in_dir("good"), in_dir("link")) || mkfifo(in_dir("fifo"), 0600) ||
	    mkdir(in_dir("sub"), 0700))
		abort();
	EXPECT_EQ(attach("good", false), 0);
	EXPECT_EQ(attach("good.lock", false), -ENXIO);
	EXPECT_EQ(attach("half.new", false), -ENXIO);
	EXPECT_EQ(attach(".hidden", false), -ENXIO);
	EXPECT_EQ(attach("odd name", false), -ENXIO);
	EXPECT_EQ(attach("sub", false), -ENXIO);
	EXPECT_EQ(attach("garbage", false), -EPROTO);
	EXPECT_EQ(attach("link", false), -ELOOP);
	EXPECT_EQ(attach("fifo", false), -EPROTO);
	EXPECT_EQ(attach("nobody", false), -EACCES);
	writer_close(w);
	end();
}

TEST(owners)
{
	struct writer *w;

	if (geteuid() != 0)
		SKIP("needs root to give a file away");
	begin();
	w = segment("theirs");
	if (chown(in_dir("theirs"), 65534, 65534))
		abort();
	EXPECT_EQ(attach("theirs", false), -EPERM);
	EXPECT_EQ(attach("theirs", true), 0);
	writer_close(w);
	end();
}

TEST(lists_are_sorted_and_bounded)
{
	struct segments_list list;
	char name[16];

	begin();
	for (unsigned i = 0; i < SEGMENTS_LOOK_MAX + 10; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		touch(name, 0600);
	}
	REQUIRE(segments_list(dir, &list) == 0);
	EXPECT_EQ(list.count, SEGMENTS_LOOK_MAX);
	EXPECT(list.more);
	for (size_t i = 1; i < list.count; i++)
		EXPECT(strcmp(list.entry[i - 1].name, list.entry[i].name) < 0);
	segments_list_free(&list);
	end();
	EXPECT_EQ(segments_list(dir, &list), 0);
	EXPECT_EQ(list.count, 0);
	segments_list_free(&list);
}

/* The other one is changed between the look at the directory and the opening. */
TEST(a_file_that_is_swapped)
{
	struct segments_list list;
	struct freshet_view *view;
	struct writer *w;

	begin();
	touch("x", 0600);
	REQUIRE(segments_list(dir, &list) == 0 && list.count == 1);
	touch("y", 0600); /* so that the inode is another */
	unlink(in_dir("x"));
	if (symlink(in_dir("y"), in_dir("x")))
		abort();
	EXPECT_EQ(segments_attach(&list, 0, false, &view), -ELOOP);
	unlink(in_dir("x"));
	w = segment("x");
	EXPECT_EQ(segments_attach(&list, 0, false, &view), -ESTALE);
	segments_list_free(&list);
	writer_close(w);
	end();
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	if (!guard_fault(info))
		_exit(77);
}

TEST(a_file_that_is_cut_short)
{
	const struct sigaction act = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	struct freshet_snapshot *snap;
	struct freshet_moment moment;
	struct freshet_view *view, *other;
	struct sigaction before;
	struct writer *w;
	struct tree *tree;
	struct stat st;

	begin();
	sigaction(SIGBUS, &act, &before);
	w = segment("x");
	REQUIRE(freshet_attach(in_dir("x"), &view) == 0);
	REQUIRE(freshet_snapshot_new(&snap) == 0);
	guard_begin(view);
	EXPECT_EQ(freshet_snapshot_take(snap, view), 0);
	EXPECT(!guard_end());
	REQUIRE(freshet_attach(in_dir("x"), &other) == 0);
	REQUIRE(tree_new("x", NULL, true, other, &tree) == 0);
	EXPECT_EQ(tree_last_pass(tree, &moment), 0);
	EXPECT_EQ(tree_catch_up(tree), 0);
	if (stat(in_dir("x"), &st) || truncate(in_dir("x"), 0))
		abort();
	guard_begin(view);
	EXPECT(!guard_fault(&(siginfo_t){ .si_code = SI_USER })); /* sent by somebody */
	EXPECT(!guard_end());
	EXPECT_EQ(tree_last_pass(tree, &moment), -EIO);
	EXPECT_EQ(tree_catch_up(tree), -EIO);
	guard_begin(view);
	freshet_snapshot_take(snap, view); /* whatever it makes of zeroes */
	EXPECT(guard_end());
	freshet_snapshot_free(snap);
	freshet_detach(view);
	tree_free(tree); /* and the other view */
	sigaction(SIGBUS, &before, NULL);
	if (truncate(in_dir("x"), st.st_size)) /* the writer touches it, too */
		abort();
	writer_close(w);
	end();
}

TAP_MAIN
