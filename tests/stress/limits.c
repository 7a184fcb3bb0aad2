/* SPDX-License-Identifier: MIT */
/*
 * A full filesystem: opening a tree and creating groups give -ENOSPC, nothing dies of SIGBUS, and what
 * is there goes on counting. On a small tmpfs of our own, and on a disk's filesystem, which may need more
 * room to write what it had reserved; in a mount namespace of our own.
 */
#include "stress/stress.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

static bool mount_small(const char *type, unsigned kib)
{
	char text[6 * sizeof(stress_dir) + 200];

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	if (!strcmp(type, "tmpfs")) {
		snprintf(text, sizeof(text), "size=%uk,mode=0700", kib);
		return mount("freshet", stress_dir, "tmpfs", 0, text) == 0;
	}
	snprintf(text, sizeof(text),
		 "PATH=$PATH:/usr/sbin:/sbin; truncate -s %uK %s.img && mkfs.%s -q -F %s.img && "
		 "mount -o loop %s.img %s && chmod 700 %s",
		 kib, stress_dir, type, stress_dir, stress_dir, stress_dir, stress_dir);
	return system(text) == 0;
}

/* Runs in a child, which has another mount namespace. SIGBUS or a failure: not 0. */
static int fill(const char *type, unsigned kib)
{
	struct freshet_handle root, h[400];
	struct freshet_tree *tree;
	const int64_t one[3] = { 1, 1, 1 };
	uint64_t made = 0, values[STATS], present;
	char name[16];
	int r;

	if (!mount_small(type, kib))
		return 77;
	r = stress_open(stress_path, 60000, 0, &tree);
	if (r == -ENOSPC)
		return access(stress_path, F_OK) ? 1 : 10; /* nothing is left */
	if (r)
		return 11;
	root = freshet_tree_root(tree);
	/* Chunk by chunk, until there is no room; each group is updated and read at once. */
	for (unsigned i = 0; i < 60000; i++) {
		struct freshet_handle g;

		snprintf(name, sizeof(name), "g%u", i);
		r = freshet_create(tree, &root, name, i % 64 ? FRESHET_LATER : 0, &g);
		if (r)
			break;
		if (i < 400)
			h[i] = g;
		made++;
		if (freshet_add(&g, OPS, 1) || freshet_add_set(&g, A, 3, one))
			return 12;
	}
	if (r != -ENOSPC || made == 60000)
		return 13;
	for (unsigned again = 0; again < 3; again++) {
		struct freshet_handle g;

		if (freshet_create(tree, &root, "more", 0, &g) != -ENOSPC)
			return 14;
		for (unsigned i = 0; i < 400 && i < made; i++)
			if (freshet_add(&h[i], OPS, 1) || freshet_observe(&h[i], 0, 5))
				return 15;
		if (freshet_flush(tree))
			return 16;
	}
	if (freshet_read(freshet_view_of(tree), root.group, 0, STATS, values, &present, NULL) ||
	    values[OPS] != made + 3 * (made < 400 ? made : 400) || values[B] != made)
		return 17;
	/* The room of a removed one can be had again. */
	if (made && (freshet_remove(tree, &h[0], 0) ||
		     freshet_create(tree, &root, "again", 0, &h[0]) || freshet_add(&h[0], OPS, 1)))
		return 18;
	freshet_close(tree);
	return 0;
}

static void fill_all(const char *type, unsigned from, unsigned to)
{
	unsigned refused = 0, full = 0;
	char image[sizeof(stress_dir) + 8];

	stress_make_path();
	snprintf(image, sizeof(image), "%s.img", stress_dir);
	for (unsigned kib = from; kib < to; kib = kib * 3 / 2 + 4) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(fill(type, kib));
		REQUIRE(waitpid(pid, &status, 0) == pid);
		unlink(image);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
			stress_remove();
			SKIP("cannot mount a filesystem");
		}
		EXPECT(WIFEXITED(status) && WEXITSTATUS(status) < 2, "%s of %u KiB: %s %d", type,
		       kib, WIFSIGNALED(status) ? "signal" : "exit",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		refused += status != 0;
		full += status == 0;
	}
	printf("# %s: %u too small to open, %u filled\n", type, refused, full);
	EXPECT(full > 2);
	stress_remove();
}

TEST(full_filesystem)
{
	/* From nothing to enough for some thousand groups. */
	fill_all("tmpfs", 4, 120000);
}

TEST(full_disk)
{
	fill_all("ext4", 3000, 40000);
}

TEST(full_disk_without_fallocate)
{
	fill_all("ext2", 3000, 20000);
}

STRESS_MAIN(1)
