/* SPDX-License-Identifier: MIT */
/* Groups of a program's tree come and go: names, limits, slots that are used again, what stays of
 * removed ones; groups that are counted before readers can find them. */
#include "unit/tree_help.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/tree.h"

ON_BOTH(names)
{
	static const char *const bad[] = { "", ".", "..", "/", "a/b", "a/", NULL };
	static const char *const good[] = { "...", ".a", "a b", "\xff\xfe", "\n", "-", "\\" };
	struct freshet_tree *tree = tree_open(NULL, 64, backend);
	struct freshet_handle root = freshet_tree_root(tree), h, again;
	char name[FRESHET_NAME_MAX + 2];
	struct freshet_group g;
	struct freshet_info info;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT(freshet_create(tree, &root, bad[i], 0, &h) == -EINVAL, "%s", bad[i]);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		EXPECT(freshet_create(tree, &root, good[i], 0, &h) == 0, "%s", good[i]);
		EXPECT(freshet_lookup(tree, &root, good[i], &again) == 0 &&
			       again.group.slot == h.group.slot &&
			       again.group.generation == h.group.generation,
		       "%s", good[i]);
	}
	memset(name, 'n', sizeof(name));
	name[FRESHET_NAME_MAX + 1] = '\0';
	EXPECT_EQ(freshet_create(tree, &root, name, 0, &h), -ENAMETOOLONG);
	EXPECT_EQ(freshet_lookup(tree, &root, name, &h), -ENOENT);
	name[FRESHET_NAME_MAX] = '\0';
	EXPECT_EQ(freshet_create(tree, &root, name, 0, &h), 0);
	EXPECT_EQ(freshet_find(freshet_view_of(tree), name, &g), 0);
	EXPECT_EQ(freshet_info(freshet_view_of(tree), g, &info), 0);
	EXPECT(!strcmp(info.name, name));
	EXPECT_EQ(freshet_create(tree, &root, name, 0, &h), -EEXIST);
	EXPECT_EQ(freshet_create(tree, &root, "x", 2, &h), -EINVAL);
	EXPECT_EQ(freshet_lookup(tree, &root, NULL, &h), -EINVAL);
	freshet_close(tree);
}

/* The same name under two parents; a walk by handle is a walk by path. */
ON_BOTH(shape)
{
	struct freshet_tree *tree = tree_open(NULL, 0, backend);
	const struct freshet_view *view = freshet_view_of(tree);
	struct freshet_handle root = freshet_tree_root(tree), a, b, ab, bb, found;
	struct freshet_group g, child[4];
	char path[64];
	struct freshet_info info;
	size_t n;

	EXPECT_EQ(freshet_backend(tree), backend);
	a = tree_make(tree, root, "a", 0);
	b = tree_make(tree, root, "b", 0);
	ab = tree_make(tree, a, "b", 0);
	bb = tree_make(tree, b, "b", 0);
	EXPECT_EQ(freshet_create(tree, &a, "b", 0, &found), -EEXIST);
	EXPECT_EQ(freshet_lookup(tree, &a, "b", &found), 0);
	EXPECT_EQ(found.group.slot, ab.group.slot);
	EXPECT_EQ(freshet_lookup(tree, &b, "b", &found), 0);
	EXPECT_EQ(found.group.slot, bb.group.slot);
	EXPECT_EQ(freshet_lookup(tree, &a, "a", &found), -ENOENT);
	EXPECT_EQ(freshet_find(view, "/b/b", &g), 0);
	EXPECT(g.slot == bb.group.slot && g.generation == bb.group.generation);
	EXPECT_EQ(freshet_path(view, ab.group, path, sizeof(path)), 0);
	EXPECT(!strcmp(path, "/a/b"), "%s", path);
	EXPECT_EQ(freshet_children(view, root.group, child, 4, &n), 0);
	EXPECT_EQ(n, 2);
	EXPECT_EQ(freshet_info(view, root.group, &info), 0);
	EXPECT_EQ(info.descendants, 4);
	EXPECT_EQ(freshet_is_live(view), 1);
	freshet_close(tree);
}

