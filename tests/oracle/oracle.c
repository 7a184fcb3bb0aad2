/* SPDX-License-Identifier: MIT */
/*
 * The kernel as oracle: what a source says of real cgroups against cpu.stat, read just before and
 * just after. FRESHET_TEST_SOURCE: bpf (default) or files.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

#include "base/clock.h"
#include "oracle/cg.h"
#include "oracle/pass.h"

static const char *const leaves[] = { "b/a/1", "b/a/2", "b/b/1", "b/b/2", "b/c" };
static const char *const all[] = { "b", "b/a", "b/b", "b/a/1", "b/a/2", "b/b/1", "b/b/2", "b/c" };
#define N(a) (sizeof(a) / sizeof((a)[0]))

static void tree_make(void)
{
	for (size_t i = 0; i < 3; i++)
		EXPECT_EQ(cg_make(all[i]), 0);
	for (size_t i = 0; i < N(leaves); i++)
		EXPECT_EQ(cg_make(leaves[i]), 0);
}

static void tree_remove(void)
{
	for (size_t i = N(all); i-- > 0;)
		EXPECT_EQ(cg_remove_wait(all[i]), 0);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* user and system come from tick samples scaled against what was said before, so that ours and the
 * kernel's, which look at other moments, may differ by a few ticks a CPU and in proportion. */
static uint64_t split_tolerance(uint64_t usage)
{
	return 100000 + usage / 10;
}

TEST(bracketed_while_burning)
{
	static const enum cg_burn how[] = { CG_USER, CG_SYSTEM, CG_MIXED, CG_NICE, CG_MIXED };
	struct cg_stat before[N(all)], after[N(all)];
	uint64_t last[N(all)][3] = { 0 };
	pid_t pid[N(leaves)];
	const char *cannot = pass_start(NULL);
	uint64_t until;
	int rounds = 0;

	if (cannot)
		SKIP(cannot);
	tree_make();
	for (size_t i = 0; i < N(leaves); i++)
		pid[i] = cg_burn(leaves[i], how[i]);
	for (until = clock_ns() + 2 * NSEC_PER_SEC; clock_ns() < until || rounds < 6; rounds++) {
		for (size_t i = 0; i < N(all); i++)
			EXPECT_EQ(cg_read(all[i], &before[i]), 0);
		EXPECT_EQ(pass(), 0);
		for (size_t i = 0; i < N(all); i++)
			EXPECT_EQ(cg_read(all[i], &after[i]), 0);
		for (size_t i = 0; i < N(all); i++) {
			const struct source_group *g = pass_find(cg_id(all[i]));
			uint64_t v[3];

			REQUIRE(g, "%s is not in the tree", all[i]);
			for (int k = 0; k < 3; k++)
				v[k] = g->value[HOST_USAGE + k] / 1000;
			EXPECT(before[i].usage <= v[0] && v[0] <= after[i].usage,
			       "%s: %llu <= %llu <= %llu", all[i],
			       (unsigned long long)before[i].usage, (unsigned long long)v[0],
			       (unsigned long long)after[i].usage);
			EXPECT(g->value[HOST_USER] + g->value[HOST_SYSTEM] <=
			       g->value[HOST_USAGE] + 2000);
			EXPECT(distance(v[1] + v[2], v[0]) <= 2, "%s: %llu + %llu, not %llu",
			       all[i], (unsigned long long)v[1], (unsigned long long)v[2],
			       (unsigned long long)v[0]);
			EXPECT(distance(v[1], after[i].user) <= split_tolerance(after[i].usage),
			       "%s: user %llu, kernel %llu", all[i], (unsigned long long)v[1],
			       (unsigned long long)after[i].user);
			EXPECT(distance(v[2], after[i].system) <= split_tolerance(after[i].usage));
			for (int k = 0; k < 3; k++) {
				EXPECT(v[k] >= last[i][k], "%s went back", all[i]);
				last[i][k] = v[k];
			}
			if (before[i].has_nice)
				EXPECT(g->present >> HOST_NICE & 1 &&
				       before[i].nice <= g->value[HOST_NICE] / 1000 &&
				       g->value[HOST_NICE] / 1000 <= after[i].nice);
			else
				EXPECT(!(g->present >> HOST_NICE & 1));
		}
	}
	EXPECT(last[0][0] > 100000, "the burners did not burn");
	for (size_t i = 0; i < N(leaves); i++)
		cg_kill(pid[i]);

	/* At rest: equal, and parent = own + children to the ns. No inner cgroup has own time. */
	cg_rest("b");
	EXPECT_EQ(pass(), 0);
	for (size_t i = 0; i < N(all); i++) {
		EXPECT_EQ(cg_read(all[i], &after[i]), 0);
		REQUIRE(pass_find(cg_id(all[i])));
		EXPECT_EQ(pass_usec(cg_id(all[i]), HOST_USAGE), after[i].usage);
	}
	if (!pass_by_files()) {
		EXPECT_EQ(pass_ns(cg_id("b/a"), HOST_USAGE),
			  pass_ns(cg_id("b/a/1"), HOST_USAGE) +
				  pass_ns(cg_id("b/a/2"), HOST_USAGE));
		EXPECT_EQ(pass_ns(cg_id("b"), HOST_USAGE),
			  pass_ns(cg_id("b/a"), HOST_USAGE) + pass_ns(cg_id("b/b"), HOST_USAGE) +
				  pass_ns(cg_id("b/c"), HOST_USAGE));
	}
	tree_remove();
}

