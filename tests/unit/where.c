/* SPDX-License-Identifier: MIT */
/* Names of segments, and the files that they stand for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"

#include "base/where.h"

TEST(good_names)
{
	static const char *const good[] = { "host", "a", "my-program_2", "x.y", "new", "lock" };
	char path[256], want[256];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(want, sizeof(want), "/run/freshet/%s", good[i]);
		EXPECT_EQ(where_system_segment(good[i], path, sizeof(path)), 0);
		EXPECT(!strcmp(path, want), "%s", path);
	}
}

TEST(bad_names)
{
	/* the last three are files that the writer of another segment makes, or hides */
	static const char *const bad[] = { "",      "a b",    "a\n",    "\xc3\xbc",
					   "x.new", "x.lock", ".hidden" };
	char path[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT(where_system_segment(bad[i], path, sizeof(path)) == -EINVAL, "%s", bad[i]);
	EXPECT_EQ(where_system_segment("host", path, 10), -ENAMETOOLONG);
}

TEST(paths_and_users)
{
	char path[256], want[256];

	EXPECT_EQ(where_segment("./x", path, sizeof(path)), 0);
	EXPECT(!strcmp(path, "./x"));
	EXPECT_EQ(setenv("XDG_RUNTIME_DIR", "relative", 1), 0);
	EXPECT_EQ(where_segment("host", path, sizeof(path)), 0);
	snprintf(want, sizeof(want), "/tmp/freshet-%u/host", (unsigned)geteuid());
	EXPECT(!strcmp(path, geteuid() ? want : "/run/freshet/host"), "%s", path);
	EXPECT_EQ(setenv("XDG_RUNTIME_DIR", "/run/user/7", 1), 0);
	EXPECT_EQ(where_segment("host", path, sizeof(path)), 0);
	EXPECT(!strcmp(path, geteuid() ? "/run/user/7/freshet/host" : "/run/freshet/host"));
}

TEST(directories)
{
	char parent[] = "/tmp/freshet-where-XXXXXX", file[64], inside[64];

	REQUIRE(mkdtemp(parent));
	snprintf(file, sizeof(file), "%s/a/host", parent);
	snprintf(inside, sizeof(inside), "%s/a/b/host", parent);
	EXPECT_EQ(where_make_directory(inside), -ENOENT);
	EXPECT_EQ(where_make_directory(file), 1);
	EXPECT_EQ(where_make_directory(file), 0);
	EXPECT_EQ(where_make_directory("host"), 0);
	EXPECT_EQ(where_make_directory(inside), 1);
	where_remove_directory(file); /* is not empty */
	EXPECT_EQ(where_make_directory(file), 0);
	where_remove_directory(inside);
	where_remove_directory(file);
	EXPECT(rmdir(parent) == 0, "something is left");
}

TAP_MAIN