ON_BOTH(depth)
{
	struct freshet_tree *tree = tree_open(NULL, 0, backend);
	struct freshet_handle h = freshet_tree_root(tree), last;

	for (unsigned i = 0; i < FRESHET_MAX_DEPTH; i++) {
		h = tree_make(tree, h, "d", 0);
		EXPECT_EQ(freshet_add(&h, REQUESTS, 1 << i), 0);
	}
	EXPECT_EQ(freshet_create(tree, &h, "d", 0, &last), -ELOOP);
	EXPECT_EQ(tree_read(tree, freshet_tree_root(tree), REQUESTS), (1 << FRESHET_MAX_DEPTH) - 1);
	EXPECT_EQ(freshet_flush(tree), 0);
	EXPECT_EQ(tree_total(tree, freshet_tree_root(tree), REQUESTS),
		  (1 << FRESHET_MAX_DEPTH) - 1);
	EXPECT_EQ(tree_total(tree, h, REQUESTS), 1 << (FRESHET_MAX_DEPTH - 1));
	freshet_close(tree);
}

ON_BOTH(removal)
{
	struct freshet_tree *tree = tree_open(NULL, 0, backend);
	struct freshet_handle root = freshet_tree_root(tree), a, b, none;
	const int64_t n[] = { 1, 1, 1 };
	struct freshet_info info;

	a = tree_make(tree, root, "a", 0);
	b = tree_make(tree, a, "b", 0);
	EXPECT_EQ(freshet_add(&b, REQUESTS, 5), 0);
	EXPECT_EQ(freshet_add(&b, OPEN, -2), 0);
	EXPECT_EQ(freshet_add_set(&b, SET, 3, n), 0);
	EXPECT_EQ(freshet_observe(&b, 0, 3), 0);
	EXPECT_EQ(freshet_remove(tree, &root, 0), -EBUSY);
	EXPECT_EQ(freshet_remove(tree, &a, 0), -ENOTEMPTY);
	EXPECT_EQ(freshet_remove(tree, &b, 0), 0);
	EXPECT_EQ(freshet_remove(tree, &b, 0), -ENOENT);

	/* Nothing goes to it any more, whichever way. */
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(freshet_add(&b, REQUESTS, 100), -ENOENT);
		EXPECT_EQ(freshet_add(&b, OPEN, -100), -ENOENT);
		EXPECT_EQ(freshet_add(&b, SET_B, 100), -ENOENT);
		EXPECT_EQ(freshet_add_set(&b, SET, 3, n), -ENOENT);
		EXPECT_EQ(freshet_observe(&b, 1, 100), -ENOENT);
	}
	EXPECT_EQ(freshet_create(tree, &b, "c", 0, &none), -ENOENT);
	EXPECT_EQ(freshet_lookup(tree, &b, "c", &none), -ENOENT);
	EXPECT_EQ(freshet_lookup(tree, &a, "b", &none), -ENOENT);
	EXPECT_EQ(tree_read(tree, b, REQUESTS), NO_GROUP);
	EXPECT_EQ(tree_total(tree, b, REQUESTS), NO_GROUP);
	EXPECT_EQ(freshet_info(freshet_view_of(tree), b.group, &info), -ENOENT);

	/* What it counted stays above. */
	EXPECT_EQ(tree_read(tree, a, REQUESTS), 5);
	EXPECT_EQ(tree_read(tree, a, OPEN), -2);
	EXPECT_EQ(tree_read(tree, root, SET_GAUGE), 1);
	EXPECT_EQ(freshet_remove(tree, &a, 0), 0);
	EXPECT_EQ(tree_read(tree, root, REQUESTS), 5);
	EXPECT_EQ(tree_total(tree, root, REQUESTS), 5);

	/* The name is free again, and the new one starts at 0. */
	a = tree_make(tree, root, "a", 0);
	EXPECT_EQ(tree_read(tree, a, REQUESTS), 0);
	EXPECT_EQ(tree_read(tree, root, REQUESTS), 5);
	freshet_close(tree);
}

