/* SPDX-License-Identifier: MIT */
/* The writer: changes of shape and slots used again, the file and who may make it, full storage. */
#include "tap.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "core/segment.h"
#include "unit/segment_help.h"

static struct writer_node node(uint64_t id, const char *name, uint32_t parent)
{
	return (struct writer_node){ id, name, parent, WRITER_NEW };
}

/* Whether group g reads as `id` now; else its -errno. */
static int reads_as(const struct freshet_view *v, struct freshet_group g, uint64_t id)
{
	uint64_t values[COLUMNS], present;
	struct freshet_info info;
	struct freshet_moment m;
	int r = freshet_read_total(v, g, 0, COLUMNS, values, &present, &m);

	if (r)
		return r;
	for (unsigned c = 0; c < COLUMNS; c++)
		EXPECT_EQ(values[c], help_value(m.pass, id, c));
	r = freshet_info(v, g, &info);
	EXPECT_EQ(info.id, id);
	return r;
}

TEST(removed_and_used_again)
{
	struct writer_options o = help_options(3);
	struct writer_node a[3] = { node(1, "", 0), node(2, "a", 0), node(3, "b", 0) };
	struct writer_node b[3] = { { 0 }, { 0 }, node(4, "c", 0) };
	struct freshet_group first, second, third;
	struct freshet_view *v;
	struct writer *w;
	unsigned passes = 0;

	REQUIRE(writer_open(NULL, &o, &w) == 0);
	help_pass(w, a, 3, 1);
	REQUIRE(freshet_attach_fd(writer_fd(w), &v) == 0);
	EXPECT_EQ(freshet_find(v, "/a", &first), 0);
	EXPECT_EQ(freshet_find(v, "/b", &second), 0);
	EXPECT_EQ(reads_as(v, second, 3), 0);

	/* b goes. Its slot is the only one, but no bank may show it any more. */
	b[0] = a[0];
	b[1] = a[1];
	help_pass(w, b, 2, 1);
	EXPECT_EQ(reads_as(v, second, 3), -ENOENT);
	EXPECT_EQ(freshet_find(v, "/b", &third), -ENOENT);
	EXPECT_EQ(reads_as(v, first, 2), 0);
	while (b[2].slot == WRITER_NEW && passes < 10) {
		help_pass(w, b, 3, 1);
		passes++;
		EXPECT_EQ(reads_as(v, second, 3), -ENOENT);
	}
	EXPECT_EQ(passes, 3); /* nbanks - 1; gone in pass 2, so from 2 + 4 - 1 on */
	EXPECT_EQ(freshet_find(v, "/c", &third), 0);
	EXPECT_EQ(third.slot, second.slot);
	EXPECT(third.generation != second.generation);
	EXPECT_EQ(reads_as(v, third, 4), 0);
	EXPECT_EQ(reads_as(v, second, 3), -ENOENT);

	/* A new group has no numbers before it gets some, also where another had. */
	b[2] = node(5, "d", 0);
	for (int i = 0; i < 8; i++) {
		uint64_t values[COLUMNS], present;
		uint32_t overflowed;

		writer_begin(w, 1);
		writer_shape(w, b, 3, &overflowed);
		writer_publish(w, 1);
		if (freshet_find(v, "/d", &third) == 0) {
			EXPECT_EQ(freshet_read_total(v, third, 0, COLUMNS, values, &present, NULL),
				  0);
			EXPECT_EQ(present, 0);
			EXPECT_EQ(values[0] | values[1] | values[2], 0);
		}
	}
	EXPECT_EQ(third.slot, second.slot);
	freshet_detach(v);
	writer_close(w);
}

TEST(left_out)
{
	struct writer_options o = help_options(3);
	struct writer_node n[8] = {
		node(1, "", 0), node(2, "a", 0), node(3, "a/b", 1),  node(4, "below", 2),
		node(5, "", 0), node(6, "c", 0), node(7, "full", 1), node(8, "full too", 6),
	};
	struct freshet_producer_info info;
	struct freshet_view *v;
	struct freshet_group g;
	struct writer *w;
	uint32_t overflowed;

	REQUIRE(writer_open(NULL, &o, &w) == 0);
	writer_begin(w, 1);
	writer_shape(w, n, 8, &overflowed);
	writer_publish(w, 1);
	/* Bad names and what is below them, and what finds no slot. */
	EXPECT_EQ(overflowed, 5);
	for (unsigned i = 0; i < 8; i++)
		EXPECT_EQ(n[i].slot == WRITER_NEW, i != 0 && i != 1 && i != 5);
	REQUIRE(freshet_attach_fd(writer_fd(w), &v) == 0);
	EXPECT_EQ(freshet_producer_info(v, &info), 0);
	EXPECT_EQ(info.overflowed, 5);
	EXPECT_EQ(freshet_find(v, "a", &g), 0);
	EXPECT_EQ(freshet_find(v, "c", &g), 0);
	EXPECT_EQ(freshet_find(v, "a/full", &g), -ENOENT);

	writer_begin(w, 1);
	writer_shape(w, n, 2, &overflowed);
	writer_publish(w, 1);
	EXPECT_EQ(overflowed, 0);
	EXPECT_EQ(freshet_producer_info(v, &info), 0);
	EXPECT_EQ(info.overflowed, 0);
	freshet_detach(v);
	writer_close(w);
}

