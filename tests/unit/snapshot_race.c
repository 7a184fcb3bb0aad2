/* SPDX-License-Identifier: MIT */
/*
 * Two readers beside a writer that changes the tree's shape all the time: one takes snapshots, one
 * walks and reads single groups, through old handles too. Names, ids, who is there and every number
 * are functions of the pass (and of the group), so that anything torn is evident.
 *
 * With -DPLANTED (and one of the PLANT_ switches of the core) a bug is compiled in, and the readers
 * must notice it.
 */
#include "tap.h"

#include <pthread.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "unit/segment_help.h"

#define TOP    24u /* groups below the root, each with BELOW groups below it */
#define BELOW  3u
#define NODES  (1 + TOP * (1 + BELOW))
#define PASSES 10000u
#define OLD    64u                 /* handles that the second reader remembers */
#define LIMIT  (10 * NSEC_PER_SEC) /* for a planted bug to show itself */

static struct writer *writer;
static int stop;
static unsigned errors, snapshots, reads, gave_up, reused;

/* Top group i is there in two of three periods of a length of its own: in 64 passes the shape
 * changes with each, in the next 64 with every fourth. */
static int there(uint64_t pass, unsigned i)
{
	uint64_t fast = pass % 128 < 64 ? pass % 128 : 64, slow = (pass % 128 - fast) / 4;
	uint64_t step = pass / 128 * 80 + fast + slow;

	return (step / (1 + i % 7) + i) % 3 != 0;
}

/* The pass since which it is there. Ids are i + 1000 * that, names "<i>-<that>". */
static uint64_t since(uint64_t pass, unsigned i)
{
	while (pass > 1 && there(pass - 1, i))
		pass--;
	return pass;
}

static uint64_t id_of(unsigned i, unsigned below, uint64_t born)
{
	return i + 100 * below + 1000 * born;
}

/* Some numbers change with each pass, some only now and then. */
static uint64_t number(uint64_t pass, uint64_t id, unsigned c)
{
	return help_value(id % 2 ? pass : pass / 16, id, c);
}

__attribute__((format(printf, 1, 2))) static void error(const char *fmt, ...)
{
	va_list ap;

	if (__atomic_fetch_add(&errors, 1, __ATOMIC_RELAXED) >= 5)
		return;
	va_start(ap, fmt);
	printf("# ");
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
}

static void check_values(const char *who, uint64_t pass, uint64_t id, const uint64_t *values)
{
	for (unsigned c = 0; c < COLUMNS; c++)
		if (values[c] != number(pass, id, c))
			error("%s: pass %llu id %llu column %u: %llx", who,
			      (unsigned long long)pass, (unsigned long long)id, c,
			      (unsigned long long)values[c]);
}

static void check_snapshot(const struct freshet_snapshot *snap)
{
	const struct freshet_entry *e = freshet_snapshot_entries(snap);
	size_t n = freshet_snapshot_count(snap), at = 1;
	struct freshet_moment m;
	char name[32];

	freshet_snapshot_moment(snap, &m);
	if (m.begin_ns != 2 * m.pass || m.end_ns != 2 * m.pass + 1)
		error("pass %llu with times of another", (unsigned long long)m.pass);
	check_values("root", m.pass, e[0].id, e[0].values);
	for (unsigned i = 0; i < TOP; i++) {
		uint64_t born = since(m.pass, i);

		if (!there(m.pass, i))
			continue;
		for (unsigned below = 0; below <= BELOW; below++, at++) {
			snprintf(name, sizeof(name), "%u-%llu", below ? below : i,
				 (unsigned long long)born);
			if (at >= n || e[at].id != id_of(i, below, born) ||
			    strcmp(e[at].name, name) || e[at].depth != 1u + !!below ||
			    e[at].size != (below ? 1 : 1 + BELOW)) {
				error("pass %llu: entry %zu is not %s", (unsigned long long)m.pass,
				      at, name);
				return;
			}
			check_values(name, m.pass, e[at].id, e[at].values);
		}
	}
	if (at != n)
		error("pass %llu: %zu entries, not %zu", (unsigned long long)m.pass, n, at);
}

static int running(void)
{
	return !load_relaxed(&stop);
}

static void *take_snapshots(void *arg)
{
	struct freshet_view *v = arg;
	struct freshet_snapshot *snap;
	struct freshet_moment before = { 0 }, now;

	if (freshet_snapshot_new(&snap))
		abort();
	while (running()) {
		int r = freshet_snapshot_take(snap, v);

		if (r == -EAGAIN) {
			__atomic_fetch_add(&gave_up, 1, __ATOMIC_RELAXED);
			continue;
		}
		if (r) {
			error("snapshot: %d", r);
			continue;
		}
		freshet_snapshot_moment(snap, &now);
		if (now.pass < before.pass)
			error("back from pass %llu to %llu", (unsigned long long)before.pass,
			      (unsigned long long)now.pass);
		before = now;
		check_snapshot(snap);
		store_relaxed(&snapshots, snapshots + 1);
	}
	freshet_snapshot_free(snap);
	return NULL;
}

/* What may go wrong in a read: the group is gone, or the writer was always faster. */
static int fine(int r)
{
	if (r == -EAGAIN)
		__atomic_fetch_add(&gave_up, 1, __ATOMIC_RELAXED);
	else if (r && r != -ENOENT)
		error("read: %d", r);
	return r == 0;
}

struct handle {
	struct freshet_group group;
	uint64_t id;
};

