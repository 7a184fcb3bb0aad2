/* SPDX-License-Identifier: MIT */
/*
 * The collector with a source of our own: a reader of the segment must see what the source gave,
 * no more and no less, through all changes of the tree; and what collector_open() chooses and says.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <freshet/freshet.h>

#include "base/clock.h"
#include "source/collector_internal.h"
#include "source/mount.h"
#include "tap.h"

#define MAX 64

/* A source whose tree the test changes. Groups are found by index; array holds them in pre-order. */
struct fake {
	struct source base;
	struct group {
		struct source_group pub;
		struct group *parent; /* NULL: the root, or not there */
		bool there;
		char name[16];
	} group[MAX];
	struct source_group *array[MAX];
	uint64_t next_id, pass, shape;
	uint32_t gone, left_out;
	int fails; /* what the next pass gives */
};

static int freed;

static void fake_list(struct fake *f, struct group *g, uint32_t parent, uint32_t *count)
{
	uint32_t here = *count;

	g->pub.parent = parent;
	f->array[(*count)++] = &g->pub;
	for (unsigned i = 1; i < MAX; i++) {
		if (f->group[i].there && f->group[i].parent == g)
			fake_list(f, &f->group[i], here, count);
	}
}

static int fake_pass(struct source *s, struct source_tree *tree)
{
	struct fake *f = (struct fake *)s;
	uint32_t count = 0;

	if (f->fails) {
		int r = f->fails;

		f->fails = 0;
		return r;
	}
	fake_list(f, &f->group[0], 0, &count);
	*tree = (struct source_tree){
		.pass = ++f->pass,
		.shape = f->shape,
		.group = f->array,
		.count = count,
		.gone = f->gone,
		.left_out = f->left_out,
		.begin_ns = 1000 + f->pass,
	};
	f->gone = 0;
	return 0;
}

static void fake_free(struct source *s)
{
	free(s);
	freed++;
}

static const struct source_ops fake_ops = { .name = "fake", .pass = fake_pass, .free = fake_free };

static void fake_set(struct fake *f, unsigned i, uint64_t value, uint64_t present)
{
	struct source_group *g = &f->group[i].pub;

	g->present = present & ((1u << HOST_NSTATS) - 1);
	for (unsigned s = 0; s < HOST_NSTATS; s++)
		g->value[s] = g->present >> s & 1 ? value + s : 0;
	g->changed = f->pass + 1;
}

static void fake_add(struct fake *f, unsigned i, unsigned parent, uint64_t value)
{
	struct group *g = &f->group[i];

	memset(g, 0, sizeof(*g));
	g->there = true;
	g->parent = i ? &f->group[parent] : NULL;
	if (i)
		snprintf(g->name, sizeof(g->name), "g%u-%u", i, (unsigned)f->next_id);
	g->pub.id = ++f->next_id;
	g->pub.name = g->name;
	g->pub.slot = UINT32_MAX;
	fake_set(f, i, value, UINT64_MAX);
	f->shape++;
}

static void fake_remove(struct fake *f, unsigned i)
{
	f->group[i].there = false;
	for (unsigned c = 1; c < MAX; c++) {
		if (f->group[c].there && f->group[c].parent == &f->group[i])
			fake_remove(f, c);
	}
	f->shape++;
}

static struct fake *fake;
static struct collector *collector;
static struct freshet_view *view;
static struct freshet_snapshot *snapshot;

