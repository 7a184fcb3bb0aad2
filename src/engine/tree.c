/* SPDX-License-Identifier: MIT */
/* Opening and closing a tree (tree.h). */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomics.h"
#include "base/cpus.h"
#include "base/where.h"
#include "engine/tree.h"

#define DEFAULT_GROUPS       1024u
#define DEFAULT_FALLBACK     8u /* beside rseq */
#define DEFAULT_ALL_FALLBACK 64u
#define MAX_FALLBACK         1024u
#define HOT_SIZE             SEG_PAGE
_Static_assert(sizeof(struct freshet_hot) <= HOT_SIZE, "the hot part is one page");
#ifdef __LP64__
/* Programs have all of this compiled in, inline.h. */
_Static_assert(sizeof(struct freshet_handle) == 48 && offsetof(struct freshet_handle, hot) == 8 &&
		       offsetof(struct freshet_handle, cell) == 16 &&
		       offsetof(struct freshet_handle, tag) == 24 &&
		       offsetof(struct freshet_handle, place) == 32 &&
		       offsetof(struct freshet_handle, limits) == 40 &&
		       offsetof(struct freshet_hot, selector) == 0 &&
		       offsetof(struct freshet_hot, tree) == 8 &&
		       offsetof(struct freshet_hot, set) == 16 &&
		       offsetof(struct freshet_hot, histogram) == 272 && FRESHET_BANKS == 6,
	       "the ABI of libfreshet.so.0");
#endif

/* Memory for the cells and lives of the group slots from .. to-1. */
static int reserve(void *arg, uint32_t from, uint32_t to)
{
	const struct freshet_tree *t = arg;
	const size_t n = to - from, cell = t->cells.cell_size;
	int r = writer_reserve(t->writer, t->lives + from * sizeof(struct seg_life),
			       n * sizeof(struct seg_life));

	for (uint32_t slot = 0; r == 0 && slot < t->cells.slots; slot++)
		r = writer_reserve(t->writer,
				   t->cell_memory + slot * t->cells.cells_stride + from * cell,
				   n * cell);
	return r;
}

/* What never changes in the sections, and all of them that is not reserved by group. */
static int prepare(void *arg, struct writer *w)
{
	struct freshet_tree *t = arg;
	struct cells *c = &t->cells;
	struct seg_control *k = writer_section(w, SEG_CONTROL);
	char *parts = writer_section(w, SEG_PARTS);
	size_t parts_size = t->schema.nparts * sizeof(struct seg_part);
	size_t dirty_size = (size_t)CELLS_EPOCHS * (c->slots + 1) * c->dirty_row;
	int r;

	t->writer = w;
	t->control = k;
	t->lives = writer_section(w, SEG_LIVES);
	t->dirty = writer_section(w, SEG_DIRTY);
	t->owners = writer_section(w, SEG_OWNERS);
	t->cell_memory = writer_section(w, SEG_CELLS);
	c->control = k;
	c->lives = t->lives;
	c->dirty = t->dirty;
	c->cells = t->cell_memory;
	r = writer_reserve(w, k, sizeof(*k));
	if (r == 0)
		r = writer_reserve(w, parts, parts_size);
	if (r == 0)
		r = writer_reserve(w, t->dirty, dirty_size);
	if (r == 0)
		r = writer_reserve(w, t->owners, (size_t)c->fallback_slots * SEG_OWNER_STRIDE);
	if (r)
		return r;
	k->slots = c->slots;
	k->rseq_slots = c->rseq_slots;
	k->fallback_slots = c->fallback_slots;
	k->words = c->words;
	k->cell_size = c->cell_size;
	k->dirty_row = c->dirty_row;
	k->nparts = c->nparts;
	k->nhistograms = t->schema.nhistograms;
	memcpy(parts, t->schema.parts, parts_size);
	return 0;
}

