/* SPDX-License-Identifier: MIT */
/*
 * Freshet: fresh hierarchical statistics without the lock.
 *
 * Two halves. A program keeps a tree of statistics (freshet_open and what follows): updates cost
 * a nanosecond or two. Any process reads a tree, its own or another's or the host collector's,
 * through a view (freshet_attach and what follows) of the shared-memory file that holds it, the
 * segment (docs/segment-format.md): without locks and, but for the functions marked "system call",
 * without entering the kernel.
 *
 * What may run together, on one tree (A waits for B: A may block while B runs):
 *
 *                          add, add_set,   create, lookup,  open,    every read
 *                          observe         remove, flush    close    of its view
 *   add, add_set, observe    yes             yes              no       yes
 *   create, lookup,
 *     remove, flush          yes             waits            no       yes
 *   open, close              no              no               no       no
 *
 *   add, add_set and observe may be called by any thread, in signal handlers too; never block, lock,
 *   allocate or (but for a group's first update after a flush, and freshet_backend() fallback)
 *   execute an atomic instruction. create, lookup, remove, flush, open, close: not in signal handlers.
 *   A handler must not leave an update that it interrupts by longjmp(), nor may a thread be cancelled
 *   asynchronously in one: on the fallback its slot would stay in use for ever.
 *   After fork() the child has no tree: its updates, create, lookup, remove and flush give -ECHILD,
 *   its reads go on reading the parent's. freshet_close() there frees memory and removes nothing.
 *   A child of vfork() must not call anything here.
 *
 * What may run together, on one view:
 *
 *                        attach/   reattach  find, children,  snapshot_take   refresh
 *                        detach              info, read...    (one snapshot)
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
 * What may block: open, close, create, lookup, remove, flush, attach, reattach, producer (file system calls,
 * and each other); refresh (until its timeout). Nothing else: a read finishes whatever the producer
 * does. It starts again when the producer has published more than nbanks - 2 passes while it ran
 * (2 with the default of 4 banks), which takes a reader that was itself held up for that long; after
 * FRESHET_MAX_TRIES it gives -EAGAIN. A tree's flushes, creations and removals keep at least four
 * times the CPU time they take between them.
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

/* Compilers judge the assembly in these functions by its length in lines. */
#define FRESHET_INLINE static inline __attribute__((always_inline))

#define FRESHET_NAME_MAX  255u /* bytes in a group's name */
#define FRESHET_PATH_MAX  4096u /* bytes in a group's path, final NUL included */
#define FRESHET_MAX_STATS 64u /* columns of a segment */
#define FRESHET_MAX_TRIES 64u
#define FRESHET_MAX_SET   16u /* stats of one set, in a program's tree */
#define FRESHET_MAX_DEPTH 11u /* of a group of a program's tree below its root */
#define FRESHET_MAX_HISTOGRAMS 16u
#define FRESHET_MAX_WORDS 4096u /* numbers of one group: stats, and of each histogram buckets + 1 */

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

/*
 * A distribution: how many of the observed values fell into which bucket, and their sum. Buckets are
 * log-linear: 2^precision of equal width in each power of two, so that a bucket's bounds are at most
 * 1/2^precision apart, relatively; values are first divided by 2^lowest and rounded down; what is
 * 2^highest or more goes into a last bucket without an upper bound. Exact, Fresh and Monotone, but
 * not Whole between the buckets and the sum: an observation is two additions.
 */
