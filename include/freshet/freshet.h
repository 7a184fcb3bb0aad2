/* SPDX-License-Identifier: MIT */
/*
 * Freshet: fresh hierarchical statistics without the lock.
 *
 * This header is the reader: it maps a segment (docs/segment-format.md) that another process keeps
 * up to date, and reads it without locks and, but for the functions marked "system call", without
 * entering the kernel.
 *
 * What may run together, on one view:
 *
 *                        attach/   reattach  find, children,  snapshot_take   refresh
 *                        detach              info, read_total (one snapshot)
 *   attach, detach         no        no           no               no           no
 *   reattach               no        no           no               no           no
 *   find, info, read...    no        no           yes              yes          yes
 *   snapshot_take          no        no           yes              no (1)       yes
 *   refresh                no        no           yes              yes          yes
 *
 *   (1) two threads may take into two snapshots of one view; not into the same one.
 *   Views are independent of each other. The producer may do anything at any time, stopping, dying
 *   and restarting included: no function here waits for it, except freshet_refresh().
 *
 * What may block: attach, reattach, producer (file system calls); refresh (until its timeout).
 * Nothing else: a read finishes whatever the producer does. It starts again when the producer has
 * published more than nbanks - 2 passes while it ran (2 with the default of 4 banks), which takes
 * a reader that was itself held up for that long; after FRESHET_MAX_TRIES it gives -EAGAIN.
 *
 * Results are 0 or a negative errno; outputs are written only on success, but for arrays (values,
 * children, paths), whose contents are then undefined. The library does not log, exit, or read the
 * environment. -EIO means that the segment is damaged or hostile.
 *
 * Trust: a reader believes a segment's producer not to truncate the file under it, and not to leave
 * holes in it on a full filesystem (the producer in this library does neither); everything inside
 * the file is checked.
 */
#ifndef FRESHET_H
#define FRESHET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef FRESHET_API
#define FRESHET_API
#endif

#define FRESHET_NAME_MAX  255u /* bytes in a group's name */
#define FRESHET_PATH_MAX  4096u /* bytes in a group's path, final NUL included */
#define FRESHET_MAX_STATS 64u /* columns of a segment */
#define FRESHET_MAX_TRIES 64u

enum freshet_kind {
	FRESHET_COUNTER = 1, /* only grows while its group lives */
	FRESHET_GAUGE = 2,   /* two's complement: may fall, may be negative */
};

enum freshet_unit {
	FRESHET_COUNT = 0,
	FRESHET_NANOSECONDS = 1,
	FRESHET_BYTES = 2,
};

/* A column: one number that every group can have. Strings belong to the view. */
struct freshet_stat {
	const char *family; /* "cpu" */
	const char *name;   /* "usage": metrics are named <family>_<name>_<unit> from it */
	const char *key;    /* the source's own name for it, with its unit: "usage_usec" */
	const char *help;   /* one sentence */
	enum freshet_kind kind;
	enum freshet_unit unit;
	unsigned set; /* stats of one set are never seen torn against each other */
};

/* A group, as long as the view stays attached to the same segment. Freely copied. */
struct freshet_group {
	uint32_t slot;
	uint32_t generation; /* 0 is no group */
};

struct freshet_info {
	uint64_t id;                  /* of a cgroup: the inode number of its directory */
	struct freshet_group parent;  /* generation 0 for the root */
	uint32_t depth;               /* 0 for the root */
	uint32_t descendants;         /* groups below it */
	char name[FRESHET_NAME_MAX + 1]; /* the last part of its path; "" for the root */
};

/* When the numbers of a read were taken. Clock: CLOCK_MONOTONIC, ns. */
struct freshet_moment {
	uint64_t pass;     /* number of the pass, from 1; rises by one with each */
	uint64_t begin_ns; /* the pass began: no number is older than this */
	uint64_t end_ns;   /* the pass was published */
};

struct freshet_view;
struct freshet_snapshot;

/*
 * Maps the segment at path (absolute or relative file name), read-only.
 * -ENOENT no such file; -EACCES not allowed; -EAGAIN the producer has published nothing yet;
 * -EPROTO not a segment or of another version; -EIO damaged. System call.
 */
FRESHET_API int freshet_attach(const char *path, struct freshet_view **ret);

/* The same for an open descriptor, which stays the caller's: its file is opened anew through
 * /proc/self/fd (-ENOENT where /proc is not mounted). Such a view knows no path: reattach gives
 * -EINVAL, refresh -EOPNOTSUPP. */
FRESHET_API int freshet_attach_fd(int fd, struct freshet_view **ret);

/* Unmaps; NULL is fine. Groups, stats and strings of the view end with it; snapshots stay. */
FRESHET_API void freshet_detach(struct freshet_view *view);

enum freshet_producer {
	FRESHET_ALIVE = 1,    /* holds the segment's lock. It may still be stopped: see the age */
	FRESHET_GONE = 2,     /* ended, cleanly or not: the numbers are the last it published */
	FRESHET_REPLACED = 3, /* ended, and a newer segment lies at the path: reattach */
};

/* Who keeps the segment, asked of the kernel (the lock it holds), so that neither a reused pid nor
 * a pid namespace can deceive. Gives enum freshet_producer or -errno. System call. */
FRESHET_API int freshet_producer(const struct freshet_view *view);

/*
 * Follows a producer that restarted. 1: another segment is mapped now, all groups of the view are
 * void; 0: nothing to do; -errno: the old mapping stays. System call.
 */