/* A collector over a fake source with a root, and a reader of its segment after the first pass. */
static int begin(uint32_t max_groups)
{
	struct collector_options options = { .size = sizeof(options),
					     .producer = "test",
					     .max_groups = max_groups,
					     .interval_ns = 77 };
	int r;

	view = NULL;
	snapshot = NULL;
	collector = NULL;
	fake = calloc(1, sizeof(*fake));
	fake->base.ops = &fake_ops;
	fake_add(fake, 0, 0, 5);
	r = collector_open_source(&fake->base, "/somewhere", &options, &collector);
	if (!EXPECT(r == 0, "%s", strerror(-r)))
		return r;
	EXPECT(freshet_attach_fd(collector_fd(collector), &view) < 0);
	EXPECT_EQ(collector_pass(collector), 0);
	r = freshet_attach_fd(collector_fd(collector), &view);
	if (!EXPECT(r == 0, "%s", strerror(-r)))
		return r;
	return freshet_snapshot_new(&snapshot);
}

static void end(void)
{
	freshet_snapshot_free(snapshot);
	freshet_detach(view);
	freed = 0;
	collector_close(collector);
	EXPECT_EQ(freed, 1);
}

/* The segment as of now is what the source gave in its last pass. */
static void expect_same(void)
{
	const struct freshet_entry *e;
	struct freshet_moment moment;
	uint32_t count = 0;

	EXPECT_EQ(freshet_snapshot_take(snapshot, view), 0);
	for (unsigned i = 0; i < MAX; i++)
		count += fake->group[i].there;
	REQUIRE(freshet_snapshot_count(snapshot) == count, "%zu, not %u",
		freshet_snapshot_count(snapshot), count);
	freshet_snapshot_moment(snapshot, &moment);
	EXPECT_EQ(moment.begin_ns, 1000 + fake->pass);
	EXPECT(moment.end_ns <= clock_ns());
	e = freshet_snapshot_entries(snapshot);
	for (uint32_t i = 0; i < count; i++) {
		const struct source_group *g = fake->array[i];

		EXPECT_EQ(e[i].id, g->id);
		EXPECT_EQ(e[i].parent, g->parent);
		EXPECT(!strcmp(e[i].name, g->name), "%s, not %s", e[i].name, g->name);
		EXPECT_EQ(e[i].present, g->present);
		for (unsigned s = 0; s < HOST_NSTATS; s++)
			EXPECT_EQ(e[i].values[s], g->value[s]);
	}
}

static struct collector_stats stats(void)
{
	struct collector_stats s;

	collector_stats(collector, &s);
	return s;
}

TEST(a_reader_sees_what_the_source_gave)
{
	struct freshet_producer_info info;
	const struct freshet_stat *columns;
	size_t n;

	if (begin(MAX))
		return;
	expect_same();
	fake_add(fake, 1, 0, 10);
	fake_add(fake, 2, 1, 20);
	fake_add(fake, 3, 0, 30);
	EXPECT_EQ(collector_pass(collector), 0);
	expect_same();
	fake_set(fake, 2, 21, 1 << HOST_USAGE);
	EXPECT_EQ(collector_pass(collector), 0);
	expect_same();
	fake_set(fake, 2, 21, 0);
	EXPECT_EQ(collector_pass(collector), 0);
	expect_same();
	fake_remove(fake, 1);
	EXPECT_EQ(collector_pass(collector), 0);
	expect_same();
	EXPECT_EQ(stats().passes, 5);
	EXPECT_EQ(stats().groups, 2);
	EXPECT_EQ(stats().left_out, 0);
	EXPECT_EQ(stats().failed, 0);
	EXPECT(stats().last_ns > 0 && stats().last_ns < 60 * NSEC_PER_SEC);
	EXPECT(!strcmp(collector_source_name(collector), "fake"));
	EXPECT(!strcmp(collector_root(collector), "/somewhere"));
	EXPECT_EQ(freshet_producer_info(view, &info), 0);
	EXPECT(!strcmp(info.name, "test"));
	EXPECT_EQ(info.interval_ns, 77);
	columns = freshet_stats(view, &n);
	EXPECT_EQ(n, HOST_NSTATS);
	for (size_t i = 0; i < n; i++)
		EXPECT(!strcmp(columns[i].key, host_stats[i].key) &&
		       columns[i].unit == host_stats[i].unit &&
		       columns[i].kind == host_stats[i].kind);
	end();
}

