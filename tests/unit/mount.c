/* SPDX-License-Identifier: MIT */
/* Finding the cgroup2 mount, and paths below it. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "source/mount.h"
#include "tap.h"

static int parse(const char *text, struct cgroup_mount *ret)
{
	size_t len = strlen(text);
	char *copy = malloc(len ? len : 1);
	int r;

	memcpy(copy, text, len);
	memset(ret, 0x5a, sizeof(*ret));
	r = mountinfo_parse(copy, len, ret);
	free(copy);
	return r;
}

#define ROOT "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"

static void finds(const char *text, const char *path, const char *fs_root, int hybrid)
{
	struct cgroup_mount m;
	int r = parse(text, &m);

	EXPECT(r == 0, "%d: %s", r, text);
	if (r < 0)
		return;
	EXPECT(!strcmp(m.path, path), "%s, not %s", m.path, path);
	EXPECT(!strcmp(m.fs_root, fs_root), "%s, not %s", m.fs_root, fs_root);
	EXPECT_EQ(m.hybrid, hybrid);
	EXPECT_EQ(m.is_top, 0);
}

TEST(unified_host)
{
	finds(ROOT "30 22 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 "
		   "cgroup2 rw,nsdelegate,memory_recursiveprot\n",
	      "/sys/fs/cgroup", "/", 0);
}

TEST(hybrid_host)
{
	finds(ROOT "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
		   "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
		   "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
	      "/sys/fs/cgroup/unified", "/", 1);
	/* v1 named after it as well */
	finds(ROOT "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
		   "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n",
	      "/sys/fs/cgroup/unified", "/", 1);
}

TEST(optional_fields_and_escapes)
{
	finds("30 22 0:26 / /a\\040b\\011c\\012d\\134e\\043f rw - cgroup2 none rw\n",
	      "/a b\tc\nd\\e#f", "/", 0);
	finds("30 22 0:26 /x\\040y /a rw shared:1 master:2 propagate_from:3 unbindable - cgroup2 - "
	      "rw\n",
	      "/a", "/x y", 0);
	/* what is no escape stays */
	finds("30 22 0:26 / /a\\04 rw - cgroup2 none rw\n", "/a\\04", "/", 0);
	finds("30 22 0:26 / /a\\089 rw - cgroup2 none rw\n", "/a\\089", "/", 0);
	finds("30 22 0:26 / /a\\777 rw - cgroup2 none rw\n", "/a\\777", "/", 0);
	/* the last line may lack its newline, and a super block may lack options */
	finds(ROOT "30 22 0:26 / /a rw - cgroup2", "/a", "/", 0);
	/* a source that looks like a type, a mount point that looks like the separator */
	finds("30 22 0:26 / /- rw - tmpfs cgroup2 rw\n30 22 0:26 / /c rw - cgroup2 x rw\n", "/c",
	      "/", 0);
}

TEST(several_mounts)
{
	/* the whole one, then the shortest path */
	finds("1 0 0:26 /docker/x /a rw - cgroup2 c rw\n2 0 0:26 / /b/long rw - cgroup2 c rw\n"
	      "3 0 0:26 / /b rw - cgroup2 c rw\n4 0 0:26 / /b/longer rw - cgroup2 c rw\n",
	      "/b", "/", 0);
	/* a subtree before what lies outside of our cgroup namespace */
	finds("1 0 0:26 /.. /a rw - cgroup2 c rw\n2 0 0:26 /x /bb rw - cgroup2 c rw\n", "/bb", "/x",
	      0);
	finds("1 0 0:26 /../.. /a rw - cgroup2 c rw\n", "/a", "/../..", 0);
	/* "..x" is a name */
	finds("1 0 0:26 /.. /a rw - cgroup2 c rw\n2 0 0:26 /..x /bb rw - cgroup2 c rw\n", "/bb",
	      "/..x", 0);
	/* mounted over another one, as unshare -C and mount do */
	finds("1 0 0:26 /.. /a rw - cgroup2 c rw\n2 1 0:26 / /a rw - cgroup2 c rw\n", "/a", "/", 0);
	finds("1 0 0:26 / /a rw - cgroup2 c rw\n2 1 0:26 /x /a rw - cgroup2 c rw\n", "/a", "/x", 0);
}

TEST(no_cgroup2)
{
	static const char *const text[] = {
		"",
		"\n\n",
		ROOT,
		ROOT "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n",
		"30 22 0:26 / /a rw cgroup2 none rw\n",
		"30 22 0:26 / /a rw -",
		"30 22 0:26 / /a rw - ",
		"30 22 0:26 / /a",
		"30 22 0:26 / /a rw - cgroup2x none rw\n",
		"30 22 0:26 / /a rw - xcgroup2 none rw\n",
		"30 22 0:26 / relative rw - cgroup2 none rw\n",
		"30 22 0:26 / /a\\000b rw - cgroup2 none rw\n",
		"30  22 0:26 / /a rw - cgroup2 none rw\n",
	};
	struct cgroup_mount m;

	for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++)
		EXPECT(parse(text[i], &m) == -ENOENT, "%s", text[i]);
}

