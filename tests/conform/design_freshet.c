/* SPDX-License-Identifier: MIT */
/*
 * Freshet's engine for tests/conform, on both of its paths.
 *
 * Updates are made slow now and then between their look at the stamp and their commit, where being
 * interrupted matters: FRESHET_SEQ_DELAY is a loop without registers, over a thread's own variable,
 * and two counts around it that say how often a sequence did not get out of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
__attribute__((tls_model("local-exec"), visibility("hidden"))) _Thread_local int conform_delay,
	conform_entered, conform_left;
#define FRESHET_SEQ_DELAY                   \
	"incl %%fs:conform_entered@tpoff\n" \
	"7:\n\t"                            \
	"decl %%fs:conform_delay@tpoff\n\t" \
	"jg 7b\n\t"                         \
	"incl %%fs:conform_left@tpoff\n\t"
#define HAVE_DELAY 1
#else
#define HAVE_DELAY 0
#endif

#include <freshet/freshet.h>

#include "base/atomics.h"
#include "conform/design.h"

enum { OPS, BUSY, SET, STATS = SET + 3 };

static const struct freshet_stat stats[STATS] = {
	{ "test", "ops", NULL, "Operations.", FRESHET_COUNTER, FRESHET_COUNT, 0 },
	{ "test", "busy", NULL, "Busy.", FRESHET_GAUGE, FRESHET_COUNT, 0 },
	{ "test", "a", NULL, "First of a set.", FRESHET_COUNTER, FRESHET_COUNT, 1 },
	{ "test", "b", NULL, "Second of a set.", FRESHET_COUNTER, FRESHET_COUNT, 1 },
	{ "test", "c", NULL, "Third of a set.", FRESHET_COUNTER, FRESHET_COUNT, 1 },
};
static const struct freshet_histogram histogram = {
	"test", "size", NULL, "Sizes.", FRESHET_BYTES, 1, 0, 6, 0, 0,
};

static uint64_t restarts_seen;

static int open_on(enum freshet_backend backend, const char *path, unsigned groups, void **tree)
{
	struct freshet_schema schema = { .size = sizeof(schema),
					 .stats = stats,
					 .nstats = STATS,
					 .histograms = &histogram,
					 .nhistograms = 1 };
	struct freshet_options o = {
		.size = sizeof(o), .producer = "conform", .max_groups = groups, .backend = backend
	};
	struct freshet_tree *t;
	int r;

	if (freshet_buckets(1, 0, 6) != BUCKETS)
		return -EINVAL;
	r = freshet_open(path, &schema, &o, &t);
	if (r == 0)
		*tree = t;
	return r;
}

static int open_rseq(const char *path, unsigned groups, void **tree)
{
	return open_on(FRESHET_RSEQ, path, groups, tree);
}

static int open_fallback(const char *path, unsigned groups, void **tree)
{
	return open_on(FRESHET_FALLBACK, path, groups, tree);
}

static void close_tree(void *tree)
{
	freshet_close(tree);
}

static uint64_t ref_of(struct freshet_group g)
{
	return (uint64_t)g.generation << 32 | g.slot;
}

static struct freshet_group group_of(uint64_t ref)
{
	return (struct freshet_group){ (uint32_t)ref, (uint32_t)(ref >> 32) };
}

static struct group wrap(const struct freshet_handle *h)
{
	struct group g = { .ref = ref_of(h->group) };

	_Static_assert(sizeof(*h) <= sizeof(g.handle), "a handle fits");
	memcpy(g.handle, h, sizeof(*h));
	return g;
}

static struct freshet_handle unwrap(const struct group *g)
{
	struct freshet_handle h;

	memcpy(&h, g->handle, sizeof(h));
	return h;
}

static struct group root(void *tree)
{
	struct freshet_handle h = freshet_tree_root(tree);

	return wrap(&h);
}

static int create(void *tree, const struct group *parent, const char *name, int later,
		  struct group *ret)
{
	struct freshet_handle above = unwrap(parent), h;
	int r = freshet_create(tree, &above, name, later ? FRESHET_LATER : 0, &h);

	if (r == 0)
		*ret = wrap(&h);
	return r;
}

static int remove_group(void *tree, const struct group *g)
{
	struct freshet_handle h = unwrap(g);

	return freshet_remove(tree, &h, 0);
}

static int flush(void *tree)
{
	return freshet_flush(tree);
}

/* Of one update in sixteen, by up to some ten microseconds: as long as a flush takes. */
static void delay(void)
{
#if HAVE_DELAY
	static _Thread_local uint32_t random = 1;

	random = random * 1664525 + 1013904223;
	conform_delay = random >> 28 ? 0 : 1 << (random >> 20 & 15);
	if (conform_entered != conform_left) {
		__atomic_fetch_add(&restarts_seen, (unsigned)(conform_entered - conform_left),
				   __ATOMIC_RELAXED);
		conform_entered = conform_left = 0;
	}
#endif
}