struct freshet_histogram {
	const char *family, *name, *key, *help; /* as in struct freshet_stat */
	enum freshet_unit unit;                 /* of the values */
	uint8_t precision;                      /* 0 to 6 */
	uint8_t lowest;                         /* below highest */
	uint8_t highest;                        /* at most 63; at least lowest + precision + 1 */
	uint16_t buckets; /* set by the library: freshet_buckets(), the last one included */
	uint16_t word;    /* set by the library: of its first bucket in a snapshot entry's values */
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

/* Where it is mapped, and *size bytes of it: for a handler of SIGBUS that wants to know a fault. */
FRESHET_API const void *freshet_mapping(const struct freshet_view *view, size_t *size);

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

/*
 * The same, fresh: of a program's tree, every update that happened before the call is in it. Of a
 * segment that has no cells (the host collector's) it is freshet_read_total(). The moment's times are
 * those of the last flush. Costs a look at what was updated since the last flush in the group's
 * subtree: see docs/library.md.
 */
FRESHET_API int freshet_read(const struct freshet_view *view, struct freshet_group group,
			     unsigned first, unsigned count, uint64_t *values, uint64_t *present,
			     struct freshet_moment *moment);

/* The segment's histograms, in order; valid as freshet_stats() is. */
FRESHET_API const struct freshet_histogram *freshet_histograms(const struct freshet_view *view,
							       size_t *count);

/* Histogram number `histogram` of a group, fresh: as many counts as it has buckets, not cumulated.
 * sum may be NULL. Errors as freshet_read(). */
FRESHET_API int freshet_read_histogram(const struct freshet_view *view, struct freshet_group group,
				       unsigned histogram, uint64_t *buckets, uint64_t *sum);

/* Buckets that a histogram of these bounds has, or 0 if they make none. */
FRESHET_API unsigned freshet_buckets(unsigned precision, unsigned lowest, unsigned highest);

/* The largest value that bucket number i counts; UINT64_MAX for the last. */
FRESHET_API uint64_t freshet_bucket_upper(const struct freshet_histogram *histogram, unsigned i);

/* The value below which a share q (0 to 1) of the observations lie: the upper bound of the bucket
 * that holds it; 0 when there are none. */
FRESHET_API uint64_t freshet_quantile(const struct freshet_histogram *histogram,
				      const uint64_t *buckets, double q);

/* 1: a program's tree, which has cells: freshet_read() and snapshots are fresh at any moment, its
 * age is 0, and there is nothing to refresh. 0: published in passes. */
FRESHET_API int freshet_is_live(const struct freshet_view *view);

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
 * A private copy of the whole tree: as of one pass, or fresh where the segment has cells (the moment
 * then begins when the copy does). Reused: _take replaces the contents, and names are copied again
 * only when the tree's shape has changed.
 */
FRESHET_API int freshet_snapshot_new(struct freshet_snapshot **ret);
FRESHET_API void freshet_snapshot_free(struct freshet_snapshot *snap);

/* On failure the former contents stay. -EAGAIN: see the head of this file; -ENOMEM; -EIO; -E2BIG: beyond
 * the limit. Without an error there are no groups only if a pass published none; a program's tree has
 * its root. */
FRESHET_API int freshet_snapshot_take(struct freshet_snapshot *snap,
				      const struct freshet_view *view);

/* For segments of whom one does not trust: takes from now on give -E2BIG when the snapshot would need
 * more than max_bytes of memory or they take longer than max_ns (0: any). */
FRESHET_API void freshet_snapshot_limit(struct freshet_snapshot *snap, size_t max_bytes,
					uint64_t max_ns);

/* Bytes that it has allocated, room for the next take included. */
FRESHET_API size_t freshet_snapshot_memory(const struct freshet_snapshot *snap);

/* One group of a snapshot, in pre-order: entry 0 is the root, entry i's descendants are the
 * entries i+1 .. i+size-1. Pointers are the snapshot's, until its next _take or _free. */
struct freshet_entry {
	struct freshet_group group;
	uint64_t id;
	uint32_t parent; /* its entry; of the root: 0 */
	uint32_t size;   /* entries of its subtree, itself included */
	uint32_t depth;
	const char *name;       /* "" for the root */
	const uint64_t *values; /* one per column of the view; then of each histogram, at its
				   `word`, the buckets and the sum */
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

/* ---- A program's own tree ---- */

struct freshet_tree;

/* What updates run on. The promises are the same. */
enum freshet_backend {
	FRESHET_AUTO = 0,
	FRESHET_RSEQ = 1,     /* restartable sequences: no atomic instruction */
	FRESHET_FALLBACK = 2, /* C11 atomics: no rseq in this process, or asked for */
};

/*
 * The numbers every group has. Strings are copied; family and name: [a-z][a-z0-9_]*; not the families
 * path, id, parent and age_us, which JSON has already. key NULL: the name. In a family each name once,
 * and each key, which is not "". A stat's `set`: 0 for a number on its own; stats with the same other number are
 * a set: they stand one after the other, at most FRESHET_MAX_SET of them.
 *
 * This structure and freshet_options may grow: `size` is what the program was compiled with, and a
 * library takes a longer one than it knows if all of the rest is 0. No other structure ever changes.
 */
struct freshet_schema {
	size_t size; /* of this structure */
	const struct freshet_stat *stats;
	unsigned nstats; /* 1 to FRESHET_MAX_STATS */
	const struct freshet_histogram *histograms;
	unsigned nhistograms; /* 0 to FRESHET_MAX_HISTOGRAMS */
};

struct freshet_options {
	size_t size;              /* of this structure */
	const char *producer;     /* at most 63 bytes; NULL: the program's name */
	unsigned max_groups;      /* 0: 1024 */
	unsigned fallback_slots;  /* updates that can be under way at once without rseq; 0: 8, or
				     64 where nothing else runs; at most 1024 */
	enum freshet_backend backend; /* FRESHET_RSEQ: -EOPNOTSUPP where there is none */
	unsigned flags;           /* 0 */
};

/* A group to update. Freely copied; for the tree's life; fastest as a local variable. Fields are the
 * library's, but for `group`, which is for reading the same group through freshet_view_of(). */
struct freshet_handle {
	struct freshet_group group;
	const struct freshet_hot *hot;
	char *cell;      /* on CPU slot 0 */
	uint64_t tag;    /* generation, above the selector's bits: no two groups of a slot share a stamp */
	int64_t place;   /* inline.h: freshet_area(), freshet_stride() */
	uint64_t limits; /* inline.h: freshet_limit_...() */
};

/*
 * Where the segment called name belongs, so that the tools find it: /run/freshet/NAME for root; else
 * RUNTIME_DIR/freshet/NAME, where runtime_dir is the caller's $XDG_RUNTIME_DIR; where that is NULL
 * or "", /tmp/freshet-UID/NAME. The directory is made if it is not there. Metrics are called
 * freshet_NAME_...: take letters, digits and '_'.
 * -EINVAL a bad name; -ENAMETOOLONG; -EPERM the directory is not ours alone; -errno of mkdir.
 */
FRESHET_API int freshet_place(const char *name, const char *runtime_dir, char *buf, size_t size);

/*
 * A new tree with a root, in a segment at path (NULL: seen by this process alone). options may be
 * NULL. A dead writer's segment at the path is replaced; counts start from 0. The file is 0640.
 * -EBUSY: a living process writes the segment; -EEXIST: something else lies there; -EPERM: others
 * may write to the directory; -ENOENT, -ENOTDIR (a link, too), -EACCES of the directory;
 * -ENAMETOOLONG; -EFBIG beyond RLIMIT_FSIZE; -ENOSPC; -ENOMEM; -EINVAL (a size of more than 4096,
 * or more groups than 4 GiB of cells a CPU, too); -EOPNOTSUPP.
 */
FRESHET_API int freshet_open(const char *path, const struct freshet_schema *schema,
			     const struct freshet_options *options, struct freshet_tree **ret);

/* Ends the tree and removes its file. NULL is fine. No handle may be used any more. */
FRESHET_API void freshet_close(struct freshet_tree *tree);

/* FRESHET_RSEQ or FRESHET_FALLBACK. */
FRESHET_API enum freshet_backend freshet_backend(const struct freshet_tree *tree);

/* The tree's own view; the tree's, until close. */
FRESHET_API const struct freshet_view *freshet_view_of(const struct freshet_tree *tree);

FRESHET_API struct freshet_handle freshet_tree_root(const struct freshet_tree *tree);

/*
 * A new group below parent. name: 1 to FRESHET_NAME_MAX bytes, without '/' or NUL, not "." or "..".
 * Readers that look for names see it at once; with FRESHET_LATER only from the next create without
 * it, remove or flush on, which is for making many at once (each publication costs some ns a group).
 * Reads of the groups above it include its updates from the first, either way.
 * -EEXIST; -ENOENT the parent was removed; -ENOSPC no room (max_groups, or the filesystem); -ELOOP
 * deeper than FRESHET_MAX_DEPTH; -ENAMETOOLONG; -EINVAL; -ENOMEM; -ECHILD.
 */
#define FRESHET_LATER 1u
FRESHET_API int freshet_create(struct freshet_tree *tree, const struct freshet_handle *parent,
			       const char *name, unsigned flags, struct freshet_handle *ret);

/* The child of parent called name. -ENOENT. */
FRESHET_API int freshet_lookup(struct freshet_tree *tree, const struct freshet_handle *parent,
			       const char *name, struct freshet_handle *ret);

/*
 * Removes a group without children. What it counted stays in the groups above it; updates through
 * its handles give -ENOENT from now on. With FRESHET_LATER, which is for removing many at once, only
 * from the next remove without it or flush on; until then they may still count, above it, and readers
 * see the group. -ENOTEMPTY; -ENOENT; -EBUSY the root; -EINVAL; -ECHILD.
 */
FRESHET_API int freshet_remove(struct freshet_tree *tree, const struct freshet_handle *group,
			       unsigned flags);

/*
 * Moves what was updated into the totals. Never needed for a right answer: it makes reads of groups
 * with many updated descendants cheap again, and freshet_read_total() young. Threads that call at
 * the same time share a flush. Waits until four times the last one's CPU time have passed.
 * -ECHILD; -errno of membarrier(2): nothing is lost, try again.
 */
FRESHET_API int freshet_flush(struct freshet_tree *tree);

/*
 * Updates; inline, see inline.h. `stat`: index in the schema.
 *   freshet_add      adds n to a stat. Counters: n >= 0, which is not checked.
 *   freshet_add_set  adds n[i] to stat first + i, for the `count` stats of one whole set, which
 *                    begins at first: all or none of it is ever seen.
 *   freshet_observe  counts value in a histogram (index in the schema).
 * 0; -ENOENT: the group was removed (just then: the value observed may be in the sum, in no bucket);
 * -ECHILD; -EINVAL: no such stat, set or histogram; -EAGAIN: nothing was counted (or, of a value
 * observed, the sum alone), because all fallback slots stayed in use: more threads without rseq
 * stood in the middle of an update than options.fallback_slots.
 */
FRESHET_INLINE int freshet_add(const struct freshet_handle *group, unsigned stat, int64_t n);
FRESHET_INLINE int freshet_add_set(const struct freshet_handle *group, unsigned first,
				  unsigned count, const int64_t *n);
FRESHET_INLINE int freshet_observe(const struct freshet_handle *group, unsigned histogram,
				  uint64_t value);

#include <freshet/inline.h>

#ifdef __cplusplus
}
#endif

#endif