TEST(a_thousand_passes_of_random_changes)
{
	uint32_t seed = 1;
	unsigned most = 0;

	if (begin(MAX))
		return;
	for (unsigned n = 0; n < 1000; n++) {
		/* several changes, one, or none between two passes */
		for (unsigned k = n % 4; k; k--) {
			unsigned i, parent;

			seed = seed * 1664525 + 1013904223;
			i = 1 + (seed >> 8) % (MAX / 2 - 1);
			parent = (seed >> 16) % i;
			if (!fake->group[i].there && fake->group[parent].there)
				fake_add(fake, i, parent, seed);
			else if (fake->group[i].there && seed >> 30 == 0)
				fake_remove(fake, i);
			else if (fake->group[i].there)
				fake_set(fake, i, seed, seed >> 4);
		}
		if (seed >> 28 == 3) {
			fake->fails = -ENOMEM;
			EXPECT_EQ(collector_pass(collector), -ENOMEM);
		}
		EXPECT_EQ(collector_pass(collector), 0);
		expect_same();
		if (freshet_snapshot_count(snapshot) > most)
			most = (unsigned)freshet_snapshot_count(snapshot);
		if (tap_bad)
			break;
	}
	EXPECT(most > 10, "%u", most);
	EXPECT_EQ(stats().left_out, 0);
	end();
}

TEST(a_failed_pass_publishes_nothing)
{
	struct freshet_moment before, after;

	if (begin(MAX))
		return;
	EXPECT_EQ(freshet_last_pass(view, &before), 0);
	fake->fails = -ENODEV;
	EXPECT_EQ(collector_pass(collector), -ENODEV);
	EXPECT_EQ(freshet_last_pass(view, &after), 0);
	EXPECT_EQ(after.pass, before.pass);
	EXPECT_EQ(after.end_ns, before.end_ns);
	EXPECT_EQ(stats().failed, 1);
	EXPECT_EQ(stats().passes, 1);
	fake_set(fake, 0, 6, UINT64_MAX);
	EXPECT_EQ(collector_pass(collector), 0);
	expect_same();
	EXPECT_EQ(stats().passes, 2);
	end();
}

static uint64_t overflowed(void)
{
	struct freshet_producer_info info = { .overflowed = UINT64_MAX };

	EXPECT_EQ(freshet_producer_info(view, &info), 0);
	return info.overflowed;
}

TEST(overflow_is_counted_and_ends)
{
	uint64_t shape;

	if (begin(8))
		return;
	for (unsigned i = 1; i < 12; i++)
		fake_add(fake, i, 0, i);
	fake->left_out = 3;
	fake->gone = 2;
	EXPECT_EQ(collector_pass(collector), 0);
	EXPECT_EQ(overflowed(), 4 + 3);
	EXPECT_EQ(stats().left_out, 4 + 3);
	EXPECT_EQ(stats().groups, 8);
	EXPECT_EQ(stats().gone, 2);
	EXPECT_EQ(freshet_snapshot_take(snapshot, view), 0);
	EXPECT_EQ(freshet_snapshot_count(snapshot), 8);
	/* Room comes: those who waited get it some passes later, with numbers that did not change
	 * since, and without another change of the tree. */
	fake->left_out = 0;
	for (unsigned i = 1; i < 5; i++)
		fake_remove(fake, i);
	shape = fake->shape;
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(collector_pass(collector), 0);
	EXPECT_EQ(fake->shape, shape);
	EXPECT_EQ(overflowed(), 0);
	EXPECT_EQ(stats().left_out, 0);
	EXPECT_EQ(stats().groups, 8);
	EXPECT_EQ(stats().gone, 2);
	expect_same();
	end();
}

static void remove_directory(void *p)
{
	rmdir(p);
}

