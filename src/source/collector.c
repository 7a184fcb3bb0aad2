/* SPDX-License-Identifier: MIT */
/*
 * Implements collector.h: moves what a pass of the source changed into the segment.
 *
 * Invariants
 *   - nodes[] is the tree that the writer knows, in the order of the source's array as of `shape`;
 *     a group's slot lies in source_group.slot, which lives as long as the group does.
 *   - All changes up to pass `published` of the source are in the segment. A pass that the source
 *     made but that was not published (no memory) is caught up by the next: rows go by `published`.
 *   - While a group finds no room in the segment the shape is given again in each pass, because
 *     slots of removed groups become free some passes later, without the tree changing.
 */
#include "source/collector.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "core/writer.h"
#include "source/collector_internal.h"
#include "source/host_stats.h"
#include "source/mount.h"

#define DEFAULT_MAX_GROUPS 65536u

struct collector {
	struct source *source;
	struct writer *writer;
	struct writer_node *nodes;
	uint32_t capacity;   /* of nodes */
	bool moved;          /* the segment is new: the groups' slots are another's */
	bool anonymous;      /* the segment has no path since its file was removed */
	bool any;            /* shape means something */
	uint64_t shape;      /* of the source's tree in nodes */
	uint64_t published;  /* pass of the source */
	uint32_t overflowed; /* nodes without a slot */
	struct collector_stats stats;
	char root[4096];
	/* To open the source again when its root comes back; path NULL: never. */
	char *path;
	enum collector_source wanted; /* the one that runs: what was said of it stays true */
	uint32_t max_groups;
};

/* The source asked for; with COLLECT_AUTO files where BPF does not work. */
static int open_source(enum collector_source wanted, const struct source_options *options,
		       struct source **ret, char *why, size_t why_size)
{
	static const char cost[] = "reading cpu.stat text costs 1 to 3 us and one rstat flush per "
				   "cgroup and pass";
	char reason[256] = "";
	int r;

	if (wanted != COLLECT_FILES) {
		r = source_bpf_open(options, ret, reason, sizeof(reason));
		if (r < 0 && wanted == COLLECT_BPF) {
			snprintf(why, why_size, "source bpf: %s", *reason ? reason : strerror(-r));
			return r;
		}
		if (r == 0) {
			snprintf(why, why_size, "%s", reason);
			return 0;
		}
		snprintf(why, why_size, "files: source bpf is not usable (%s); %s",
			 *reason ? reason : strerror(-r), cost);
	} else {
		snprintf(why, why_size, "files: as asked for; %s", cost);
	}
	r = source_files_open(options, ret, reason, sizeof(reason));
	if (r < 0)
		snprintf(why, why_size, "source files: %s", reason);
	return r;
}

/* The source over the cgroup at path, as people write it; root (4,096 bytes) is its directory. */
static int open_root(const char *path, enum collector_source wanted, uint32_t max_groups,
		     struct source **ret, char *root, char *why, size_t why_size)
{
	struct source_options so = { .root = root, .max_groups = max_groups };
	char relative[4096];
	struct cgroup_mount m;
	int r;

	r = mount_find(&m);
	if (r < 0) {
		if (r == -ENOENT)
			snprintf(why, why_size,
				 "no cgroup2 file system is mounted here (on a host with cgroup v1 "
				 "alone: mount -t cgroup2 none /mnt)");
		else
			snprintf(why, why_size, "/proc/self/mountinfo: %s", strerror(-r));
		return r;
	}
	r = mount_resolve(&m, path, root, 4096);
	if (r == 0)
		r = mount_relative(&m, path, relative, sizeof(relative));
	if (r < 0) {
		snprintf(why, why_size, "no cgroup %.150s below %.150s: %s", path, m.path,
			 r == -EINVAL ? "\".\" and \"..\" are not followed" : strerror(-r));
		return r;
	}
	so.is_top = m.is_top && !strcmp(relative, "/");
	return open_source(wanted, &so, ret, why, why_size);
}

/* The root is gone: perhaps one of the same name is there again (a restarted service). */
static int reopen(struct collector *c)
{
	struct source *source;
	char root[sizeof(c->root)], why[512];
	int r;

	if (!c->path)
		return -ENODEV;
	r = open_root(c->path, c->wanted, c->max_groups, &source, root, why, sizeof(why));
	if (r < 0)
		return r;
	c->source->ops->free(c->source);
	c->source = source;
	c->any = false;
	c->published = 0;
	return 0;
}

/* Makes the segment's tree the source's. A group that gets a slot has its numbers written. */
static int update_shape(struct collector *c, const struct source_tree *tree)
{
	if (tree->count > c->capacity) {
		struct writer_node *more = realloc(c->nodes, tree->count * sizeof(*more));

		if (!more)
			return -ENOMEM;
		c->nodes = more;
		c->capacity = tree->count;
	}
	for (uint32_t i = 0; i < tree->count; i++) {
		const struct source_group *g = tree->group[i];

		c->nodes[i] = (struct writer_node){ g->id, g->name, g->parent,
						    c->moved ? WRITER_NEW : g->slot };
	}
	writer_shape(c->writer, c->nodes, tree->count, &c->overflowed);
	for (uint32_t i = 0; i < tree->count; i++) {
		struct source_group *g = tree->group[i];

		if (g->slot == c->nodes[i].slot)
			continue;
		g->slot = c->nodes[i].slot;
		if (g->slot != WRITER_NEW)
			writer_row(c->writer, g->slot, g->value, g->present);
	}
	c->moved = false;
	c->shape = tree->shape;
	c->any = true;
	return 0;
}