/* Reads h, which must be the group it was, or gone. */
static void read_handle(const struct freshet_view *v, const struct handle *h)
{
	uint64_t values[COLUMNS], present;
	struct freshet_moment m;
	struct freshet_info info;

	if (fine(freshet_read_total(v, h->group, 0, COLUMNS, values, &present, &m))) {
		check_values("handle", m.pass, h->id, values);
		store_relaxed(&reads, reads + 1);
	}
	if (fine(freshet_info(v, h->group, &info)) && info.id != h->id)
		error("handle of %llu shows %llu", (unsigned long long)h->id,
		      (unsigned long long)info.id);
}

static void *read_groups(void *arg)
{
	const struct freshet_view *v = arg;
	struct freshet_group root, child[TOP];
	struct handle old[OLD] = { 0 }, h;
	struct freshet_info info;
	unsigned next = 0;
	char path[64];
	size_t count;

	while (running()) {
		if (!fine(freshet_root(v, &root)) ||
		    !fine(freshet_children(v, root, child, TOP, &count)))
			continue;
		if (count > TOP)
			error("%zu children", count);
		for (size_t i = 0; i < count && i < TOP && running(); i++) {
			if (!fine(freshet_info(v, child[i], &info)))
				continue;
			h = (struct handle){ child[i], info.id };
			if (h.group.slot == old[next % OLD].group.slot &&
			    h.group.generation != old[next % OLD].group.generation)
				store_relaxed(&reused, reused + 1);
			read_handle(v, &old[next % OLD]);
			read_handle(v, &h);
			old[next++ % OLD] = h;
			/* Its path leads back to it, if it is still there. */
			if (fine(freshet_path(v, h.group, path, sizeof(path))) &&
			    fine(freshet_find(v, path, &root)) &&
			    (root.slot != h.group.slot || root.generation != h.group.generation))
				error("%s is slot %u, not %u", path, root.slot, h.group.slot);
		}
	}
	return NULL;
}

/* The shape of a pass, with the slots that its groups have from before. Returns the nodes' number. */
static uint32_t shape_of(uint64_t pass, struct writer_node *nodes, char names[][32],
			 uint32_t slots[][1 + BELOW])
{
	uint32_t n = 1;

	for (unsigned i = 0; i < TOP; i++) {
		uint64_t born = since(pass, i);
		uint32_t top = n;

		for (unsigned below = 0; below <= BELOW; below++) {
			if (!there(pass, i)) {
				slots[i][below] = WRITER_NEW;
				continue;
			}
			snprintf(names[n], sizeof(names[n]), "%u-%llu", below ? below : i,
				 (unsigned long long)born);
			nodes[n] = (struct writer_node){ id_of(i, below, born), names[n],
							 below ? top : 0, slots[i][below] };
			n++;
		}
	}
	return n;
}

static int shape_changes(uint64_t pass)
{
	for (unsigned i = 0; i < TOP; i++)
		if (pass == 1 || there(pass, i) != there(pass - 1, i))
			return 1;
	return 0;
}

static void write_pass(uint64_t pass)
{
	static struct writer_node nodes[NODES] = { { 7, "", 0, WRITER_NEW } };
	static uint32_t slots[TOP][1 + BELOW], n;
	static char names[NODES][32];
	uint64_t values[COLUMNS];
	uint32_t overflowed = 0;

	writer_begin(writer, 2 * pass);
	if (shape_changes(pass)) {
		if (pass == 1)
			memset(slots, 0xff, sizeof(slots)); /* WRITER_NEW */
		n = shape_of(pass, nodes, names, slots);
		writer_shape(writer, nodes, n, &overflowed);
		for (uint32_t at = 1; at < n; at++)
			slots[nodes[at].id % 100][nodes[at].id / 100 % 10] = nodes[at].slot;
	}
	if (overflowed)
		error("pass %llu: no room", (unsigned long long)pass);
	for (uint32_t at = 0; at < n; at++) {
		for (unsigned c = 0; c < COLUMNS; c++)
			values[c] = number(pass, nodes[at].id, c);
		writer_row(writer, nodes[at].slot, values, 7);
	}
	writer_publish(writer, 2 * pass + 1);
}

static int enough(uint64_t pass)
{
#ifdef PLANTED
	return load_relaxed(&errors) > 0;
#else
	return pass >= PASSES && load_relaxed(&snapshots) > 100 && load_relaxed(&reads) > 100 &&
	       load_relaxed(&reused) > 100;
#endif
}

TEST(race)
{
	struct writer_options o = help_options(2 * NODES); /* slots that went must rest a while */
	void *(*const reader[2])(void *) = { take_snapshots, read_groups };
	struct freshet_view *v[2];
	pthread_t thread[2];
	uint64_t pass = 1, deadline = clock_ns() + LIMIT;

	REQUIRE(writer_open(NULL, &o, &writer) == 0);
	write_pass(pass);
	for (int i = 0; i < 2; i++) {
		REQUIRE(freshet_attach_fd(writer_fd(writer), &v[i]) == 0);
		REQUIRE(pthread_create(&thread[i], NULL, reader[i], v[i]) == 0);
	}
	while (!enough(pass) && clock_ns() < deadline)
		write_pass(++pass);
	store_relaxed(&stop, 1);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		freshet_detach(v[i]);
	}
	writer_close(writer);
	printf("# %llu passes, %u snapshots, %u reads, %u tries given up, %u handles of reused "
	       "slots\n",
	       (unsigned long long)pass, snapshots, reads, gave_up, reused);
#ifdef PLANTED
	EXPECT(errors > 0, "the planted bug did not show");
#else
	EXPECT(enough(pass), "%u snapshots, %u reads, %u reused", snapshots, reads, reused);
	EXPECT_EQ(errors, 0);
#endif
}

TAP_MAIN