TEST(paths_that_do_not_fit)
{
	struct writer_options o = help_options(40);
	struct writer_node n[20] = { node(1, "", 0) };
	char name[FRESHET_NAME_MAX + 1], path[FRESHET_PATH_MAX];
	struct freshet_group g;
	struct freshet_view *v;
	struct writer *w;
	uint32_t overflowed;

	memset(name, 'x', FRESHET_NAME_MAX);
	name[FRESHET_NAME_MAX] = 0;
	for (unsigned i = 1; i < 20; i++)
		n[i] = node(i + 1, name, i - 1);
	REQUIRE(writer_open(NULL, &o, &w) == 0);
	writer_begin(w, 1);
	writer_shape(w, n, 20, &overflowed);
	writer_publish(w, 1);
	/* 15 names of 255 bytes and their slashes are 3,840 bytes; the 16th would make 4,096. */
	EXPECT_EQ(overflowed, 4);
	REQUIRE(freshet_attach_fd(writer_fd(w), &v) == 0);
	path[0] = 0;
	for (unsigned i = 1; i < 16; i++)
		strcat(strcat(path, "/"), name);
	EXPECT_EQ(freshet_find(v, path, &g), 0);
	EXPECT_EQ(freshet_path(v, g, path, sizeof(path)), 0);
	EXPECT_EQ(strlen(path), 3840);
	freshet_detach(v);
	writer_close(w);
}

TEST(bad_options)
{
	struct freshet_stat many[FRESHET_MAX_STATS + 1];
	char longer[109];
	struct writer *w;
	struct writer_options good = help_options(3), o;

	for (unsigned i = 0; i <= FRESHET_MAX_STATS; i++)
		many[i] = help_stats[0];
	memset(longer, 'x', 108);
	longer[108] = 0;
#define REFUSED(field, bad)                                    \
	do {                                                   \
		o = good;                                      \
		o.field = bad;                                 \
		EXPECT_EQ(writer_open(NULL, &o, &w), -EINVAL); \
	} while (0)
	REFUSED(size, 8);
	REFUSED(producer, NULL);
	REFUSED(producer, longer);
	REFUSED(socket, longer);
	REFUSED(socket, "a/b");
	REFUSED(nstats, 0);
	REFUSED(max_groups, 0);
	REFUSED(max_groups, SEG_MAX_GROUPS + 1);
	REFUSED(nbanks, 1);
	REFUSED(nbanks, 3);
	REFUSED(nbanks, 16);
	o = good;
	o.stats = many;
	o.nstats = FRESHET_MAX_STATS + 1;
	EXPECT_EQ(writer_open(NULL, &o, &w), -EINVAL);
	o.nstats = FRESHET_MAX_STATS;
	EXPECT_EQ(writer_open(NULL, &o, &w), 0);
	writer_close(w);
	EXPECT_EQ(writer_open("/", &good, &w), -EINVAL);
	EXPECT_EQ(writer_open("", &good, &w), -EINVAL);
	EXPECT_EQ(writer_open("/tmp/..", &good, &w), -EINVAL);
	EXPECT_EQ(writer_open("/nowhere/at/all", &good, &w), -ENOENT);
}

static unsigned files_in(const char *dir)
{
	unsigned links = 0;
	char *command;
	FILE *f;

	if (asprintf(&command, "ls -A '%s' | wc -l", dir) < 0 || !(f = popen(command, "r")))
		abort();
	if (fscanf(f, "%u", &links) != 1)
		abort();
	pclose(f);
	free(command);
	return links;
}

