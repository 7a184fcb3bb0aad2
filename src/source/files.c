/* SPDX-License-Identifier: MIT */
/*
 * Source "files": every cgroup's cpu.stat as text. For hosts without BPF or privilege; each read
 * makes the kernel flush that cgroup under its rstat lock, which is what source "bpf" avoids.
 *
 * Two kinds of pass
 *   - quick: the tree is known to be the one of the last pass; one pread() a group.
 *   - walk: the tree is read anew, groups come and go, numbers are read on the way.
 * A pass is quick when (1) the root's cgroup.stat, read first, counts as many descendants as we
 * know, and then (2) every known group's kept-open cpu.stat can still be read. A group that can be
 * read now was there when (1) was read, the kernel never counts fewer than are visible (mkdir
 * counts before it shows, rmdir hides before it uncounts), and a cgroup that was removed and made
 * again has another cpu.stat, of which our descriptor is not one (ENODEV). So the groups known are
 * all there are. Trees without a cgroup.stat (of tests) are walked in every pass.
 *
 * Invariants
 *   - A group is its directory's inode: known children are matched by it, and a directory of the
 *     same name with another inode is another group. Siblings are in order of inode number, which
 *     is the order in which they were made; so the order of known groups never changes.
 *   - One descriptor a group, of cpu.stat; directories are open while they are walked, one a level.
 *     When descriptors run out (the limit less some for the rest of the process, or EMFILE), the
 *     remaining groups' files are opened, read and closed in each pass, and every pass is a walk;
 *     each walk tries again to keep them.
 *     source_files_open() raises the soft limit of descriptors to the hard one; it never lowers it.
 *   - A failed pass leaves the children lists whole, and the next pass walks.
 *
 * Progress: nothing here waits but for the kernel; a walk ends because names come from finite
 * listings and levels are bounded by FILES_MAX_DEPTH.
 */
#include "source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "source/listing.h"
#include "source/parse.h"

#define FILES_MAX_DEPTH  512u /* deeper groups are left out: each level takes a descriptor */
#define FILES_RESERVE    256u /* descriptors left to the rest of the process, or a quarter */
#define FILES_DIR_FLAGS  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
#define FILES_STAT_FLAGS (O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
#define FILES_TEXT_SIZE  4096u /* of a cpu.stat: more is cut, and parse_cpu_stat() knows */

struct group {
	struct source_group pub;
	uint64_t ino;           /* in its parent's listing: pub.id, but on odd file systems */
	struct group *children; /* by ino */
	struct group *sibling;
	LIST_ENTRY(group) kept; /* in files.kept while fd >= 0 */
	int fd;                 /* its cpu.stat, or -1 */
	char name[];
};

struct files {
	struct source source;
	struct source_tree tree;
	uint32_t max_groups;
	int root_fd;  /* the root's directory */
	int count_fd; /* the root's cgroup.stat, or -1 */
	struct group *root;
	uint32_t known;     /* groups that exist, root included */
	size_t array_size;  /* room in tree.group */
	bool walk_next;     /* the last pass failed, or none was made */
	bool shape_changed; /* since the last good pass */

	LIST_HEAD(, group) kept; /* groups with an open cpu.stat */
	uint32_t nkept;
	uint32_t may_keep; /* as the limit has it */
	uint32_t max_kept; /* of this walk: less when descriptors ran out */

	struct listing listing; /* of the directory being read */
};

enum outcome { FILES_OK = 0, FILES_GONE = 1 }; /* or -errno, which ends the pass */

static struct files *files_of(struct source *s)
{
	return (struct files *)s;
}

static void forget_fd(struct files *f, struct group *g)
{
	if (g->fd < 0)
		return;
	close(g->fd);
	g->fd = -1;
	LIST_REMOVE(g, kept);
	f->nkept--;
}

static void keep_fd(struct files *f, struct group *g, int fd)
{
	g->fd = fd;
	LIST_INSERT_HEAD(&f->kept, g, kept);
	f->nkept++;
}

/* openat() that gives up kept descriptors when there are no others. */
static int files_openat(struct files *f, int dir, const char *name, int flags)
{
	for (;;) {
		int fd = openat(dir, name, flags);

		if (fd >= 0)
			return fd;
		if ((errno != EMFILE && errno != ENFILE) || LIST_EMPTY(&f->kept))
			return -errno;
		forget_fd(f, LIST_FIRST(&f->kept));
		f->max_kept = f->nkept;
	}
}