static int open_segment(struct freshet_tree *t, const char *path, const char *producer)
{
	const struct cells *c = &t->cells;
	uint64_t groups = c->max_groups;
	uint64_t rows = (uint64_t)CELLS_EPOCHS * (c->slots + 1);
	const struct seg_section sections[] = {
		{ .type = SEG_CONTROL,
		  .count = 1,
		  .stride = sizeof(struct seg_control),
		  .size = sizeof(struct seg_control) },
		{ .type = SEG_PARTS,
		  .count = c->nparts,
		  .stride = sizeof(struct seg_part),
		  .size = c->nparts * sizeof(struct seg_part) },
		{ .type = SEG_LIVES,
		  .count = c->max_groups,
		  .stride = sizeof(struct seg_life),
		  .size = groups * sizeof(struct seg_life) },
		{ .type = SEG_DIRTY,
		  .count = (uint32_t)rows,
		  .stride = c->dirty_row,
		  .size = rows * c->dirty_row },
		{ .type = SEG_OWNERS,
		  .count = c->fallback_slots,
		  .stride = SEG_OWNER_STRIDE,
		  .size = (uint64_t)c->fallback_slots * SEG_OWNER_STRIDE },
		{ .type = SEG_CELLS,
		  .count = c->slots,
		  .stride = c->cells_stride,
		  .size = c->slots * c->cells_stride },
	};
	const struct writer_options o = {
		.size = sizeof(o),
		.producer = producer,
		.stats = t->schema.stats,
		.nstats = t->schema.nstats,
		.max_groups = c->max_groups,
		.nbanks = CELLS_EPOCHS,
		.row_words = 2 * c->words,
		.histograms = t->schema.histograms,
		.nhistograms = t->schema.nhistograms,
		.sections = sections,
		.nsections = sizeof(sections) / sizeof(sections[0]),
		.prepare = prepare,
		.reserve = reserve,
		.arg = t,
	};
	int r = writer_open(path, &o, &t->writer);

	if (r)
		t->writer = NULL; /* prepare() may have set it */
	return r;
}

