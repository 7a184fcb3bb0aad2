/* SPDX-License-Identifier: MIT */
/*
 * Implements read_tree.h. Threads that touch hold each other up before they begin and before they
 * end, so that none can get the CPU slot of one that has ended.
 */
#include "read_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "core/cells.h"
#include "core/segment.h"
#include "procs.h"

#define TENANT      100u /* groups for each tenant, about */
#define MAX_THREADS 64

static const struct freshet_stat stats[READ_STATS] = {
	{ .family = "bench", .name = "n", .help = "Updates.", .kind = FRESHET_COUNTER },
	{ .family = "bench", .name = "a", .help = "Updates.", .kind = FRESHET_COUNTER, .set = 1 },
	{ .family = "bench", .name = "b", .help = "Updates.", .kind = FRESHET_COUNTER, .set = 1 },
	{ .family = "bench", .name = "c", .help = "Updates.", .kind = FRESHET_COUNTER, .set = 1 },
};

static int create_groups(struct read_tree *t)
{
	const unsigned tenants = (t->groups + TENANT - 1) / TENANT;
	int err = 0;

	t->handle[0] = freshet_tree_root(t->tree);
	t->bytes = read_tree_bytes(t);
	for (unsigned i = 1; i < t->groups && !err; i++) {
		const struct freshet_handle *parent =
			&t->handle[i <= tenants ? 0 : 1 + i % tenants];
		char name[16];

		snprintf(name, sizeof(name), "%c%u", i <= tenants ? 't' : 's', i);
		err = freshet_create(t->tree, parent, name, i + 1 < t->groups ? FRESHET_LATER : 0,
				     &t->handle[i]);
	}
	return err;
}

int read_tree_open(struct read_tree *t, const char *directory, unsigned groups,
		   enum freshet_backend backend)
{
	const struct freshet_schema schema = { .size = sizeof(schema),
					       .stats = stats,
					       .nstats = READ_STATS };
	const struct freshet_options options = { .size = sizeof(options),
						 .producer = "freshet-bench",
						 .max_groups = groups,
						 .fallback_slots = backend == FRESHET_FALLBACK
									   ? MAX_THREADS
									   : 0,
						 .backend = backend };
	int err;

	memset(t, 0, sizeof(*t));
	t->groups = groups;
	snprintf(t->path, sizeof(t->path), "%s/tree%u", directory, groups);
	t->handle = calloc(groups, sizeof(t->handle[0]));
	if (!t->handle)
		return -ENOMEM;
	err = freshet_open(t->path, &schema, &options, &t->tree);
	if (!err)
		err = create_groups(t);
	if (err)
		read_tree_close(t);
	return err;
}

void read_tree_close(struct read_tree *t)
{
	freshet_close(t->tree);
	free(t->handle);
	t->tree = NULL;
	t->handle = NULL;
}

int read_tree_leaf(const struct read_tree *t, char *buf, size_t size)
{
	return freshet_path(freshet_view_of(t->tree), t->handle[t->groups - 1].group, buf, size);
}

/* ---- updates ---- */

struct touching {
	struct read_tree *tree;
	unsigned dirty, threads;
	uint64_t ns;          /* 0: once; else again and again for that long */
	unsigned begun, done; /* threads; done also orders the updates before what follows: it is
			       * raised with release, pairs with the acquire in wait_for() */
	int error;
};

static void wait_for(unsigned *count, unsigned all)
{
	while (load_acquire(count) < all) /* pairs with touch() */
		sched_yield();
}

static void touch(struct touching *job)
{
	static const int64_t ones[READ_STATS - READ_SET] = { 1, 1, 1 };
	const struct read_tree *t = job->tree;
	uint64_t end;

	__atomic_fetch_add(&job->begun, 1, __ATOMIC_RELAXED);
	wait_for(&job->begun, job->threads);
	end = clock_ns() + job->ns;
	do {
		for (unsigned i = 1; i <= job->dirty; i++) {
			const struct freshet_handle *h =
				&t->handle[(uint64_t)i * t->groups / job->dirty - 1];
			int err = freshet_add(h, READ_SINGLE, 1);

			if (!err)
				err = freshet_add_set(h, READ_SET, READ_STATS - READ_SET, ones);
			if (err)
				store_relaxed(&job->error, err);
		}
	} while (job->ns && clock_ns() < end);
	__atomic_fetch_add(&job->done, 1, __ATOMIC_RELEASE); /* pairs with wait_for() */
	wait_for(&job->done, job->threads);
}

static void *touch_thread(void *job)
{
	touch(job);
	return NULL;
}

static int touch_all(struct touching *job)
{
	const unsigned wanted = job->threads;
	pthread_t other[MAX_THREADS];
	unsigned n = 0;
	int err = 0;

	if (wanted > MAX_THREADS)
		return -EINVAL;
	for (; n + 1 < wanted && !err; n += !err)
		err = procs_thread(&other[n], procs_last_cpu(), touch_thread, job);
	if (err) { /* those there are shall not wait for the others */
		__atomic_fetch_add(&job->begun, wanted, __ATOMIC_RELAXED);
		__atomic_fetch_add(&job->done, wanted, __ATOMIC_RELAXED);
	} else {
		touch(job);
	}
	while (n > 0)
		pthread_join(other[--n], NULL);
	return err ? err : job->error;
}

int read_tree_touch(struct read_tree *t, unsigned dirty, unsigned threads)
{
	struct touching job = { .tree = t, .dirty = dirty, .threads = threads };

	return touch_all(&job);
}

int read_tree_storm(struct read_tree *t, unsigned threads, uint64_t ns)
{
	struct touching job = { .tree = t, .dirty = 1, .threads = threads, .ns = ns };

	return touch_all(&job);
}

/* ---- the file ---- */

uint64_t read_tree_bytes(const struct read_tree *t)
{
	struct stat st;

	return stat(t->path, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

static int read_control(const struct read_tree *t, struct seg_control *ret)
{
	int fd = open(t->path, O_RDONLY | O_CLOEXEC), err = -EIO;
	struct seg_header h;

	if (fd < 0)
		return -errno;
	if (pread(fd, &h, sizeof(h), 0) == sizeof(h))
		for (unsigned i = 0; i < h.nsections && i < SEG_MAX_SECTIONS; i++)
			if (h.section[i].type == SEG_CONTROL &&
			    pread(fd, ret, sizeof(*ret), (off_t)h.section[i].offset) ==
				    sizeof(*ret))
				err = 0;
	close(fd);
	return err;
}

unsigned read_tree_slots(const struct read_tree *t)
{
	struct seg_control c;

	return read_control(t, &c) ? 0 : c.used_rseq + c.used_fallback;
}

unsigned read_tree_cell(const struct read_tree *t)
{
	struct seg_control c;

	return read_control(t, &c) ? 0 : c.cell_size;
}