static bool is_gone(int r)
{
	return r == -ENOENT || r == -ENODEV;
}

/* Errors that say something about this process or machine, not about the group. */
static bool is_ours(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

static struct group *group_new(const char *name, uint64_t ino)
{
	size_t len = strlen(name) + 1;
	struct group *g = calloc(1, sizeof(*g) + len);

	if (!g)
		return NULL;
	memcpy(g->name, name, len);
	g->pub.name = g->name;
	g->pub.slot = UINT32_MAX;
	g->ino = ino;
	g->fd = -1;
	return g;
}

/* Frees g and all below it, without recursion: children are put in front of the rest. */
static void group_free(struct files *f, struct group *g)
{
	g->sibling = NULL;
	while (g) {
		struct group *rest = g->sibling, *c = g->children;

		if (c) {
			struct group *last = c;

			while (last->sibling)
				last = last->sibling;
			last->sibling = rest;
			rest = c;
		}
		forget_fd(f, g);
		free(g);
		f->known--;
		f->shape_changed = true;
		g = rest;
	}
}

/* Takes what was read. A counter never falls while its group lives (the root's could be seen torn
 * in 6.11 to 6.14). */
static void group_update(struct files *f, struct group *g, uint64_t value[HOST_NSTATS],
			 uint64_t present)
{
	bool changed = !g->pub.changed || present != g->pub.present;

	for (unsigned i = 0; i < HOST_NSTATS; i++) {
		uint64_t before = g->pub.value[i];

		if (!(present >> i & 1))
			value[i] = 0;
		else if (host_stats[i].kind == FRESHET_COUNTER && value[i] < before)
			value[i] = before;
		changed |= value[i] != before;
	}
	if (!changed)
		return;
	memcpy(g->pub.value, value, sizeof(g->pub.value));
	g->pub.present = present;
	g->pub.changed = f->tree.pass + 1;
}

/* Reads cpu.stat from fd. What is there but makes no sense counts as absent. */
static int read_numbers(struct files *f, struct group *g, int fd)
{
	uint64_t value[HOST_NSTATS] = { 0 }, present = 0;
	char text[FILES_TEXT_SIZE];
	ssize_t n = pread(fd, text, sizeof(text), 0);

	if (n < 0 && errno == ENODEV)
		return FILES_GONE;
	if (n < 0 && g->pub.changed) /* no memory, say: the last numbers stand */
		return FILES_OK;
	if (n > 0 && parse_cpu_stat(text, (size_t)n, value, &present) < 0)
		present = 0;
	group_update(f, g, value, present);
	return FILES_OK;
}

/* Reads g's cpu.stat, and keeps it open if it may. listed: its directory dir showed the file. */
static int read_group(struct files *f, struct group *g, int dir, bool listed)
{
	int fd, r;

	if (g->fd >= 0)
		return read_numbers(f, g, g->fd);
	fd = listed ? files_openat(f, dir, "cpu.stat", FILES_STAT_FLAGS) : -EACCES;
	if (is_gone(fd))
		return FILES_GONE;
	if (is_ours(fd))
		return fd;
	if (fd < 0) {
		group_update(f, g, (uint64_t[HOST_NSTATS]){ 0 }, 0);
		return FILES_OK;
	}
	r = read_numbers(f, g, fd);
	if (r == FILES_OK && f->nkept < f->max_kept)
		keep_fd(f, g, fd);
	else
		close(fd);
	return r;
}

/* Makes g's children what was listed: those no longer there are freed, new ones added while there
 * is room. Both lists are by ino, so one merge does it. */
static int merge_children(struct files *f, struct group *g, bool may_grow)
{
	struct group **at = &g->children, *child;

	for (size_t i = 0; i < f->listing.count; i++) {
		const char *name = listing_name(&f->listing, i);
		uint64_t ino = f->listing.entry[i].ino;

		while ((child = *at) && child->ino < ino) {
			*at = child->sibling;
			group_free(f, child);
		}
		if (child && child->ino == ino && !strcmp(child->name, name)) {
			at = &child->sibling;
			continue;
		}
		if (!may_grow || f->known >= f->max_groups) {
			f->tree.left_out++;
			continue;
		}
		child = group_new(name, ino);
		if (!child)
			return -ENOMEM;
		child->sibling = *at;
		*at = child;
		at = &child->sibling;
		f->known++;
		f->shape_changed = true;
	}
	while ((child = *at)) {
		*at = child->sibling;
		group_free(f, child);
	}
	return 0;
}

static int append(struct files *f, struct group *g)
{
	struct source_group **more;

	if (f->tree.count == f->array_size) {
		size_t size = f->array_size ? 2 * f->array_size : 256;

		more = realloc(f->tree.group, size * sizeof(struct source_group *));
		if (!more)
			return -ENOMEM;
		f->tree.group = more;
		f->array_size = size;
	}
	f->tree.group[f->tree.count++] = &g->pub;
	return 0;
}

/*
 * Makes sure that dir is still g's directory, and takes its identity when g is new. A group with an
 * open cpu.stat needs no look: when that can be read after dir was opened, dir was g's.
 */
static int check_identity(struct group *g, int dir)
{
	struct stat st;

	if (g->fd >= 0)
		return FILES_OK;
	if (fstat(dir, &st) < 0)
		return -errno;
	if (!g->pub.id)
		g->pub.id = st.st_ino;
	return g->pub.id == st.st_ino ? FILES_OK : FILES_GONE;
}

/* A known group of which its link count says that it still has no children, so that its directory
 * needs no reading: kernfs counts a child before it shows. */
static bool is_known_leaf(const struct group *g, int parent_dir)
{
	struct stat st;

	return g->fd >= 0 && !g->children &&
	       !fstatat(parent_dir, g->name, &st, AT_SYMLINK_NOFOLLOW) && st.st_nlink == 2;
}

static int walk_below(struct files *f, struct group *g, int dir, uint32_t position, uint32_t depth);

/* Reads g, whose directory is open as dir, and all below it. On FILES_GONE nothing was appended. */
static int walk_dir(struct files *f, struct group *g, int dir, uint32_t depth)
{
	uint32_t position = f->tree.count;
	int r;

	r = check_identity(g, dir);
	if (r)
		return r;
	r = listing_read(&f->listing, dir);
	if (r < 0)
		return is_gone(r) ? FILES_GONE : r;
	r = read_group(f, g, dir, f->listing.has_cpu_stat);
	if (r)
		return r;
	r = merge_children(f, g, depth < FILES_MAX_DEPTH);
	if (r < 0)
		return r;
	r = append(f, g);
	if (r < 0)
		return r;
	return walk_below(f, g, dir, position, depth + 1);
}

/* Reads g, a directory in parent_dir, and all below it. */
static int walk(struct files *f, struct group *g, int parent_dir, uint32_t depth)
{
	int dir, r;

	if (is_known_leaf(g, parent_dir)) {
		r = read_numbers(f, g, g->fd);
		return r ? r : append(f, g);
	}
	dir = files_openat(f, parent_dir, g->name, FILES_DIR_FLAGS);
	if (dir >= 0) {
		r = walk_dir(f, g, dir, depth);
		close(dir);
		return r;
	}
	if (is_gone(dir))
		return FILES_GONE;
	if (is_ours(dir))
		return dir;
	/* Not ours to look into: it is there, but without numbers and children. */
	if (!g->pub.id)
		g->pub.id = g->ino;
	group_update(f, g, (uint64_t[HOST_NSTATS]){ 0 }, 0);
	return append(f, g);
}

static int walk_below(struct files *f, struct group *g, int dir, uint32_t position, uint32_t depth)
{
	struct group **at = &g->children, *child;

	while ((child = *at)) {
		int r;

		child->pub.parent = position;
		r = walk(f, child, dir, depth);
		if (r < 0)
			return r;
		if (r == FILES_GONE) {
			f->tree.gone++;
			*at = child->sibling;
			group_free(f, child);
		} else {
			at = &child->sibling;
		}
	}
	return FILES_OK;
}

/* Descendants that the kernel counts below the root, or -ENODATA. */
static int count_descendants(const struct files *f, uint64_t *ret)
{
	static const char key[] = "nr_descendants ";
	char text[512], *line, *end;
	ssize_t n;

	if (f->count_fd < 0)
		return -ENODATA;
	n = pread(f->count_fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return -ENODATA;
	text[n] = '\0';
	line = strstr(text, key);
	if (!line || (line != text && line[-1] != '\n') || !(end = strchr(line, '\n')))
		return -ENODATA;
	line += sizeof(key) - 1;
	return parse_u64(line, (size_t)(end - line), ret);
}

/* Reads all known groups. FILES_GONE: one is not there any more, the rest was not read. */
static int quick(struct files *f)
{
	for (uint32_t i = 0; i < f->tree.count; i++) {
		struct group *g = (struct group *)f->tree.group[i];

		if (read_numbers(f, g, g->fd) == FILES_GONE)
			return FILES_GONE;
	}
	return FILES_OK;
}

static int files_pass(struct source *source, struct source_tree *ret)
{
	struct files *f = files_of(source);
	uint64_t begin = clock_ns(), counted = 0;
	bool have_count = !count_descendants(f, &counted);
	int r = FILES_GONE;

	f->tree.gone = 0;
	if (!f->walk_next && have_count && counted + 1 == f->tree.count &&
	    f->nkept == f->tree.count)
		r = quick(f);
	if (r == FILES_GONE) {
		f->tree.count = 0;
		f->tree.left_out = 0;
		f->walk_next = true;
		f->max_kept = f->may_keep;
		r = walk_dir(f, f->root, f->root_fd, 0);
		if (r)
			return r == FILES_GONE ? -ENODEV : r;
		/* A group that is left out hides those below it, which the kernel counts. */
		if (f->tree.left_out && have_count &&
		    counted + 1 > f->tree.count + f->tree.left_out)
			f->tree.left_out = (uint32_t)(counted + 1 - f->tree.count);
		f->walk_next = false;
		f->tree.shape += f->shape_changed;
		f->shape_changed = false;
	}
	f->tree.begin_ns = begin;
	f->tree.pass++;
	*ret = f->tree;
	return 0;
}

static void files_free(struct source *source)
{
	struct files *f = files_of(source);

	if (f->root)
		group_free(f, f->root);
	if (f->count_fd >= 0)
		close(f->count_fd);
	if (f->root_fd >= 0)
		close(f->root_fd);
	free(f->tree.group);
	listing_free(&f->listing);
	free(f);
}

static const struct source_ops files_ops = {
	.name = "files",
	.pass = files_pass,
	.free = files_free,
};

/* Raises the soft limit to the hard one; how many descriptors groups may take of it. */
static uint32_t descriptors(void)
{
	struct rlimit limit;
	rlim_t n;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	n = limit.rlim_cur;
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		if (!setrlimit(RLIMIT_NOFILE, &limit))
			n = limit.rlim_max;
	}
	n -= n / 4 < FILES_RESERVE ? n / 4 : FILES_RESERVE;
	return n < INT_MAX ? (uint32_t)n : INT_MAX;
}

int source_files_open(const struct source_options *options, struct source **ret, char *why,
		      size_t why_size)
{
	struct files *f = calloc(1, sizeof(*f));
	int r;

	if (!f) {
		snprintf(why, why_size, "out of memory");
		return -ENOMEM;
	}
	f->source.ops = &files_ops;
	f->max_groups = options->max_groups;
	f->walk_next = true;
	f->shape_changed = true;
	f->count_fd = -1;
	LIST_INIT(&f->kept);
	f->may_keep = descriptors();
	f->root_fd = open(options->root, FILES_DIR_FLAGS & ~O_NOFOLLOW);
	if (f->root_fd < 0) {
		r = -errno;
		snprintf(why, why_size, "cannot open %.150s: %s", options->root, strerror(-r));
		goto fail;
	}
	f->count_fd = openat(f->root_fd, "cgroup.stat", FILES_STAT_FLAGS);
	f->root = group_new("", 0);
	if (!f->root) {
		r = -ENOMEM;
		snprintf(why, why_size, "out of memory");
		goto fail;
	}
	f->known = 1;
	*ret = &f->source;
	return 0;
fail:
	files_free(&f->source);
	return r;
}