static int add_ops(const struct group *g, uint64_t n)
{
	struct freshet_handle h = unwrap(g);

	delay();
	return freshet_add(&h, OPS, (int64_t)n);
}

static int add_busy(const struct group *g, int64_t n)
{
	struct freshet_handle h = unwrap(g);

	delay();
	return freshet_add(&h, BUSY, n);
}

static int add_set(const struct group *g)
{
	static const int64_t one[3] = { 1, 1, 1 };
	struct freshet_handle h = unwrap(g);

	delay();
	return freshet_add_set(&h, SET, 3, one);
}

static int observe(const struct group *g, uint64_t value)
{
	struct freshet_handle h = unwrap(g);

	delay();
	return freshet_observe(&h, 0, value);
}

struct reader {
	struct freshet_view *mine; /* to be detached */
	const struct freshet_view *view;
	struct freshet_snapshot *snap;
	unsigned word; /* of the histogram in a snapshot's values */
};

static void detach(void *reader)
{
	struct reader *r = reader;

	freshet_detach(r->mine);
	freshet_snapshot_free(r->snap);
	free(r);
}

static int attach(void *tree, const char *path, void **reader)
{
	struct reader *r = calloc(1, sizeof(*r));
	const struct freshet_histogram *h;
	size_t count;
	int e;

	if (!r)
		return -ENOMEM;
	e = freshet_snapshot_new(&r->snap);
	if (e == 0 && !tree)
		e = freshet_attach(path, &r->mine);
	if (e) {
		detach(r);
		return e;
	}
	r->view = tree ? freshet_view_of(tree) : r->mine;
	h = freshet_histograms(r->view, &count);
	if (count != 1 || h->buckets != BUCKETS) {
		detach(r);
		return -EIO;
	}
	r->word = h->word;
	*reader = r;
	return 0;
}

static void unpack(const uint64_t *v, struct numbers *ret)
{
	*ret = (struct numbers){ .ops = v[OPS], .busy = (int64_t)v[BUSY] };
	memcpy(ret->set, v + SET, sizeof(ret->set));
}

static int read_group(void *reader, uint64_t ref, struct numbers *ret)
{
	struct reader *r = reader;
	uint64_t v[STATS], present;
	int e = freshet_read(r->view, group_of(ref), 0, STATS, v, &present, NULL);

	if (e == 0 && present != (1u << STATS) - 1)
		return -EIO;
	if (e == 0)
		unpack(v, ret);
	return e;
}

static int read_flushed(void *reader, uint64_t ref, struct numbers *ret)
{
	struct reader *r = reader;
	uint64_t v[STATS], present;
	int e = freshet_read_total(r->view, group_of(ref), 0, STATS, v, &present, NULL);

	if (e == 0)
		unpack(v, ret);
	return e;
}

static int read_distribution(void *reader, uint64_t ref, struct distribution *ret)
{
	struct reader *r = reader;

	return freshet_read_histogram(r->view, group_of(ref), 0, ret->bucket, &ret->sum);
}

static int snapshot(void *reader, see_group *see, void *arg)
{
	struct reader *r = reader;
	const struct freshet_entry *e;
	size_t count;
	int x = freshet_snapshot_take(r->snap, r->view);

	if (x)
		return x;
	e = freshet_snapshot_entries(r->snap);
	count = freshet_snapshot_count(r->snap);
	for (size_t i = 0; i < count; i++) {
		struct distribution d;
		struct numbers n;

		unpack(e[i].values, &n);
		memcpy(d.bucket, e[i].values + r->word, sizeof(d.bucket));
		d.sum = e[i].values[r->word + BUCKETS];
		see(arg, ref_of(e[i].group), i ? ref_of(e[e[i].parent].group) : 0, &n, &d);
	}
	return 0;
}

static uint64_t upper(void *reader, unsigned bucket)
{
	struct reader *r = reader;
	size_t count;

	return freshet_bucket_upper(freshet_histograms(r->view, &count), bucket);
}

static uint64_t restarts(void)
{
	return load_relaxed(&restarts_seen);
}

#define ALL ((1u << PROMISES) - 1)
#define FUNCTIONS                                                                                 \
	.promises = ALL, .close = close_tree, .root = root, .create = create,                     \
	.remove = remove_group, .flush = flush, .add_ops = add_ops, .add_busy = add_busy,         \
	.add_set = add_set, .observe = observe, .attach = attach, .detach = detach,               \
	.read = read_group, .read_flushed = read_flushed, .read_distribution = read_distribution, \
	.snapshot = snapshot, .upper = upper, .restarts = restarts

const struct design freshet_rseq = { .name = "rseq", .open = open_rseq, FUNCTIONS };
const struct design freshet_fallback = { .name = "fallback", .open = open_fallback, FUNCTIONS };
