/* SPDX-License-Identifier: MIT */
/* Which files of a directory are taken for segments; and reading one that is cut short, or changes all
 * the time, meanwhile. */
#include "view/segments.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

static unsigned mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned n = 0;
	int c;

	while (f && (c = fgetc(f)) != EOF)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

/* However the pages lie that are missing, they do not use up what mappings a process may have. */
TEST(pages_here_and_there)
{
	const struct sigaction act = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct writer_options o = help_options(20000);
	struct writer_node root = { .id = 1, .name = "", .slot = WRITER_NEW };
	struct freshet_view *view;
	struct sigaction before;
	const volatile char *map;
	unsigned sum = 0, had;
	struct writer *w;
	uint32_t over;
	size_t size;

	begin();
	sigaction(SIGBUS, &act, &before);
	if (writer_open(in_dir("x"), &o, &w))
		abort();
	writer_begin(w, 1);
	writer_shape(w, &root, 1, &over);
	writer_publish(w, 2);
	REQUIRE(freshet_attach(in_dir("x"), &view) == 0);
	map = freshet_mapping(view, &size);
	REQUIRE(size > 1000 * page);
	if (truncate(in_dir("x"), 0))
		abort();
	had = mappings();
	guard_begin(view);
	for (size_t at = size / page * page - page; at >= 2 * page; at -= 2 * page)
		sum += (unsigned char)map[at];
	EXPECT(guard_end());
	EXPECT_EQ(sum, 0);
	EXPECT(mappings() <= had + 2, "%u, not %u", mappings(), had);
	sigaction(SIGBUS, &before, NULL);
	freshet_detach(view);
	if (truncate(in_dir("x"), (off_t)size))
		abort();
	writer_close(w);
	end();
}

/* Says that there is pass after pass, until it is told to stop. */
struct storm {
	struct seg_header *header;
	struct seg_bank *bank[4];
	uint64_t generation;
	bool stop;
};

static void *blow(void *arg)
{
	struct storm *s = arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		uint64_t next = ++s->generation;

		__atomic_store_n(&s->bank[next % 4]->generation, next, __ATOMIC_RELAXED);
		__atomic_store_n(&s->header->generation, next, __ATOMIC_RELEASE);
	}
	return NULL;
}

static struct writer *large_segment(unsigned groups)
{
	struct writer_options o = help_options(groups);
	struct writer_node *nodes = calloc(groups, sizeof(*nodes));
	char(*name)[8] = calloc(groups, sizeof(*name));
	struct writer *w;

	if (!nodes || !name || writer_open(in_dir("x"), &o, &w))
		abort();
	for (unsigned i = 0; i < groups; i++) {
		if (i)
			snprintf(name[i], sizeof(name[i]), "%u", i);
		nodes[i] = (struct writer_node){ .id = i + 1, .name = name[i], .slot = WRITER_NEW };
	}
	for (unsigned bank = 0; bank < 4; bank++)
		help_pass(w, nodes, groups, bank == 0);
	free(name);
	free(nodes);
	return w;
}

/* A copy that lost all its races leaves the last good one, with its age. */
TEST(what_always_changes_is_shown_as_it_was)
{
	struct storm storm = { .generation = 4 };
	struct freshet_view *view;
	struct writer *w;
	struct tree *tree;
	pthread_t thread;
	uint64_t until, copies;
	bool lost = false;
	size_t size;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP("needs two CPUs");
	begin();
	w = large_segment(5000);
	REQUIRE(freshet_attach(in_dir("x"), &view) == 0);
	freshet_mapping(view, &size);
	storm.header = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, writer_fd(w), 0);
	REQUIRE(storm.header != MAP_FAILED);
	for (uint32_t i = 0; i < storm.header->nsections; i++)
		for (uint32_t b = 0; b < 4 && storm.header->section[i].type == SEG_BANKS; b++)
			storm.bank[b] =
				(void *)((char *)storm.header + storm.header->section[i].offset +
					 b * storm.header->section[i].stride);
	REQUIRE(storm.header->generation == 4 && storm.bank[3]);
	REQUIRE(tree_new("x", NULL, true, view, &tree) == 0);
	REQUIRE(tree_catch_up(tree) == 0);
	EXPECT_EQ(freshet_snapshot_count(tree->snapshot), 5000);
	copies = tree->copies;
	REQUIRE(pthread_create(&thread, NULL, blow, &storm) == 0);
	for (until = clock_ns() + 10 * NSEC_PER_SEC; clock_ns() < until && !lost;) {
		int r = tree_catch_up(tree);

		lost = tree->error == -EAGAIN;
		if (r)
			break;
	}
	EXPECT(lost, "the last try gave %d", tree->error);
	EXPECT_EQ(tree_error(tree), 0);
	EXPECT_EQ(freshet_snapshot_count(tree->snapshot), 5000);
	EXPECT(tree->copies >= copies);
	copies = tree->copies;
	__atomic_store_n(&storm.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	for (until = clock_ns() + 10 * NSEC_PER_SEC; clock_ns() < until && tree->copies == copies;)
		EXPECT_EQ(tree_catch_up(tree), 0);
	EXPECT_EQ(tree->error, 0);
	EXPECT_EQ(tree->copies, copies + 1);
	munmap(storm.header, size);
	tree_free(tree);
	writer_close(w);
	end();
}

TAP_MAIN