TEST(a_path_too_long_is_no_mount)
{
	char text[5000];

	for (int len = 4095; len <= 4096; len++) {
		struct cgroup_mount m;

		snprintf(text, sizeof(text), "1 0 0:26 / /%0*d rw - cgroup2 c rw\n", len - 1, 0);
		EXPECT_EQ(parse(text, &m), len == 4095 ? 0 : -ENOENT);
	}
}

static const struct cgroup_mount unified = { .path = "/sys/fs/cgroup/unified", .fs_root = "/" };

static void relative_is(const char *path, const char *want)
{
	char ret[4096] = "?";
	int r = mount_relative(&unified, path, ret, sizeof(ret));

	EXPECT(r == 0 && !strcmp(ret, want), "%s gives %d, %s", path ? path : "NULL", r, ret);
}

TEST(relative_paths)
{
	relative_is(NULL, "/");
	relative_is("", "/");
	relative_is("/", "/");
	relative_is("///", "/");
	relative_is("a", "/a");
	relative_is("/a", "/a");
	relative_is("/a/b/", "/a/b");
	relative_is("//a///b//", "/a/b");
	relative_is("/a b\"\\\n\t\xc3\xa4", "/a b\"\\\n\t\xc3\xa4");
	relative_is("/...", "/...");
	relative_is("/.a/b..", "/.a/b..");
}

TEST(absolute_paths_below_the_mount)
{
	relative_is("/sys/fs/cgroup/unified", "/");
	relative_is("/sys/fs/cgroup/unified/", "/");
	relative_is("/sys/fs/cgroup/unified/a/b", "/a/b");
	relative_is("//sys/fs//cgroup/unified//a/", "/a");
	/* whole names only */
	relative_is("/sys/fs/cgroup/unified2", "/sys/fs/cgroup/unified2");
	relative_is("/sys/fs/cgroup/unified2/a", "/sys/fs/cgroup/unified2/a");
	relative_is("/sys/fs/cgroup/unifie", "/sys/fs/cgroup/unifie");
	relative_is("/sys/fs/cgroup", "/sys/fs/cgroup");
	/* groups that are called like the mount: once in front is the mount, later is a group */
	relative_is("/sys/fs/cgroup/unified/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified");
	relative_is("sys/fs/cgroup/unified/a", "/sys/fs/cgroup/unified/a");
	relative_is("/a/sys/fs/cgroup/unified", "/a/sys/fs/cgroup/unified");
	relative_is("/unified", "/unified");
}

TEST(dots_are_refused)
{
	static const char *const path[] = { ".",
					    "..",
					    "/.",
					    "/..",
					    "a/..",
					    "a/../b",
					    "/a/./b",
					    "./a",
					    "a/.",
					    "/a/b/../",
					    "/../a",
					    "/sys/fs/cgroup/unified/..",
					    "/sys/fs/cgroup/unified/../cpu" };
	char ret[64] = "kept";

	for (size_t i = 0; i < sizeof(path) / sizeof(*path); i++) {
		EXPECT(mount_relative(&unified, path[i], ret, sizeof(ret)) == -EINVAL, "%s",
		       path[i]);
		EXPECT(mount_resolve(&unified, path[i], ret, sizeof(ret)) == -EINVAL, "%s",
		       path[i]);
	}
	EXPECT(!strcmp(ret, "kept"));
}

TEST(relative_sizes)
{
	char ret[4096], longest[8192];

	EXPECT_EQ(mount_relative(&unified, "/abc", ret, 4), -ENAMETOOLONG);
	EXPECT_EQ(mount_relative(&unified, "/abc", ret, 5), 0);
	EXPECT_EQ(mount_relative(&unified, "/", ret, 1), -ENAMETOOLONG);
	EXPECT_EQ(mount_relative(&unified, "/", ret, 2), 0);
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[4096] = '\0';
	EXPECT_EQ(mount_relative(&unified, longest, ret, sizeof(ret)), -ENAMETOOLONG);
	longest[4095] = '\0';
	EXPECT_EQ(mount_relative(&unified, longest, ret, sizeof(ret)), 0);
	EXPECT(!strcmp(ret, longest));
}

static void remove_tree(void *p)
{
	const char *dir = p;
	char path[600];

	snprintf(path, sizeof(path), "%s/a b/c", dir);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/a b", dir);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/file", dir);
	unlink(path);
	rmdir(dir);
}