/* One slot, a hundred groups: each starts at 0, none is taken for another. */
ON_BOTH(slots_are_used_again)
{
	struct freshet_tree *tree = tree_open(NULL, 2, backend);
	const struct freshet_view *view = freshet_view_of(tree);
	struct freshet_handle root = freshet_tree_root(tree), h, old = { 0 }, none;
	const int64_t n[] = { 1, 2, -3 };
	uint64_t buckets[SMALL_BUCKETS], sum;

	for (int i = 1; i <= 100; i++) {
		h = tree_make(tree, root, i % 2 ? "odd" : "even", 0);
		EXPECT_EQ(h.group.slot, 1);
		for (unsigned s = 0; s < NSTATS; s++) {
			EXPECT_EQ(tree_read(tree, h, s), 0);
			EXPECT_EQ(tree_total(tree, h, s), 0);
		}
		EXPECT_EQ(freshet_read_histogram(view, h.group, 0, buckets, &sum), 0);
		EXPECT_EQ(sum, 0);
		if (i > 1) {
			EXPECT(old.group.generation != h.group.generation);
			EXPECT_EQ(freshet_add(&old, REQUESTS, 1000), -ENOENT);
			EXPECT_EQ(tree_read(tree, old, REQUESTS), NO_GROUP);
			EXPECT_EQ(freshet_remove(tree, &old, 0), -ENOENT);
		}
		EXPECT_EQ(freshet_create(tree, &root, "no room", 0, &none), -ENOSPC);
		EXPECT_EQ(freshet_add(&h, REQUESTS, 1), 0);
		EXPECT_EQ(freshet_add(&h, OPEN, i % 2 ? 5 : -5), 0);
		EXPECT_EQ(freshet_add_set(&h, SET, 3, n), 0);
		EXPECT_EQ(freshet_observe(&h, 0, 2), 0);
		EXPECT_EQ(tree_read(tree, h, REQUESTS), 1);
		EXPECT_EQ(tree_read(tree, root, REQUESTS), i);
		EXPECT_EQ(freshet_remove(tree, &h, 0), 0);
		EXPECT_EQ(tree_read(tree, root, REQUESTS), i);
		EXPECT_EQ(tree_read(tree, root, OPEN), i % 2 ? 5 : 0);
		EXPECT_EQ(tree_read(tree, root, SET_GAUGE), -3 * i);
		EXPECT_EQ(freshet_read_histogram(view, root.group, 0, buckets, &sum), 0);
		EXPECT_EQ(sum, 2 * i);
		EXPECT_EQ(buckets[2], i);
		old = h;
	}
	freshet_close(tree);
}

/* Every slot taken, by name; then all go, and all come again. */
ON_BOTH(full)
{
	struct freshet_tree *tree = tree_open(NULL, 300, backend);
	struct freshet_handle root = freshet_tree_root(tree), h[300], none;
	char name[16];

	for (int round = 0; round < 2; round++) {
		for (int i = 1; i < 300; i++) {
			snprintf(name, sizeof(name), "g%d", i);
			h[i] = tree_make(tree, root, name, FRESHET_LATER);
			EXPECT_EQ(freshet_add(&h[i], REQUESTS, i), 0);
		}
		EXPECT_EQ(freshet_create(tree, &root, "one more", 0, &none), -ENOSPC);
		EXPECT_EQ(tree_read(tree, root, REQUESTS), (round + 1) * 299 * 300 / 2);
		EXPECT_EQ(freshet_flush(tree), 0);
		EXPECT_EQ(tree_total(tree, root, REQUESTS), (round + 1) * 299 * 300 / 2);
		for (int i = 1; i < 300; i++)
			EXPECT_EQ(tree_read(tree, h[i], REQUESTS), i);
		for (int i = 1; i < 300; i++)
			EXPECT_EQ(freshet_remove(tree, &h[i], 0), 0);
	}
	freshet_close(tree);
}