TEST(a_segment_that_cannot_be_made)
{
	__attribute__((cleanup(remove_directory))) char dir[] = "/tmp/freshet-collector-XXXXXX";
	char path[64];
	struct collector_options options = { .size = sizeof(options),
					     .producer = "test",
					     .source = COLLECT_FILES,
					     .segment = path };
	struct collector *first = NULL, *second = NULL;
	struct cgroup_mount m;
	char why[512] = "";

	if (mount_find(&m) < 0)
		SKIP("no cgroup2");
	REQUIRE(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/host", dir);
	EXPECT_EQ(collector_open(&options, &first, why, sizeof(why)), 0);
	EXPECT_EQ(collector_open(&options, &second, why, sizeof(why)), -EBUSY);
	EXPECT(!second && strstr(why, path) && strstr(why, "another process"), "%s", why);
	collector_close(first);
	EXPECT(access(path, F_OK) < 0);
	snprintf(path, sizeof(path), "%s/none/host", dir);
	EXPECT(collector_open(&options, &second, why, sizeof(why)) < 0);
	EXPECT(!second && strstr(why, path), "%s", why);
	snprintf(path, sizeof(path), "%s/host.lock", dir);
	unlink(path);
}

static void attach_anew(void)
{
	freshet_detach(view);
	view = NULL;
	REQUIRE(freshet_attach_fd(collector_fd(collector), &view) == 0);
}

TEST(a_segment_that_somebody_removed)
{
	__attribute__((cleanup(remove_directory))) char dir[] = "/tmp/freshet-collector-XXXXXX";
	char path[64], why[512] = "";
	struct collector_options options = {
		.size = sizeof(options), .producer = "test", .segment = path, .max_groups = 8
	};
	struct freshet_view *reader;
	struct freshet_moment moment;

	REQUIRE(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/host", dir);
	REQUIRE(begin(8) == 0);
	/* Slots that are not in the order of the tree, and one that waits to be used again. */
	fake_add(fake, 3, 0, 300);
	EXPECT_EQ(collector_pass(collector), 0);
	fake_add(fake, 1, 0, 100);
	fake_add(fake, 2, 1, 200);
	EXPECT_EQ(collector_pass(collector), 0);
	fake_remove(fake, 3);
	EXPECT_EQ(collector_pass(collector), 0);
	expect_same();
	EXPECT(!collector_placed(collector, path));
	EXPECT_EQ(collector_place(collector, &options, why, sizeof(why)), 0);
	EXPECT(collector_placed(collector, path));
	EXPECT_EQ(collector_pass(collector), 0);
	attach_anew();
	expect_same();
	EXPECT(!freshet_last_pass(view, &moment) && moment.pass == 5);

	/* A reader follows; without a directory, passes go on where only we see them. */
	REQUIRE(freshet_attach(path, &reader) == 0);
	unlink(path);
	EXPECT(!collector_placed(collector, path));
	EXPECT(close(open(path, O_CREAT | O_WRONLY, 0600)) == 0);
	EXPECT(!collector_placed(collector, path));
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_EQ(collector_place(collector, &options, why, sizeof(why)), -EEXIST);
		EXPECT(strstr(why, path) && strstr(why, "no segment"), "%s", why);
		fake_add(fake, 3, 0, 400 + i);
		EXPECT_EQ(collector_pass(collector), 0);
		attach_anew();
		expect_same();
		fake_remove(fake, 3);
	}
	EXPECT(freshet_producer(reader) != FRESHET_ALIVE);
	unlink(path);
	EXPECT_EQ(collector_place(collector, &options, why, sizeof(why)), 0);
	EXPECT_EQ(collector_pass(collector), 0);
	attach_anew();
	expect_same();
	EXPECT_EQ(freshet_producer(reader), FRESHET_REPLACED);
	EXPECT_EQ(freshet_reattach(reader), 1);
	EXPECT(!freshet_last_pass(reader, &moment) && moment.pass == 8);
	freshet_detach(reader);
	end();
}

/* Opens with the host's cgroups; checks what is said, makes a pass and closes. */
static int open_and_pass(enum collector_source source, const char *root, char *why, size_t size)
{
	struct collector_options options = {
		.size = sizeof(options), .producer = "test", .source = source, .root = root
	};
	struct freshet_moment moment;
	struct collector *c = NULL;
	int r = collector_open(&options, &c, why, size);

	EXPECT(strlen(why) > 10 && !strchr(why, '\n'), "%s", why);
	if (r < 0) {
		EXPECT(!c);
		return r;
	}
	EXPECT(!strncmp(why, collector_source_name(c), strlen(collector_source_name(c))), "%s",
	       why);
	EXPECT_EQ(collector_pass(c), 0);
	EXPECT_EQ(freshet_attach_fd(collector_fd(c), &view), 0);
	EXPECT(!freshet_last_pass(view, &moment) && moment.pass == 1);
	EXPECT(moment.begin_ns <= moment.end_ns);
	freshet_detach(view);
	r = !strcmp(collector_source_name(c), "files");
	collector_close(c);
	return r;
}

TEST(what_is_opened_and_what_is_said)
{
	struct cgroup_mount m;
	char why[512] = "";

	if (mount_find(&m) < 0)
		SKIP("no cgroup2");
	EXPECT_EQ(open_and_pass(COLLECT_FILES, NULL, why, sizeof(why)), 1);
	EXPECT(strstr(why, "as asked for") && strstr(why, "flush"), "%s", why);
	EXPECT_EQ(open_and_pass(COLLECT_FILES, m.path, why, sizeof(why)), 1);
	EXPECT(open_and_pass(COLLECT_AUTO, "/", why, sizeof(why)) >= 0, "%s", why);
	EXPECT_EQ(open_and_pass(COLLECT_AUTO, "/no/such", why, sizeof(why)), -ENOENT);
	EXPECT(strstr(why, "/no/such") && strstr(why, m.path), "%s", why);
	EXPECT_EQ(open_and_pass(COLLECT_AUTO, "/a/../b", why, sizeof(why)), -EINVAL);
	EXPECT(strstr(why, "/a/../b"), "%s", why);
}

/* Body of a child; its checks are counted there. */
static void in_child(void (*body)(void))
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		body();
		fflush(stdout);
		_exit(tap_skipped ? 77 : tap_bad ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("may not do this here");
	EXPECT(WIFEXITED(status) && !WEXITSTATUS(status), "status 0x%x", (unsigned)status);
}

static void unprivileged_body(void)
{
	struct cgroup_mount m;
	char why[512] = "";

	if (mount_find(&m) < 0 || (!geteuid() && setresuid(65534, 65534, 65534) < 0))
		SKIP("no cgroup2");
	EXPECT(open_and_pass(COLLECT_BPF, NULL, why, sizeof(why)) < 0);
	EXPECT(strstr(why, "bpf"), "%s", why);
	EXPECT_EQ(open_and_pass(COLLECT_AUTO, NULL, why, sizeof(why)), 1);
	EXPECT(strstr(why, "not usable") && strstr(why, "flush"), "%s", why);
}

TEST(without_privilege)
{
	in_child(unprivileged_body);
}

static void no_cgroup2_body(void)
{
	struct cgroup_mount m;
	char why[512] = "";

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		SKIP("may not make a mount namespace");
	while (!mount_find(&m)) {
		if (umount2(m.path, MNT_DETACH) < 0)
			SKIP("may not unmount");
	}
	EXPECT_EQ(open_and_pass(COLLECT_AUTO, NULL, why, sizeof(why)), -ENOENT);
	EXPECT(strstr(why, "no cgroup2"), "%s", why);
}

TEST(without_cgroup2)
{
	in_child(no_cgroup2_body);
}

TAP_MAIN