int collector_pass(struct collector *c)
{
	uint64_t begin = clock_ns();
	struct source_tree tree;
	int r;

	r = c->source->ops->pass(c->source, &tree);
	if (r == -ENODEV && reopen(c) == 0)
		r = c->source->ops->pass(c->source, &tree);
	if (r < 0)
		goto fail;
	writer_begin(c->writer, tree.begin_ns);
	if (!c->any || tree.shape != c->shape || c->overflowed) {
		r = update_shape(c, &tree);
		if (r < 0)
			goto fail;
	}
	for (uint32_t i = 0; i < tree.count; i++) {
		const struct source_group *g = tree.group[i];

		if (g->changed > c->published && g->slot != WRITER_NEW)
			writer_row(c->writer, g->slot, g->value, g->present);
	}
	writer_left_out(c->writer, tree.left_out);
	writer_publish(c->writer, clock_ns());
	c->published = tree.pass;
	c->stats.passes++;
	c->stats.gone += tree.gone;
	c->stats.groups = tree.count - c->overflowed;
	c->stats.left_out = tree.left_out + c->overflowed;
	c->stats.last_ns = clock_ns() - begin;
	return 0;
fail:
	c->stats.failed++;
	return r;
}

static struct writer_options writer_options(const struct collector_options *options)
{
	return (struct writer_options){
		.size = sizeof(struct writer_options),
		.producer = options->producer,
		.socket = options->socket,
		.stats = host_stats,
		.nstats = HOST_NSTATS,
		.max_groups = options->max_groups ? options->max_groups : DEFAULT_MAX_GROUPS,
		.interval_ns = options->interval_ns,
	};
}

int collector_open_source(struct source *source, const char *root,
			  const struct collector_options *options, struct collector **ret)
{
	struct writer_options w = writer_options(options);
	struct collector *c = calloc(1, sizeof(*c));
	int r;

	if (!c) {
		source->ops->free(source);
		return -ENOMEM;
	}
	c->source = source;
	snprintf(c->root, sizeof(c->root), "%s", root);
	r = writer_open(options->segment, &w, &c->writer);
	if (r < 0) {
		collector_close(c);
		return r;
	}
	*ret = c;
	return 0;
}

/* What is wrong when the segment cannot be made. */
static void explain_segment(const char *segment, int r, char *why, size_t why_size)
{
	segment = segment ? segment : "(anonymous)";
	if (r == -EBUSY)
		snprintf(why, why_size, "segment %.200s: another process keeps it", segment);
	else if (r == -EPERM)
		snprintf(why, why_size,
			 "segment %.200s: its directory belongs to another user, or others may "
			 "write to it",
			 segment);
	else if (r == -ENOENT)
		snprintf(why, why_size, "segment %.200s: its directory is not there", segment);
	else if (r == -EEXIST)
		snprintf(why, why_size, "segment %.200s: something that is no segment lies there",
			 segment);
	else
		snprintf(why, why_size, "segment %.200s: %s", segment, strerror(-r));
}

int collector_open(const struct collector_options *options, struct collector **ret, char *why,
		   size_t why_size)
{
	uint32_t max_groups = options->max_groups ? options->max_groups : DEFAULT_MAX_GROUPS;
	const char *path = options->root ? options->root : "/";
	struct source *source;
	char root[4096];
	int r;

	if (options->size != sizeof(*options)) {
		snprintf(why, why_size, "collector options of another version");
		return -EINVAL;
	}
	r = open_root(path, options->source, max_groups, &source, root, why, why_size);
	if (r < 0)
		return r;
	r = collector_open_source(source, root, options, ret);
	if (r < 0) {
		explain_segment(options->segment, r, why, why_size);
		return r;
	}
	/* No memory for it: then a root that comes back is not followed. */
	(*ret)->path = strdup(path);
	(*ret)->wanted = !strcmp(source->ops->name, "bpf") ? COLLECT_BPF : COLLECT_FILES;
	(*ret)->max_groups = max_groups;
	return 0;
}

void collector_close(struct collector *c)
{
	if (!c)
		return;
	writer_close(c->writer);
	c->source->ops->free(c->source);
	free(c->nodes);
	free(c->path);
	free(c);
}

bool collector_placed(const struct collector *c, const char *path)
{
	struct stat ours, there;

	if (lstat(path, &there) < 0)
		return errno != ENOENT && errno != ENOTDIR; /* else nobody can tell */
	return fstat(writer_fd(c->writer), &ours) == 0 && ours.st_dev == there.st_dev &&
	       ours.st_ino == there.st_ino;
}

static void move_to(struct collector *c, struct writer *writer)
{
	writer_close(c->writer);
	c->writer = writer;
	c->moved = true;
	c->any = false;
	c->published = 0;
}

int collector_place(struct collector *c, const struct collector_options *options, char *why,
		    size_t why_size)
{
	struct writer_options w = writer_options(options);
	struct writer *writer;
	int r;

	w.first_pass = c->stats.passes + 1;
	/* The old one's locks must go before another can be made, and passes need one meanwhile. */
	if (!c->anonymous) {
		r = writer_open(NULL, &w, &writer);
		if (r < 0) {
			explain_segment(NULL, r, why, why_size);
			return r;
		}
		move_to(c, writer);
		c->anonymous = true;
	}
	r = writer_open(options->segment, &w, &writer);
	if (r < 0) {
		explain_segment(options->segment, r, why, why_size);
		return r;
	}
	move_to(c, writer);
	c->anonymous = false;
	return 0;
}

int collector_fd(const struct collector *c)
{
	return writer_fd(c->writer);
}

const char *collector_source_name(const struct collector *c)
{
	return c->source->ops->name;
}

const char *collector_root(const struct collector *c)
{
	return c->root;
}

void collector_stats(const struct collector *c, struct collector_stats *ret)
{
	*ret = c->stats;
}