/* FRESHET_LATER: above it is counted, it can be read by handle, but not found. */
ON_BOTH(published_later)
{
	struct freshet_tree *tree = tree_open(NULL, 0, backend);
	const struct freshet_view *view = freshet_view_of(tree);
	struct freshet_handle root = freshet_tree_root(tree), a, b, again;
	struct freshet_snapshot *snap;
	struct freshet_group g;

	REQUIRE(freshet_snapshot_new(&snap) == 0);
	a = tree_make(tree, root, "a", FRESHET_LATER);
	b = tree_make(tree, a, "b", FRESHET_LATER);
	EXPECT_EQ(freshet_add(&a, REQUESTS, 1), 0);
	EXPECT_EQ(freshet_add(&b, REQUESTS, 10), 0);
	EXPECT_EQ(freshet_find(view, "/a", &g), -ENOENT);
	EXPECT_EQ(freshet_lookup(tree, &a, "b", &again), 0);
	EXPECT_EQ(freshet_create(tree, &a, "b", FRESHET_LATER, &again), -EEXIST);
	EXPECT_EQ(tree_read(tree, root, REQUESTS), 11);
	EXPECT_EQ(tree_read(tree, a, REQUESTS), 11);
	EXPECT_EQ(tree_read(tree, b, REQUESTS), 10);
	EXPECT_EQ(tree_total(tree, a, REQUESTS), NO_GROUP);
	EXPECT_EQ(freshet_snapshot_take(snap, view), 0);
	EXPECT_EQ(freshet_snapshot_count(snap), 1);
	EXPECT_EQ(freshet_snapshot_entries(snap)[0].values[REQUESTS], 11);

	/* The next create without it shows them all; counts go on. */
	tree_make(tree, root, "c", 0);
	EXPECT_EQ(freshet_find(view, "/a/b", &g), 0);
	EXPECT_EQ(g.slot, b.group.slot);
	EXPECT_EQ(tree_read(tree, a, REQUESTS), 11);
	EXPECT_EQ(freshet_snapshot_take(snap, view), 0);
	EXPECT_EQ(freshet_snapshot_count(snap), 4);
	EXPECT_EQ(freshet_snapshot_entries(snap)[1].values[REQUESTS], 11);
	EXPECT_EQ(freshet_snapshot_entries(snap)[2].values[REQUESTS], 10);

	/* So does a flush. */
	b = tree_make(tree, a, "d", FRESHET_LATER);
	EXPECT_EQ(freshet_add(&b, REQUESTS, 100), 0);
	EXPECT_EQ(freshet_flush(tree), 0);
	EXPECT_EQ(freshet_find(view, "/a/d", &g), 0);
	EXPECT_EQ(tree_total(tree, a, REQUESTS), 111);

	/* One that goes before anybody could find it still counted. */
	b = tree_make(tree, a, "e", FRESHET_LATER);
	EXPECT_EQ(freshet_add(&b, REQUESTS, 1000), 0);
	EXPECT_EQ(freshet_remove(tree, &b, 0), 0);
	EXPECT_EQ(tree_read(tree, b, REQUESTS), NO_GROUP);
	EXPECT_EQ(tree_read(tree, a, REQUESTS), 1111);
	EXPECT_EQ(tree_total(tree, root, REQUESTS), 1111);
	freshet_snapshot_free(snap);
	freshet_close(tree);
}

