/* SPDX-License-Identifier: MIT */
/*
 * Cgroups with burning children made and removed a hundred times a second while passes run at full
 * speed: no surviving ancestor ever falls, each stays between two readings of its cpu.stat, and at
 * rest all equal the kernel. FRESHET_TEST_SOURCE: bpf (default) or files.
 */
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

#include <freshet/freshet.h>

#include "base/clock.h"
#include "oracle/cg.h"
#include "oracle/pass.h"
#include "source/collector.h"

static const char *const ancestors[] = { "churn", "churn/a", "churn/a/b" };
#define NANCESTORS 3

/* A process that, until killed, makes churn/a/b/N with a grandchild, burns in it, removes both. */
static pid_t churner(unsigned period_us)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	signal(SIGTERM, SIG_DFL);
	for (unsigned n = 0;; n++) {
		struct timespec ts = { 0, (long)period_us * 1000 };
		char dir[64], sub[80];

		snprintf(dir, sizeof(dir), "churn/a/b/%u-%u", (unsigned)getpid(), n);
		snprintf(sub, sizeof(sub), "%s/x", dir);
		if (cg_make(dir) < 0 || cg_make(sub) < 0)
			_exit(1);
		waitpid(cg_burn_for(n % 2 ? dir : sub, 2000), NULL, 0);
		if (cg_remove_wait(sub) < 0 || cg_remove_wait(dir) < 0)
			_exit(2);
		nanosleep(&ts, NULL);
	}
}

/*
 * A charge is added to bstat first and queued for the next flush second, without a fence between,
 * so that a flush at that moment passes it by: cpu.stat then shows it a little later than we do.
 * That it shows it at all is what proves that we did not count too much.
 */
static bool kernel_reaches(const char *path, uint64_t usage)
{
	struct cg_stat k;

	for (int i = 0; i < 100; i++) {
		struct timespec ts = { 0, 1000000 };

		if (!cg_read(path, &k) && k.usage >= usage)
			return true;
		nanosleep(&ts, NULL);
	}
	return false;
}

TEST(ancestors_under_churn)
{
	uint64_t last[NANCESTORS][3] = { 0 }, until, passes = 0, brackets = 0, late = 0;
	const char *cannot = pass_start(NULL);
	uint32_t shapes = 0;
	uint64_t shape = 0;
	pid_t pid[2];
	struct cg_stat k;
	int seconds = pass_seconds(4);

	if (cannot)
		SKIP(cannot);
	for (int a = 0; a < NANCESTORS; a++)
		EXPECT_EQ(cg_make(ancestors[a]), 0);
	pid[0] = churner(3000);
	pid[1] = churner(9000);
	for (until = clock_ns() + (uint64_t)seconds * NSEC_PER_SEC; clock_ns() < until; passes++) {
		struct cg_stat before[NANCESTORS], after[NANCESTORS];
		bool bracket = passes % 8 == 0; /* the readings flush: most passes go without */

		for (int a = 0; bracket && a < NANCESTORS; a++)
			EXPECT_EQ(cg_read(ancestors[a], &before[a]), 0);
		EXPECT_EQ(pass(), 0);
		for (int a = 0; bracket && a < NANCESTORS; a++)
			EXPECT_EQ(cg_read(ancestors[a], &after[a]), 0);
		for (int a = 0; a < NANCESTORS; a++) {
			const struct source_group *g = pass_find(cg_id(ancestors[a]));

			REQUIRE(g);
			for (int c = 0; c < 3; c++) {
				EXPECT(g->value[c] >= last[a][c], "%s %s fell by %llu ns",
				       ancestors[a], host_stats[c].key,
				       (unsigned long long)(last[a][c] - g->value[c]));
				last[a][c] = g->value[c];
			}
			if (!bracket)
				continue;
			brackets++;
			EXPECT(before[a].usage <= g->value[0] / 1000, "%s: %llu < %llu",
			       ancestors[a], (unsigned long long)g->value[0] / 1000,
			       (unsigned long long)before[a].usage);
			if (g->value[0] / 1000 > after[a].usage) {
				late++;
				EXPECT(kernel_reaches(ancestors[a], g->value[0] / 1000),
				       "%s: %llu, the kernel never", ancestors[a],
				       (unsigned long long)g->value[0] / 1000);
			}
		}
		shapes += pass_tree.shape != shape;
		shape = pass_tree.shape;
	}
	EXPECT(waitpid(pid[0], NULL, WNOHANG) == 0 && waitpid(pid[1], NULL, WNOHANG) == 0,
	       "a churner ended");
	cg_kill(pid[0]);
	cg_kill(pid[1]);
	printf("# %llu passes in %d s, %u shapes; %llu brackets, cpu.stat late in %llu\n",
	       (unsigned long long)passes, seconds, shapes, (unsigned long long)brackets,
	       (unsigned long long)late);
	EXPECT(shapes > 20);
	EXPECT(late * 100 <= brackets);

	cg_rest("churn");
	EXPECT_EQ(pass(), 0);
	for (int a = 0; a < NANCESTORS; a++) {
		EXPECT_EQ(cg_read(ancestors[a], &k), 0);
		EXPECT_EQ(pass_usec(cg_id(ancestors[a]), HOST_USAGE), k.usage);
	}
}