TEST(file)
{
	struct writer_options o = help_options(1000);
	char *dir = help_dir(), *path = help_path(dir, "seg");
	struct writer_node n = node(1, "", 0);
	struct writer *w, *second;
	struct freshet_view *v;
	struct stat st;
	mode_t mask = umask(022);

	REQUIRE(writer_open(path, &o, &w) == 0);
	umask(mask);
	EXPECT_EQ(files_in(dir), 2); /* and the lock */
	REQUIRE(stat(path, &st) == 0);
	EXPECT_EQ(st.st_mode, S_IFREG | 0640);
	EXPECT(st.st_size > 1000 * 300 && st.st_blocks * 512 < st.st_size / 2); /* sparse */
	EXPECT_EQ(writer_open(path, &o, &second), -EBUSY);
	help_pass(w, &n, 1, 1);
	REQUIRE(freshet_attach(path, &v) == 0);
	EXPECT_EQ(freshet_producer(v), FRESHET_ALIVE);
	EXPECT_EQ(freshet_reattach(v), 0);

	/* Without its lock file the segment's own lock keeps a second writer out. */
	char *lock = help_path(dir, "seg.lock");
	EXPECT_EQ(unlink(lock), 0);
	EXPECT_EQ(writer_open(path, &o, &second), -EBUSY);
	EXPECT_EQ(files_in(dir), 1);

	writer_close(w);
	EXPECT_EQ(files_in(dir), 0);
	EXPECT_EQ(freshet_producer(v), FRESHET_GONE);
	EXPECT_EQ(freshet_reattach(v), 0);

	/* What is not ours any more is not removed. */
	REQUIRE(writer_open(path, &o, &w) == 0);
	EXPECT_EQ(unlink(path), 0);
	EXPECT(close(open(path, O_CREAT | O_WRONLY, 0600)) == 0);
	writer_close(w);
	EXPECT_EQ(files_in(dir), 1);
	unlink(path);
	freshet_detach(v);
	rmdir(dir);
	free(lock);
	free(path);
	free(dir);
}

/* The view of an anonymous segment holds no lock for its writer. */
TEST(anonymous)
{
	struct writer_options o = help_options(10);
	struct writer_node n = node(1, "", 0);
	struct freshet_view *v;
	struct writer *w;

	REQUIRE(writer_open(NULL, &o, &w) == 0);
	help_pass(w, &n, 1, 1);
	REQUIRE(freshet_attach_fd(writer_fd(w), &v) == 0);
	EXPECT_EQ(freshet_producer(v), FRESHET_ALIVE);
	EXPECT_EQ(freshet_reattach(v), -EINVAL);
	EXPECT_EQ(freshet_refresh(v, 0, 0), -EOPNOTSUPP);
	writer_close(w);
	EXPECT_EQ(freshet_producer(v), FRESHET_GONE);
	freshet_detach(v);
}

TEST(attacks)
{
	struct writer_options o = help_options(10);
	char *dir = help_dir(), *real = help_path(dir, "real"), *link = help_path(dir, "link");
	char *path = help_path(real, "seg"), *through = help_path(link, "seg");
	char *victim = help_path(dir, "victim"), *lock = help_path(real, "seg.lock");
	char *temp = help_path(real, "seg.new"), *slashes = help_path(link, "//seg");
	struct writer *w;
	struct stat st;

	REQUIRE(mkdir(real, 0700) == 0 && symlink("real", link) == 0);
	/* A directory that is a link, or that others may write to. */
	EXPECT_EQ(writer_open(through, &o, &w), -ENOTDIR);
	EXPECT_EQ(writer_open(slashes, &o, &w), -ENOTDIR);
	EXPECT_EQ(chmod(real, 0777), 0);
	EXPECT_EQ(writer_open(path, &o, &w), -EPERM);
	EXPECT_EQ(chmod(real, 01777), 0);
	EXPECT_EQ(writer_open(path, &o, &w), -EPERM);
	EXPECT_EQ(chmod(real, 0770), 0);
	EXPECT_EQ(writer_open(path, &o, &w), -EPERM);
	EXPECT_EQ(chmod(real, 0755), 0);
	if (geteuid() == 0) {
		EXPECT_EQ(chown(real, 12345, 0), 0);
		EXPECT_EQ(writer_open(path, &o, &w), -EPERM);
		EXPECT_EQ(chown(real, 0, 0), 0);
	}
	EXPECT_EQ(files_in(real), 0);

	/* Links where the segment, its lock and its first name will be. */
	EXPECT_EQ(close(open(victim, O_CREAT | O_WRONLY, 0600)), 0);
	EXPECT_EQ(symlink(victim, path), 0);
	EXPECT_EQ(writer_open(path, &o, &w), -EEXIST);
	EXPECT_EQ(unlink(path), 0);
	EXPECT_EQ(symlink(victim, lock), 0);
	EXPECT_EQ(writer_open(path, &o, &w), -ELOOP);
	EXPECT_EQ(unlink(lock), 0);
	EXPECT_EQ(symlink(victim, temp), 0);
	EXPECT_EQ(writer_open(path, &o, &w), 0); /* the link itself goes */
	writer_close(w);
	EXPECT_EQ(stat(victim, &st), 0);
	EXPECT_EQ(st.st_size, 0);
	EXPECT_EQ(files_in(real), 0);

	/* What is no segment is not replaced. */
	EXPECT_EQ(rename(victim, path), 0);
	EXPECT_EQ(writer_open(path, &o, &w), -EEXIST);
	EXPECT_EQ(files_in(real), 1);
	unlink(path);
	EXPECT_EQ(mkdir(path, 0700), 0);
	EXPECT_EQ(writer_open(path, &o, &w), -EEXIST);
	rmdir(path);
	unlink(link);
	rmdir(real);
	rmdir(dir);
	free(dir);
	free(real);
	free(link);
	free(path);
	free(through);
	free(victim);
	free(lock);
	free(temp);
	free(slashes);
}