/* Of another tree's group, or of no group at all. */
ON_BOTH(handles_of_other_trees)
{
	struct freshet_tree *one = tree_open(NULL, 8, backend), *two = tree_open(NULL, 8, backend);
	struct freshet_handle in_one = tree_make(one, freshet_tree_root(one), "a", 0), got;
	struct freshet_handle in_two = tree_make(two, freshet_tree_root(two), "a", 0);

	EXPECT_EQ(freshet_create(two, &in_one, "b", 0, &got), -ENOENT);
	EXPECT_EQ(freshet_lookup(two, &in_one, "b", &got), -ENOENT);
	EXPECT_EQ(freshet_remove(two, &in_one, 0), -ENOENT);
	EXPECT_EQ(freshet_add(&in_one, REQUESTS, 1), 0);
	EXPECT_EQ(freshet_add(&in_two, REQUESTS, 10), 0);
	EXPECT_EQ(tree_read(one, in_one, REQUESTS), 1);
	EXPECT_EQ(tree_read(two, in_two, REQUESTS), 10);
	freshet_close(one);
	EXPECT_EQ(freshet_add(&in_two, REQUESTS, 10), 0);
	EXPECT_EQ(tree_read(two, in_two, REQUESTS), 20);
	freshet_close(two);
}

/* A thread that was stopped in the middle of an update, on a fallback slot, by hand: what it does
 * after its group was removed still counts above, and the group's place is not given away before. */
ON_BOTH(removed_under_a_stopped_update)
{
	struct freshet_tree *tree = tree_open(NULL, 0, backend);
	struct freshet_handle root = freshet_tree_root(tree), a, b, again;
	const uint32_t held = 5, cpu = tree->cells.rseq_slots + held;
	uint64_t *bits, *cell;
	uint32_t slot;

	a = tree_make(tree, root, "a", 0);
	b = tree_make(tree, a, "b", 0);
	slot = b.group.slot;
	EXPECT_EQ(freshet_add(&b, REQUESTS, 1), 0);
	/* As far as begin() in update.c. */
	*owner_at(tree, held) = slot + 1;
	tree->control->used_fallback = held + 1;
	bits = (uint64_t *)(uintptr_t)cells_bits(&tree->cells, tree->hot->selector, cpu, slot / 64);
	*bits |= 1ull << slot % 64;
	cell = (uint64_t *)(uintptr_t)cells_cell(&tree->cells, cpu, slot);

	EXPECT_EQ(freshet_remove(tree, &b, 0), 0);
	EXPECT_EQ(freshet_add(&b, REQUESTS, 100), -ENOENT);
	EXPECT_EQ(freshet_lookup(tree, &a, "b", &again), -ENOENT);
	for (int i = 0; i < 6; i++) {
		EXPECT_EQ(freshet_create(tree, &a, "b", 0, &again), -EEXIST);
		EXPECT_EQ(freshet_flush(tree), 0);
		EXPECT_EQ(tree_read(tree, root, REQUESTS), 1 + i);
		cell[1 + REQUESTS]++; /* it goes on, and stops again */
		EXPECT_EQ(tree_read(tree, root, REQUESTS), 2 + i);
		EXPECT_EQ(tree_read(tree, a, REQUESTS), 2 + i);
	}
	/* Its parent may go, which waits for it. */
	EXPECT_EQ(freshet_remove(tree, &a, 0), 0);
	EXPECT_EQ(tree_read(tree, a, REQUESTS), 7);
	*owner_at(tree, held) = 0;
	EXPECT_EQ(tree_read(tree, a, REQUESTS), 7);
	EXPECT_EQ(freshet_flush(tree), 0);
	EXPECT_EQ(tree_read(tree, b, REQUESTS), NO_GROUP);
	EXPECT_EQ(tree_read(tree, a, REQUESTS), NO_GROUP);
	EXPECT_EQ(tree_total(tree, root, REQUESTS), 7);
	a = tree_make(tree, root, "a", 0);
	b = tree_make(tree, a, "b", 0);
	EXPECT_EQ(tree_read(tree, b, REQUESTS), 0);
	EXPECT_EQ(tree_read(tree, root, REQUESTS), 7);
	freshet_close(tree);
}

TAP_MAIN