FRESHET_API int freshet_reattach(struct freshet_view *view);

/* The segment's columns, in order; valid until detach or a reattach that gave 1. */
FRESHET_API const struct freshet_stat *freshet_stats(const struct freshet_view *view, size_t *count);

/* Index of a column by family and key, or -ENOENT. */
FRESHET_API int freshet_stat_index(const struct freshet_view *view, const char *family,
				   const char *key);

/* Who produces: name ("freshet serve"), pid in its own namespace, the interval it intends (ns; 0:
 * none), start time (CLOCK_MONOTONIC ns), its 16-byte identity, new with every start. */
struct freshet_producer_info {
	char name[64];
	int32_t pid;
	uint64_t interval_ns;
	uint64_t start_ns;
	uint8_t identity[16];
	uint32_t max_groups;
	uint64_t overflowed; /* groups that found no room in the last pass */
};
FRESHET_API int freshet_producer_info(const struct freshet_view *view,
				      struct freshet_producer_info *ret);

/* The root of the tree. */
FRESHET_API int freshet_root(const struct freshet_view *view, struct freshet_group *ret);

/* By path below the root: "/", "/a/b", "a/b". -ENOENT; -EINVAL for "." or ".." as a part. */
FRESHET_API int freshet_find(const struct freshet_view *view, const char *path,
			     struct freshet_group *ret);

/*
 * Children of group, in the order of the segment, at most capacity of them into ret; *count is how
 * many there are, which may be more. -ENOENT: the group was removed.
 */
FRESHET_API int freshet_children(const struct freshet_view *view, struct freshet_group group,
				 struct freshet_group *ret, size_t capacity, size_t *count);

FRESHET_API int freshet_info(const struct freshet_view *view, struct freshet_group group,
			     struct freshet_info *ret);

/* "/" for the root, else "/a/b". -ENAMETOOLONG when size does not suffice. */
FRESHET_API int freshet_path(const struct freshet_view *view, struct freshet_group group, char *buf,
			     size_t size);

/*
 * Columns first .. first+count-1 of one group as of the last pass, all from the same pass. Bit i of
 * *present tells whether the group has column first+i; values[i] of an absent one is 0. moment may
 * be NULL. No system call, no lock, writes nothing shared. -ENOENT: removed; -EINVAL: no such
 * columns.
 */
FRESHET_API int freshet_read_total(const struct freshet_view *view, struct freshet_group group,
				   unsigned first, unsigned count, uint64_t *values,
				   uint64_t *present, struct freshet_moment *moment);

/* Time of the last pass. One load of the segment; no system call. */
FRESHET_API int freshet_last_pass(const struct freshet_view *view, struct freshet_moment *ret);

/* Now minus the begin of the last pass, ns (clock_gettime, which is no system call on Linux). -EIO
 * for a pass of the future: its clock is not ours (docs/segment-format.md). */
FRESHET_API int freshet_age(const struct freshet_view *view, uint64_t *age_ns);

/*
 * Asks the producer for a pass that begins no earlier than max_age_ns before now, and waits for it,
 * at most timeout_ns. 0: such a pass is published; -ETIMEDOUT; -EOPNOTSUPP: the producer takes no
 * requests; -ECONNREFUSED: it is gone. Producers share one pass among all who ask and limit what
 * they spend, so this can take longer than a pass. System call, may block.
 */
FRESHET_API int freshet_refresh(const struct freshet_view *view, uint64_t max_age_ns,
				uint64_t timeout_ns);

/*
 * A private copy of the whole tree as of one pass. Reused: _take replaces the contents, and names
 * are copied again only when the tree's shape has changed.
 */
FRESHET_API int freshet_snapshot_new(struct freshet_snapshot **ret);
FRESHET_API void freshet_snapshot_free(struct freshet_snapshot *snap);

/* On failure the former contents stay. -EAGAIN: see the head of this file; -ENOMEM; -EIO. */
FRESHET_API int freshet_snapshot_take(struct freshet_snapshot *snap,
				      const struct freshet_view *view);

/* One group of a snapshot, in pre-order: entry 0 is the root, entry i's descendants are the
 * entries i+1 .. i+size-1. Pointers are the snapshot's, until its next _take or _free. */
struct freshet_entry {
	struct freshet_group group;
	uint64_t id;
	uint32_t parent; /* its entry; of the root: 0 */
	uint32_t size;   /* entries of its subtree, itself included */
	uint32_t depth;
	const char *name;       /* "" for the root */
	const uint64_t *values; /* one per column of the view */
	uint64_t present;       /* bit per column */
};

FRESHET_API size_t freshet_snapshot_count(const struct freshet_snapshot *snap);
FRESHET_API const struct freshet_entry *freshet_snapshot_entries(const struct freshet_snapshot *snap);
FRESHET_API void freshet_snapshot_moment(const struct freshet_snapshot *snap,
					 struct freshet_moment *ret);

/* Entry at path (as freshet_find) into *ret, or -ENOENT. */
FRESHET_API int freshet_snapshot_find(const struct freshet_snapshot *snap, const char *path,
				      size_t *ret);

/* Path of entry i (as freshet_path). */
FRESHET_API int freshet_snapshot_path(const struct freshet_snapshot *snap, size_t i, char *buf,
				      size_t size);

#ifdef __cplusplus
}
#endif

#endif