TEST(machine_root_bracketed)
{
	struct cg_stat before, after;
	const char *cannot = pass_start(NULL);
	char path[4300];

	if (cannot)
		SKIP(cannot);
	snprintf(path, sizeof(path), "%s/cpu.stat", cg_mount());
	for (int i = 0; i < 50; i++) {
		const struct source_group *g;

		EXPECT_EQ(cg_read_file(path, &before), 0);
		EXPECT_EQ(pass(), 0);
		EXPECT_EQ(cg_read_file(path, &after), 0);
		g = pass_tree.group[0];
		EXPECT(before.usage <= g->value[HOST_USAGE] / 1000 &&
		       g->value[HOST_USAGE] / 1000 <= after.usage);
		EXPECT(before.user <= g->value[HOST_USER] / 1000 &&
		       g->value[HOST_USER] / 1000 <= after.user);
	}
}

TEST(removed_child_stays_in_its_ancestors)
{
	uint64_t last[2] = { 0 };
	const char *cannot = pass_start(NULL);
	struct cg_stat k;

	if (cannot)
		SKIP(cannot);
	EXPECT_EQ(cg_make("r"), 0);
	EXPECT_EQ(cg_make("r/p"), 0);
	for (int round = 0; round < 8; round++) {
		pid_t pid;

		EXPECT_EQ(cg_make("r/p/child"), 0);
		pid = cg_burn("r/p/child", CG_MIXED);
		for (int i = 0; i < 30; i++) {
			struct timespec ts = { 0, 2000000 };

			EXPECT_EQ(pass(), 0);
			for (int a = 0; a < 2; a++) {
				const struct source_group *g = pass_find(cg_id(a ? "r/p" : "r"));

				REQUIRE(g);
				EXPECT(g->value[HOST_USAGE] >= last[a], "fell by %llu ns",
				       (unsigned long long)(last[a] - g->value[HOST_USAGE]));
				last[a] = g->value[HOST_USAGE];
			}
			if (i == 15)
				cg_kill(pid);
			if (i == 20)
				EXPECT_EQ(cg_remove_wait("r/p/child"), 0);
			nanosleep(&ts, NULL);
		}
	}
	cg_rest("r");
	EXPECT_EQ(pass(), 0);
	for (int a = 0; a < 2; a++) {
		EXPECT_EQ(cg_read(a ? "r/p" : "r", &k), 0);
		EXPECT_EQ(pass_usec(cg_id(a ? "r/p" : "r"), HOST_USAGE), k.usage);
		EXPECT(k.usage > 10000);
	}
	/* Another start knows nothing of the past but what the kernel still holds. */
	pass_end();
	REQUIRE(!pass_start(NULL));
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(pass_usec(cg_id("r/p"), HOST_USAGE), k.usage);
	EXPECT_EQ(cg_remove_wait("r/p"), 0);
	EXPECT_EQ(cg_remove_wait("r"), 0);
}