TEST(resolve_looks_at_the_directory)
{
	_cleanup_(remove_tree) char dir[] = "/tmp/freshet-mount-XXXXXX";
	struct cgroup_mount m = { .fs_root = "/" };
	char path[512], want[512], ret[512];

	REQUIRE(mkdtemp(dir));
	snprintf(m.path, sizeof(m.path), "%s", dir);
	snprintf(path, sizeof(path), "%s/a b", dir);
	mkdir(path, 0755);
	snprintf(want, sizeof(want), "%s/a b/c", dir);
	mkdir(want, 0755);
	snprintf(path, sizeof(path), "%s/file", dir);
	close(open(path, O_CREAT | O_WRONLY, 0644));

	EXPECT_EQ(mount_resolve(&m, NULL, ret, sizeof(ret)), 0);
	EXPECT(!strcmp(ret, dir), "%s", ret);
	EXPECT_EQ(mount_resolve(&m, "//a b/c/", ret, sizeof(ret)), 0);
	EXPECT(!strcmp(ret, want), "%s", ret);
	EXPECT_EQ(mount_resolve(&m, want, ret, sizeof(ret)), 0);
	EXPECT(!strcmp(ret, want), "%s", ret);
	EXPECT_EQ(mount_resolve(&m, want, ret, strlen(want) + 1), 0);
	EXPECT_EQ(mount_resolve(&m, want, ret, strlen(want)), -ENAMETOOLONG);
	EXPECT_EQ(mount_resolve(&m, "/nothing", ret, sizeof(ret)), -ENOENT);
	EXPECT_EQ(mount_resolve(&m, "/file", ret, sizeof(ret)), -ENOENT);
	EXPECT_EQ(mount_resolve(&m, "/file/x", ret, sizeof(ret)), -ENOENT);
	snprintf(path, sizeof(path), "%s2", dir);
	EXPECT_EQ(mount_resolve(&m, path, ret, sizeof(ret)), -ENOENT);
	/* a mount on "/" itself */
	strcpy(m.path, "/");
	EXPECT_EQ(mount_resolve(&m, "/", ret, sizeof(ret)), 0);
	EXPECT(!strcmp(ret, "/"), "%s", ret);
	EXPECT_EQ(mount_resolve(&m, want, ret, sizeof(ret)), 0);
	EXPECT(!strcmp(ret, want), "%s", ret);
}

TEST(this_machine)
{
	struct cgroup_mount m;
	char path[4200];
	int r = mount_find(&m);

	if (r == -ENOENT)
		SKIP("no cgroup2 mount");
	EXPECT_EQ(r, 0);
	snprintf(path, sizeof(path), "%s/cgroup.procs", m.path);
	EXPECT_EQ(access(path, F_OK), 0);
	/* Only the real root has no cgroup.type. */
	snprintf(path, sizeof(path), "%s/cgroup.type", m.path);
	EXPECT_EQ(m.is_top, access(path, F_OK) < 0);
}

/*
 * In a child that sits in a cgroup of its own and unshares the cgroup namespace: the old mount
 * shows what it always did, though its fs_root now reads "/.."; a new mount shows the own cgroup,
 * which is not the top. Exit status 0: all as expected; 77: not permitted here.
 */
static int in_namespace(const char *group, const char *mount_point)
{
	struct cgroup_mount before, m;
	char procs[4300], command[8600];
	struct stat st;
	FILE *f;

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", group);
	f = fopen(procs, "w");
	if (!f || fprintf(f, "0") < 0 || fclose(f))
		return 77;
	if (mount_find(&before) < 0 || unshare(CLONE_NEWCGROUP | CLONE_NEWNS) < 0)
		return 77;
	if (mount_find(&m) < 0 || strcmp(m.path, before.path) || m.is_top != before.is_top)
		return 1;
	if (strncmp(m.fs_root, "/..", 3))
		return 2;
	snprintf(command, sizeof(command),
		 "mount --make-rprivate / && mount -t cgroup2 none %s 2>/dev/null", mount_point);
	if (system(command))
		return 77;
	if (mount_find(&m) < 0 || strcmp(m.path, mount_point) || strcmp(m.fs_root, "/"))
		return 3;
	if (m.is_top)
		return 4;
	return stat(m.path, &st) || st.st_ino == 1 ? 5 : 0;
}

TEST(cgroup_namespace)
{
	char point[] = "/tmp/freshet-mount-XXXXXX", group[4200];
	struct cgroup_mount m;
	int status = 0;
	pid_t pid;

	if (mount_find(&m) < 0)
		SKIP("no cgroup2 mount");
	snprintf(group, sizeof(group), "%s/freshet-unit-mount-%d", m.path, getpid());
	if (mkdir(group, 0755) < 0)
		SKIP("may not make cgroups");
	REQUIRE(mkdtemp(point));
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(in_namespace(group, point));
	waitpid(pid, &status, 0);
	rmdir(group);
	rmdir(point);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("may not make namespaces and mounts");
	EXPECT(WIFEXITED(status) && !WEXITSTATUS(status), "status %#x", status);
}

TAP_MAIN