TEST(five_thousand_cgroups)
{
	const char *cannot = pass_start(NULL);
	char name[64], root[CG_PATH];
	int n = 5000;

	if (cannot)
		SKIP(cannot);
	/* A tree of its own: others make and remove cgroups too. */
	EXPECT_EQ(cg_make("many"), 0);
	cg_full("many", root);
	pass_end();
	REQUIRE(!pass_start(root));
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(pass_tree.count, 1);
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "many/%d", i);
		REQUIRE(cg_make(name) == 0, "%s", name);
	}
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(pass_tree.count, 1 + n);
	for (int i = 0; i < n; i++) {
		const struct source_group *g;

		snprintf(name, sizeof(name), "many/%d", i);
		g = i % 97 ? NULL : pass_find(cg_id(name));
		EXPECT(i % 97 || (g && !strcmp(g->name, name + 5)), "%s", name);
	}
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "many/%d", i);
		EXPECT_EQ(cg_remove(name), 0);
	}
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(pass_tree.count, 1);
	pass_end();
	EXPECT_EQ(cg_remove_wait("many"), 0);
}

TEST(the_root_itself_goes)
{
	const char *cannot = pass_start(NULL);
	char root[CG_PATH];

	if (cannot)
		SKIP(cannot);
	EXPECT_EQ(cg_make("gone"), 0);
	EXPECT_EQ(cg_make("gone/below"), 0);
	cg_full("gone", root);
	pass_end();
	REQUIRE(!pass_start(root));
	EXPECT_EQ(pass(), 0);
	EXPECT_EQ(pass_tree.count, 2);
	EXPECT(!strcmp(pass_tree.group[0]->name, "") && pass_tree.group[0]->id == cg_id("gone"));
	EXPECT_EQ(cg_remove_wait("gone/below"), 0);
	EXPECT_EQ(cg_remove_wait("gone"), 0);
	EXPECT_EQ(pass(), -ENODEV);
	EXPECT_EQ(pass(), -ENODEV);
	pass_end();
}

TEST(a_root_that_comes_back_is_followed)
{
	struct collector_options o = { .size = sizeof(o), .producer = "test" };
	struct freshet_view *view;
	struct freshet_group g;
	struct collector *c;
	const char *cannot = pass_start(NULL);
	struct freshet_info info;
	char why[512], root[CG_PATH];

	if (cannot)
		SKIP(cannot);
	EXPECT_EQ(cg_make("back"), 0);
	EXPECT_EQ(cg_make("back/old"), 0);
	cg_full("back", root);
	o.root = root;
	o.source = pass_by_files() ? COLLECT_FILES : COLLECT_BPF;
	REQUIRE(collector_open(&o, &c, why, sizeof(why)) == 0, "%s", why);
	EXPECT_EQ(collector_pass(c), 0);
	REQUIRE(freshet_attach_fd(collector_fd(c), &view) == 0);
	EXPECT_EQ(freshet_find(view, "/old", &g), 0);
	EXPECT_EQ(cg_remove_wait("back/old"), 0);
	EXPECT_EQ(cg_remove_wait("back"), 0);
	EXPECT_EQ(collector_pass(c), -ENODEV);
	EXPECT_EQ(freshet_find(view, "/old", &g), 0); /* the last that was published */

	EXPECT_EQ(cg_make("back"), 0);
	EXPECT_EQ(cg_make("back/new"), 0);
	EXPECT_EQ(collector_pass(c), 0);
	EXPECT_EQ(freshet_find(view, "/old", &g), -ENOENT);
	EXPECT_EQ(freshet_find(view, "/new", &g), 0);
	EXPECT_EQ(freshet_root(view, &g), 0);
	EXPECT_EQ(freshet_info(view, g, &info), 0);
	EXPECT_EQ(info.id, cg_id("back"));
	freshet_detach(view);
	collector_close(c);
	EXPECT_EQ(cg_remove_wait("back/new"), 0);
	EXPECT_EQ(cg_remove_wait("back"), 0);
}

/* Where BPF ran, its root's coming back at a bad moment does not turn it into flushes for good. */
TEST(a_root_that_comes_back_is_read_the_same_way)
{
	struct collector_options o = { .size = sizeof(o), .producer = "test" };
	const char *cannot = pass_start(NULL);
	char why[512], root[CG_PATH];
	struct collector *c;

	if (cannot)
		SKIP(cannot);
	if (pass_by_files())
		return; /* there is nothing less that it could turn into */
	EXPECT_EQ(cg_make("same"), 0);
	cg_full("same", root);
	o.root = root;
	o.source = COLLECT_AUTO;
	REQUIRE(collector_open(&o, &c, why, sizeof(why)) == 0, "%s", why);
	EXPECT(!strcmp(collector_source_name(c), "bpf"), "%s", why);
	EXPECT_EQ(cg_remove_wait("same"), 0);
	EXPECT_EQ(cg_make("same"), 0);
	REQUIRE(seteuid(65534) == 0);
	EXPECT(collector_pass(c) < 0);
	EXPECT(!strcmp(collector_source_name(c), "bpf"));
	REQUIRE(seteuid(0) == 0);
	EXPECT_EQ(collector_pass(c), 0);
	EXPECT(!strcmp(collector_source_name(c), "bpf"));
	collector_close(c);
	EXPECT_EQ(cg_remove_wait("same"), 0);
}

TAP_MAIN