/* An update on a fallback slot that saw the tag before the removal and the selector after, and is done
 * when the flush looks: its bit is in the new epoch alone. */
ON_BOTH(removed_between_tag_and_selector)
{
	struct freshet_tree *tree = tree_open(NULL, 8, backend);
	struct freshet_handle root = freshet_tree_root(tree), a;
	const uint32_t held = 3, cpu = tree->cells.rseq_slots + held;
	uint64_t *bits, *cell;
	uint32_t slot;

	a = tree_make(tree, root, "a", 0);
	slot = a.group.slot;
	EXPECT_EQ(freshet_add(&a, REQUESTS, 1), 0);
	EXPECT_EQ(freshet_flush(tree), 0);
	tree->control->used_fallback = held + 1;
	bits = (uint64_t *)(uintptr_t)cells_bits(&tree->cells, tree->hot->selector + 1, cpu,
						 slot / 64);
	*bits |= 1ull << slot % 64;
	cell = (uint64_t *)(uintptr_t)cells_cell(&tree->cells, cpu, slot);
	cell[1 + REQUESTS] += 10;

	EXPECT_EQ(freshet_remove(tree, &a, 0), 0);
	EXPECT_EQ(tree_read(tree, root, REQUESTS), 11);
	EXPECT_EQ(tree_total(tree, root, REQUESTS), 11);
	EXPECT_EQ(freshet_flush(tree), 0);
	EXPECT_EQ(tree_total(tree, root, REQUESTS), 11);
	freshet_close(tree);
}

ON_BOTH(removed_later)
{
	struct freshet_tree *tree = tree_open(NULL, 8, backend);
	struct freshet_handle root = freshet_tree_root(tree), a, b, c;
	struct freshet_group group;

	a = tree_make(tree, root, "a", 0);
	b = tree_make(tree, a, "b", 0);
	c = tree_make(tree, b, "c", 0);
	EXPECT_EQ(freshet_add(&c, REQUESTS, 1), 0);
	EXPECT_EQ(freshet_remove(tree, &c, 2), -EINVAL);
	EXPECT_EQ(freshet_remove(tree, &b, FRESHET_LATER), -ENOTEMPTY);

	/* From below: one that waits does not keep its parent. */
	EXPECT_EQ(freshet_remove(tree, &c, FRESHET_LATER), 0);
	EXPECT_EQ(freshet_remove(tree, &c, FRESHET_LATER), -ENOENT);
	EXPECT_EQ(freshet_remove(tree, &b, FRESHET_LATER), 0);
	EXPECT_EQ(freshet_create(tree, &b, "d", 0, &c), -ENOENT);
	EXPECT_EQ(freshet_lookup(tree, &a, "b", &c), -ENOENT);
	EXPECT_EQ(freshet_find(freshet_view_of(tree), "/a/b", &group), 0);
	EXPECT_EQ(tree_read(tree, a, REQUESTS), 1);
	EXPECT_EQ(freshet_flush(tree), 0);
	EXPECT_EQ(freshet_find(freshet_view_of(tree), "/a/b", &group), -ENOENT);
	EXPECT_EQ(freshet_add(&b, REQUESTS, 1), -ENOENT);
	EXPECT_EQ(tree_read(tree, a, REQUESTS), 1);
	EXPECT_EQ(tree_total(tree, root, REQUESTS), 1);

	/* Its name is free for who asks. */
	EXPECT_EQ(freshet_remove(tree, &a, FRESHET_LATER), 0);
	b = tree_make(tree, root, "a", FRESHET_LATER);
	EXPECT_EQ(freshet_add(&a, REQUESTS, 10), -ENOENT);
	EXPECT_EQ(freshet_add(&b, REQUESTS, 100), 0);
	EXPECT_EQ(tree_read(tree, b, REQUESTS), 100);
	EXPECT_EQ(tree_read(tree, root, REQUESTS), 101);
	freshet_close(tree);
}