/* Nobody saw it: it came, burned and went between two passes, long after anything else did. */
TEST(a_cgroup_that_no_pass_met)
{
	struct timespec window = { 2, 200000000 };
	const char *cannot = pass_start(NULL);
	char root[CG_PATH];
	struct cg_stat k;

	if (cannot)
		SKIP(cannot);
	EXPECT_EQ(cg_make("unmet"), 0);
	EXPECT_EQ(cg_make("unmet/p"), 0);
	cg_full("unmet", root);
	pass_end();
	REQUIRE(!pass_start(root));
	EXPECT_EQ(pass(), 0);
	nanosleep(&window, NULL);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(cg_make("unmet/p/child"), 0);
	waitpid(cg_burn_for("unmet/p/child", 20000), NULL, 0);
	EXPECT_EQ(cg_remove_wait("unmet/p/child"), 0);
	cg_rest("unmet");
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(pass_tree.count, 2);
	EXPECT_EQ(cg_read("unmet/p", &k), 0);
	EXPECT(k.usage >= 10000);
	EXPECT_EQ(pass_usec(cg_id("unmet/p"), HOST_USAGE), k.usage);
	EXPECT_EQ(pass_usec(cg_id("unmet"), HOST_USAGE), k.usage);
	pass_end();
	EXPECT_EQ(cg_remove_wait("unmet/p"), 0);
	EXPECT_EQ(cg_remove_wait("unmet"), 0);
}

TEST(same_name_again_is_another_cgroup)
{
	const char *cannot = pass_start(NULL);
	uint64_t first, second;
	pid_t pid;

	if (cannot)
		SKIP(cannot);
	EXPECT_EQ(cg_make("again"), 0);
	first = cg_id("again");
	pid = cg_burn_for("again", 30000);
	waitpid(pid, NULL, 0);
	EXPECT_EQ(pass(), 0);
	REQUIRE(pass_find(first));
	EXPECT(pass_usec(first, HOST_USAGE) >= 10000);
	EXPECT_EQ(cg_remove_wait("again"), 0);
	EXPECT_EQ(cg_make("again"), 0);
	second = cg_id("again");
	EXPECT(first != second);
	EXPECT_EQ(pass(), 0);
	EXPECT(!pass_find(first));
	REQUIRE(pass_find(second));
	EXPECT_EQ(pass_usec(second, HOST_USAGE), 0);
	EXPECT_EQ(cg_remove_wait("again"), 0);
}

TEST(odd_names_and_depth)
{
	static const char *const odd[] = {
		"a\"b\\c d", "tab\there", "\xc3\xbc\xe2\x82\xac", "\xff\xfe", "{}$`;&|<>*?", "..x",
		"-n",        " "
	};
	char longest[256], deep[3 * 50 + 8] = "d";
	const char *cannot = pass_start(NULL);

	if (cannot)
		SKIP(cannot);
	memset(longest, 'x', 255);
	longest[255] = 0;
	for (size_t i = 0; i <= N(odd); i++)
		EXPECT_EQ(cg_make(i < N(odd) ? odd[i] : longest), 0);
	EXPECT_EQ(cg_make(deep), 0);
	for (int i = 1; i < 50; i++) {
		strcat(deep, "/d");
		EXPECT_EQ(cg_make(deep), 0);
	}
	waitpid(cg_burn_for(deep, 20000), NULL, 0);
	cg_rest("");
	EXPECT_EQ(pass(), 0);
	for (size_t i = 0; i <= N(odd); i++) {
		const char *name = i < N(odd) ? odd[i] : longest;
		const struct source_group *g = pass_find(cg_id(name));

		EXPECT(g && !strcmp(g->name, name), "%s", name);
		EXPECT_EQ(cg_remove_wait(name), 0);
	}
	for (int i = 50; i > 0; i--) {
		const struct source_group *g = pass_find(cg_id(deep));
		struct cg_stat k;

		EXPECT_EQ(cg_read(deep, &k), 0);
		EXPECT(g && g->value[HOST_USAGE] / 1000 == k.usage && k.usage >= 10000,
		       "at depth %d", i);
		EXPECT_EQ(cg_remove_wait(deep), 0);
		if (i > 1)
			*strrchr(deep, '/') = 0;
	}
}

TAP_MAIN