static int put(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	if (!f)
		return -errno;
	fputs(text, f);
	return fclose(f) ? -errno : 0;
}

/* A user namespace in which we are who we were. */
static int own_user_namespace(void)
{
	char uids[32], gids[32];

	snprintf(uids, sizeof(uids), "%u %u 1", geteuid(), geteuid());
	snprintf(gids, sizeof(gids), "%u %u 1", getegid(), getegid());
	if (unshare(CLONE_NEWUSER) || put("/proc/self/setgroups", "deny") ||
	    put("/proc/self/uid_map", uids) || put("/proc/self/gid_map", gids))
		return -1;
	return 0;
}

/* In a child: a mount namespace of its own, and there a tmpfs of 1 MiB over dir. */
static int small_tmpfs(const char *dir)
{
	if ((geteuid() && own_user_namespace()) || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=700"))
		return -1;
	return 0;
}

/* Writes until no more goes in; why not. */
static int fill(int fd)
{
	static const char page[4096];

	while (write(fd, page, sizeof(page)) > 0)
		;
	return errno;
}

static void on_full_tmpfs(const char *dir)
{
	enum { MANY = 20000, FEW = 100 };
	struct writer_node *n = calloc(MANY, sizeof(*n));
	struct writer_options o = help_options(MANY);
	char *path = help_path(dir, "seg"), *filler = help_path(dir, "filler");
	struct freshet_snapshot *snap;
	struct freshet_view *v;
	struct writer *w;
	uint32_t overflowed = 0;
	int fd;

	REQUIRE(n && writer_open(path, &o, &w) == 0);
	for (uint32_t i = 0; i < MANY; i++)
		n[i] = node(i, i ? "x" : "", 0);
	writer_begin(w, 1);
	writer_shape(w, n, MANY, &overflowed);
	writer_publish(w, 1);
	EXPECT(overflowed > MANY / 2 && overflowed < MANY - FEW, "%u left out", overflowed);
	/* No byte is left, and every bank gets written. */
	fd = open(filler, O_CREAT | O_RDWR, 0600);
	EXPECT_EQ(fill(fd), ENOSPC);
	for (uint32_t i = 0; i < 8; i++)
		help_pass(w, n, MANY, i % 3 == 0);
	REQUIRE(freshet_attach(path, &v) == 0 && freshet_snapshot_new(&snap) == 0);
	EXPECT_EQ(freshet_snapshot_take(snap, v), 0);
	EXPECT_EQ(freshet_snapshot_count(snap), MANY - overflowed);
	/* A slot that no pass ever had lies in a hole, which a reader must not touch. */
	EXPECT_EQ(
		freshet_info(v, (struct freshet_group){ MANY - 1, 1 }, &(struct freshet_info){ 0 }),
		-ENOENT);
	freshet_snapshot_free(snap);
	freshet_detach(v);
	writer_close(w);
	/* No room to begin with: an error, and nothing stays behind. */
	EXPECT_EQ(fill(fd), ENOSPC);
	EXPECT_EQ(writer_open(path, &o, &w), -ENOSPC);
	EXPECT_EQ(files_in(dir), 1);
	close(fd);
	free(n);
	free(path);
	free(filler);
}

TEST(full_storage)
{
	char *dir = help_dir();
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (small_tmpfs(dir))
			_exit(77);
		tap_bad = 0;
		on_full_tmpfs(dir);
		fflush(stdout);
		_exit(tap_bad ? 1 : 0);
	}
	REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
	rmdir(dir);
	free(dir);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("a tmpfs cannot be mounted here");
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

TAP_MAIN