static int make_hot(struct freshet_tree *t)
{
	struct freshet_hot *hot = mmap(NULL, HOT_SIZE, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (hot == MAP_FAILED)
		return -ENOMEM;
	t->hot = hot;
	if (madvise(hot, HOT_SIZE, MADV_WIPEONFORK))
		return -errno;
	hot->selector = FIRST_EPOCH;
	hot->tree = t;
	if (!t->rseq)
		return 0; /* all zeroes send the inline functions to the slow ones */
	for (unsigned i = 0; i < t->schema.nstats; i++)
		hot->set[i] = t->schema.set[i].offset | (uint32_t)t->schema.set[i].count << 16;
	for (unsigned i = 0; i < t->schema.nhistograms; i++) {
		const struct freshet_histogram *h = &t->schema.histograms[i];

		hot->histogram[i] = t->schema.histogram[i] | (h->buckets - 1ull) << 16 |
				    (uint64_t)h->precision << 32 | (uint64_t)h->lowest << 40;
	}
	return 0;
}

static int choose_backend(struct freshet_tree *t, enum freshet_backend wanted)
{
	int r = FRESHET_HAVE_RSEQ ? rseq_find(&t->place) : -EOPNOTSUPP;

	if (wanted > FRESHET_FALLBACK)
		return -EINVAL;
	if (wanted == FRESHET_RSEQ && r)
		return r;
	t->rseq = r == 0 && wanted != FRESHET_FALLBACK;
	return 0;
}

/* Should CPUs be plugged in later, their slots have no cells, and updates there use fallback slots. */
static unsigned rseq_slots(const struct freshet_tree *t)
{
	if (!t->rseq)
		return 0;
	return t->place.dense ? cpus_online() : cpus_possible();
}

static int plan(struct freshet_tree *t, const struct freshet_options *o)
{
	struct cells *c = &t->cells;

	c->max_groups = o->max_groups ? o->max_groups : DEFAULT_GROUPS;
	c->rseq_slots = rseq_slots(t);
	c->fallback_slots = o->fallback_slots ? o->fallback_slots :
			    t->rseq	      ? DEFAULT_FALLBACK :
						DEFAULT_ALL_FALLBACK;
	if (c->max_groups > SEG_MAX_GROUPS || c->fallback_slots > MAX_FALLBACK ||
	    c->rseq_slots > CELLS_MAX_SLOTS)
		return -EINVAL;
	c->slots = c->rseq_slots + c->fallback_slots;
	c->words = t->schema.words;
	c->cell_size = t->schema.cell_size;
	c->dirty_row = (uint32_t)seg_dirty_row(c->max_groups);
	c->nparts = t->schema.nparts;
	c->parts = t->schema.parts;
	c->life_stride = sizeof(struct seg_life);
	c->cells_stride = seg_cells_stride(c->max_groups, c->cell_size);
	return c->cells_stride > UINT32_MAX ? -EINVAL : 0; /* handle->place */
}

static int allocate(struct freshet_tree *t)
{
	size_t n = t->cells.max_groups;

	/* Pages that are not used yet cost nothing. */
	t->tags = calloc(n, sizeof(*t->tags));
	t->nodes = calloc(n, sizeof(*t->nodes));
	t->order = calloc(n, sizeof(*t->order));
	t->scratch = calloc(n, sizeof(*t->scratch));
	t->carried = calloc(n + t->cells.fallback_slots, sizeof(*t->carried));
	t->own = calloc(t->cells.words, sizeof(*t->own));
	return t->tags && t->nodes && t->order && t->scratch && t->carried && t->own ? 0 : -ENOMEM;
}

static void release(struct freshet_tree *t)
{
	freshet_detach(t->view);
	if (t->nodes)
		groups_free(t);
	if (t->hot)
		munmap(t->hot, HOT_SIZE);
	schema_free(&t->schema);
	free(t->tags);
	free(t->nodes);
	free(t->order);
	free(t->scratch);
	free(t->carried);
	free(t->own);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* The program's own name, as far as it goes. */
static const char *default_producer(char name[64])
{
	strncpy(name, program_invocation_short_name, 63);
	name[63] = '\0';
	return name;
}

int freshet_open(const char *path, const struct freshet_schema *schema,
		 const struct freshet_options *options, struct freshet_tree **ret)
{
	const struct freshet_options defaults = { .size = sizeof(defaults) };
	const struct freshet_options *o = options ? options : &defaults;
	char name[sizeof(((struct seg_header *)0)->producer)];
	struct freshet_tree *t;
	int r;

	if (!schema_knows(o, o->size, sizeof(*o)) || o->flags)
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	pthread_mutex_init(&t->lock, NULL);
	r = schema_make(schema, &t->schema);
	if (r == 0)
		r = choose_backend(t, o->backend);
	if (r == 0)
		r = plan(t, o);
	if (r == 0)
		r = allocate(t);
	if (r == 0)
		r = make_hot(t);
	fork_hold();
	if (r == 0)
		r = open_segment(t, path, o->producer ? o->producer : default_producer(name));
	if (r == 0)
		r = groups_make_root(t);
	if (r == 0) {
		writer_epoch(t->writer, FIRST_EPOCH);
		publish(t, publish_wait(t));
		/* Without /proc, by its path: nobody else puts a file there, we hold the lock. */
		r = freshet_attach_fd(writer_fd(t->writer), &t->view);
		if (r == -ENOENT && path)
			r = freshet_attach(path, &t->view);
	}
	if (r)
		writer_close(t->writer);
	else
		fork_register(t);
	fork_let();
	if (r) {
		release(t);
		return r;
	}
	*ret = t;
	return 0;
}

void freshet_close(struct freshet_tree *t)
{
	if (!t)
		return;
	fork_hold();
	fork_unregister(t);
	if (tree_is_childs(t))
		writer_disown(t->writer); /* again, where no fork handler ran */
	writer_close(t->writer);
	fork_let();
	release(t);
}

enum freshet_backend freshet_backend(const struct freshet_tree *t)
{
	return t->rseq ? FRESHET_RSEQ : FRESHET_FALLBACK;
}

const struct freshet_view *freshet_view_of(const struct freshet_tree *t)
{
	return t->view;
}

int freshet_place(const char *name, const char *runtime_dir, char *buf, size_t size)
{
	int r;

	if (!name || strchr(name, '/'))
		return -EINVAL;
	if (strlen(name) > NAME_MAX - strlen(".lock")) /* which lies beside it */
		return -ENAMETOOLONG;
	r = where_segment_in(name, runtime_dir, buf, size);
	if (r)
		return r;
	r = where_make_directory(buf);
	return r < 0 ? r : 0;
}