/* A kernel may fail to restart a sequence at the barrier; it then commits under the former epoch. */
ON_BOTH(committed_after_the_flush)
{
	struct freshet_tree *tree = tree_open(NULL, 8, backend);
	struct freshet_handle root = freshet_tree_root(tree), a;

	a = tree_make(tree, root, "a", 0);
	EXPECT_EQ(freshet_add(&a, REQUESTS, 1), 0);
	EXPECT_EQ(freshet_flush(tree), 0);
	for (uint32_t cpu = 0; cpu < tree->cells.slots; cpu++) {
		uint64_t *cell =
			(uint64_t *)(uintptr_t)cells_cell(&tree->cells, cpu, a.group.slot);

		if (cell[1 + REQUESTS])
			cell[1 + REQUESTS] += 10;
	}
	EXPECT_EQ(freshet_flush(tree), 0);
	EXPECT_EQ(tree_total(tree, root, REQUESTS), 11);
	EXPECT_EQ(tree_read(tree, root, REQUESTS), 11);
	freshet_close(tree);
}

#if FRESHET_HAVE_RSEQ && !defined(FALLBACK_ALONE)
/* A flush in a thread that may not call membarrier(2). Its flip stays. */
static void *flush_without_barrier(void *tree)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return (void *)1;
	return (void *)(intptr_t)freshet_flush(tree);
}

/* Whether a flush of the tree has failed. */
static bool fail_flush(struct freshet_tree *tree)
{
	pthread_t thread;
	void *result;

	EXPECT_EQ(pthread_create(&thread, NULL, flush_without_barrier, tree), 0);
	pthread_join(thread, &result);
	if (result == (void *)1)
		return false;
	EXPECT_EQ((intptr_t)result, -ENOMEM);
	return true;
}

TEST(removed_after_a_failed_flush)
{
	struct freshet_tree *tree;
	struct freshet_handle root, a, b;

	if (!tree_has_rseq())
		SKIP("no rseq in this process");
	tree = tree_open(NULL, 8, FRESHET_RSEQ);
	root = freshet_tree_root(tree);
	a = tree_make(tree, root, "a", 0);
	b = tree_make(tree, root, "b", 0);
	EXPECT_EQ(freshet_add(&a, REQUESTS, 1), 0);
	if (!fail_flush(tree))
		SKIP("no seccomp filters");
	EXPECT_EQ(tree_total(tree, root, REQUESTS), 0);
	EXPECT_EQ(tree_read(tree, root, REQUESTS), 1);

	/* Both are stamped with the epoch that begun then. */
	EXPECT_EQ(freshet_add(&a, REQUESTS, 10), 0);
	EXPECT_EQ(freshet_add(&b, REQUESTS, 100), 0);
	EXPECT_EQ(tree_read(tree, root, REQUESTS), 111);
	EXPECT_EQ(freshet_remove(tree, &a, 0), 0);
	EXPECT_EQ(freshet_add(&a, REQUESTS, 1000), -ENOENT);
	EXPECT_EQ(freshet_add(&b, REQUESTS, 100), 0);
	EXPECT_EQ(tree_read(tree, root, REQUESTS), 211);
	EXPECT_EQ(tree_read(tree, a, REQUESTS), NO_GROUP);
	EXPECT_EQ(freshet_flush(tree), 0);
	EXPECT_EQ(tree_total(tree, root, REQUESTS), 211);

	/* One flush is enough, though it first ends the one that failed. */
	EXPECT_EQ(freshet_add(&b, REQUESTS, 1000), 0);
	EXPECT(fail_flush(tree));
	EXPECT(fail_flush(tree));
	EXPECT_EQ(freshet_add(&b, REQUESTS, 10000), 0);
	EXPECT_EQ(tree_read(tree, root, REQUESTS), 11211);
	EXPECT_EQ(freshet_flush(tree), 0);
	EXPECT_EQ(tree_total(tree, root, REQUESTS), 11211);
	freshet_close(tree);
}
#endif
