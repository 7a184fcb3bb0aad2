/* SPDX-License-Identifier: MIT */
/*
 * A full filesystem: opening a tree and creating groups give -ENOSPC, nothing dies of SIGBUS, and what
 * is there goes on counting. On a small tmpfs of our own, in a mount namespace of our own.
 */
#include "stress/stress.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Runs in a child, which has another mount namespace. SIGBUS or a failure: not 0. */
static int fill(unsigned kib)
{
	struct freshet_handle root, h[400];
	struct freshet_tree *tree;
	const int64_t one[3] = { 1, 1, 1 };
	uint64_t made = 0, values[STATS], present;
	char name[16], options[64];
	int r;

	snprintf(options, sizeof(options), "size=%uk,mode=0700", kib);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("freshet", stress_dir, "tmpfs", 0, options))
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

TEST(full_filesystem)
{
	unsigned refused = 0, full = 0;

	stress_make_path();
	/* From nothing to enough for some thousand groups. */
	for (unsigned kib = 4; kib < 120000; kib = kib * 3 / 2 + 4) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(fill(kib));
		REQUIRE(waitpid(pid, &status, 0) == pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
			stress_remove();
			SKIP("cannot mount a tmpfs");
		}
		EXPECT(WIFEXITED(status) && WEXITSTATUS(status) < 2, "%u KiB: %s %d", kib,
		       WIFSIGNALED(status) ? "signal" : "exit",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		refused += status != 0;
		full += status == 0;
	}
	printf("# %u too small to open, %u filled\n", refused, full);
	EXPECT(refused > 2 && full > 2);
	stress_remove();
}

STRESS_MAIN(1)
