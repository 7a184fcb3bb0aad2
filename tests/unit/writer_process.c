/* SPDX-License-Identifier: MIT */
/* Producers that are other processes: killed, restarted, stopped in the middle of a pass. What
 * they leave is read, and is not passed off as current. */
#include "tap.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "core/segment.h"
#include "unit/segment_help.h"

#define GROUPS 1500u

/* A producer in a child: GROUPS groups; when it has published `passes` it stops publishing, but
 * stays (0: never). Returns when the first pass is there. */
static pid_t start(const char *path, uint64_t passes)
{
	int ready[2];
	char c;
	pid_t pid;

	if (pipe(ready))
		return -1;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct writer_options o = help_options(GROUPS);
		struct writer_node *n = calloc(GROUPS, sizeof(*n));
		struct writer *w;

		if (!n || writer_open(path, &o, &w))
			_exit(1);
		for (uint32_t i = 0; i < GROUPS; i++)
			n[i] = (struct writer_node){ i, i ? "g" : "", 0, WRITER_NEW };
		for (uint64_t p = 0; passes == 0 || p < passes; p++) {
			help_pass(w, n, GROUPS, p == 0);
			if (p == 0 && write(ready[1], "", 1) != 1)
				_exit(1);
		}
		for (;;)
			pause();
	}
	close(ready[1]);
	if (pid > 0 && read(ready[0], &c, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(ready[0]);
	return pid;
}

static void end(pid_t pid, int sig)
{
	kill(pid, sig);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
}

static struct freshet_moment moment(const struct freshet_view *v)
{
	struct freshet_moment m = { 0 };

	EXPECT_EQ(freshet_last_pass(v, &m), 0);
	return m;
}

TEST(killed_and_restarted)
{
	char *dir = help_dir(), *path = help_path(dir, "seg"), *lock = help_path(dir, "seg.lock");
	struct freshet_producer_info first, second;
	struct freshet_group g;
	struct freshet_moment m;
	struct freshet_view *v;
	uint64_t values[COLUMNS], present, age, later;
	struct writer_options o = help_options(10);
	struct writer *w;
	pid_t pid = start(path, 3);

	REQUIRE(pid > 0 && freshet_attach(path, &v) == 0);
	EXPECT_EQ(freshet_producer(v), FRESHET_ALIVE);
	EXPECT_EQ(writer_open(path, &o, &w), -EBUSY);
	EXPECT_EQ(freshet_producer_info(v, &first), 0);
	EXPECT_EQ(first.pid, pid);
	end(pid, SIGKILL);

	/* Gone: the numbers are the old ones, and get older. */
	EXPECT_EQ(freshet_producer(v), FRESHET_GONE);
	EXPECT_EQ(freshet_reattach(v), 0);
	EXPECT_EQ(freshet_find(v, "/g", &g), 0);
	EXPECT_EQ(freshet_read_total(v, g, 0, COLUMNS, values, &present, &m), 0);
	EXPECT_EQ(values[0], help_value(m.pass, 1, 0));
	EXPECT_EQ(freshet_age(v, &age), 0);
	while (freshet_age(v, &later) == 0 && later == age)
		;
	EXPECT(later > age);
	EXPECT_EQ(moment(v).pass, m.pass);
	EXPECT_EQ(freshet_refresh(v, 0, NSEC_PER_SEC), -ECONNREFUSED);

	/* Another takes its place. */
	pid = start(path, 1);
	REQUIRE(pid > 0);
	EXPECT_EQ(freshet_producer(v), FRESHET_REPLACED);
	EXPECT_EQ(moment(v).pass, m.pass);
	EXPECT_EQ(freshet_reattach(v), 1);
	EXPECT_EQ(freshet_producer(v), FRESHET_ALIVE);
	EXPECT_EQ(moment(v).pass, 1);
	EXPECT_EQ(freshet_producer_info(v, &second), 0);
	EXPECT(memcmp(first.identity, second.identity, 16));
	EXPECT_EQ(freshet_reattach(v), 0);
	end(pid, SIGKILL);

	/* Even without a file to see, and when something else lies there. */
	EXPECT_EQ(unlink(path), 0);
	EXPECT_EQ(freshet_producer(v), FRESHET_GONE);
	EXPECT_EQ(freshet_reattach(v), 0);
	EXPECT_EQ(symlink("/dev/null", path), 0);
	EXPECT_EQ(freshet_reattach(v), -EPROTO);
	EXPECT_EQ(moment(v).pass, 1);
	freshet_detach(v);
	unlink(path);
	unlink(lock);
	rmdir(dir);
	free(lock);
	free(path);
	free(dir);
}

TEST(relative_path)
{
	char *dir = help_dir(), *path = help_path(dir, "seg"), *lock = help_path(dir, "seg.lock");
	char *cwd = getcwd(NULL, 0);
	struct freshet_view *v;
	pid_t pid = start(path, 1);

	REQUIRE(pid > 0 && cwd && chdir(dir) == 0);
	EXPECT_EQ(freshet_attach("seg", &v), 0);
	EXPECT_EQ(chdir(cwd), 0);
	end(pid, SIGKILL);
	pid = start(path, 1);
	REQUIRE(pid > 0);
	EXPECT_EQ(freshet_producer(v), FRESHET_REPLACED);
	EXPECT_EQ(freshet_reattach(v), 1);
	end(pid, SIGKILL);
	freshet_detach(v);
	unlink(path);
	unlink(lock);
	rmdir(dir);
	free(cwd);
	free(lock);
	free(path);
	free(dir);
}

/* Whether the producer stands in the middle of filling the next bank: looked up in the file. */
static int filling(const char *path)
{
	struct seg_header h;
	struct seg_bank next;
	FILE *f = fopen(path, "re");
	int r = -1;

	if (f && fread(&h, sizeof(h), 1, f) == 1 &&
	    fseek(f,
		  (long)(h.section[3].offset + (h.generation + 1) % h.nbanks * h.section[3].stride),
		  SEEK_SET) == 0 &&
	    fread(&next, sizeof(next), 1, f) == 1)
		r = next.generation == h.generation + 1;
	if (f)
		fclose(f);
	return r;
}

static void check_whole(const struct freshet_view *v, struct freshet_snapshot *snap)
{
	const struct freshet_entry *e;
	struct freshet_moment m;
	unsigned torn = 0;

	EXPECT_EQ(freshet_snapshot_take(snap, v), 0);
	EXPECT_EQ(freshet_snapshot_count(snap), GROUPS);
	freshet_snapshot_moment(snap, &m);
	e = freshet_snapshot_entries(snap);
	for (size_t i = 0; i < freshet_snapshot_count(snap); i++)
		for (unsigned c = 0; c < COLUMNS; c++)
			torn += e[i].values[c] != help_value(m.pass, e[i].id, c);
	EXPECT_EQ(torn, 0);
}

TEST(stopped_at_any_point)
{
	char *dir = help_dir(), *path = help_path(dir, "seg"), *lock = help_path(dir, "seg.lock");
	unsigned short seed[3] = { 7, 8, 9 };
	uint64_t values[COLUMNS], present;
	struct freshet_snapshot *snap;
	struct freshet_moment m, before = { 0 };
	struct freshet_view *v;
	struct freshet_group g;
	unsigned in_the_middle = 0;
	pid_t pid = start(path, 0);
	int status;

	REQUIRE(pid > 0 && freshet_attach(path, &v) == 0 && freshet_snapshot_new(&snap) == 0);
	REQUIRE(freshet_find(v, "/g", &g) == 0);
	for (int i = 0; i < 200; i++) {
		struct timespec ts = { 0, 1000 * (nrand48(seed) % 200) };

		kill(pid, SIGSTOP);
		REQUIRE(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
		in_the_middle += filling(path) == 1;
		EXPECT_EQ(freshet_producer(v), FRESHET_ALIVE);
		check_whole(v, snap);
		EXPECT_EQ(freshet_read_total(v, g, 0, COLUMNS, values, &present, &m), 0);
		EXPECT_EQ(values[0], help_value(m.pass, 1, 0));
		EXPECT(m.pass >= before.pass);
		before = m;
		kill(pid, SIGCONT);
		nanosleep(&ts, NULL);
	}
	/* It does little else, so most stops should be. */
	EXPECT(in_the_middle >= 10, "%u of 200", in_the_middle);
	printf("# %u of 200 stops in the middle of filling a bank, pass %llu\n", in_the_middle,
	       (unsigned long long)m.pass);
	/* Killed while it is stopped. */
	kill(pid, SIGSTOP);
	end(pid, SIGKILL);
	EXPECT_EQ(freshet_producer(v), FRESHET_GONE);
	check_whole(v, snap);
	freshet_snapshot_free(snap);
	freshet_detach(v);
	unlink(path);
	unlink(lock);
	rmdir(dir);
	free(lock);
	free(path);
	free(dir);
}

TAP_MAIN
