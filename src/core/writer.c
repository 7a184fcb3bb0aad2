/* SPDX-License-Identifier: MIT */
/*
 * Writing a segment (writer.h): private rows, and on publish the difference into the next bank.
 *
 * Between publications only seg_group of new slots is written to shared memory; everything else
 * waits in private memory until writer_publish() fills a bank.
 *
 * Invariants
 *   - changed[slot] is the last pass that gave the slot's row another value; bank[i].pass the pass
 *     that bank i was last filled for. So bank i lacks exactly the rows with changed > bank[i].pass.
 *     A slot that does not live has changed 0.
 *   - bank[i].topology equals topology when order[] and every row's generation and position in
 *     bank i are those of the private tree.
 *   - Memory is reserved (posix_fallocate) in every bank and in the group table for slots below
 *     `reserved`, before one is given out: a full filesystem is an error here, never a SIGBUS.
 *   - A slot that went in pass P was last shown in P - 1 and is given out again in P + nbanks - 1 at
 *     the earliest: that is when the bank of P - 1 is filled again.
 *
 * Ordering: bank and seg_group stores are relaxed. writer_publish() stores `generation` with
 * release (who sees it sees the pass), and has a release fence behind it (who sees a word of a later
 * filling sees this generation): pairs with bank_load() and bank_whole() in bank.h.
 *
 * Progress: nothing here waits for a reader.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "core/layout.h"
#include "core/segment.h"
#include "core/segment_file.h"
#include "core/words.h"
#include "core/writer.h"

/* Slots whose memory is reserved at once: few while there are few. */
#define CHUNK(n) ((n) <= 256 ? 64u : 256u)
#define NONE  UINT32_MAX
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct slot {
	uint32_t generation; /* of its present or last group */
	uint32_t position;   /* in order[]; NONE: does not live */
	uint32_t path;       /* length of its group's path: below FRESHET_PATH_MAX */
	uint64_t gone;       /* the pass that freed it */
	uint64_t shape;      /* the last topology that listed it */
};

struct writer {
	struct segment_file file;
	struct seg_header *header; /* the mapping */
	char *groups;
	char *banks;
	uint64_t size, groups_offset, banks_offset, bank_stride, rows_offset;
	uint32_t row_stride, words, max_groups, nbanks;
	int (*reserve)(void *arg, uint32_t from, uint32_t to);
	void *arg;

	uint64_t pass; /* the one in preparation */
	uint64_t begin_ns;
	uint64_t topology; /* number of writer_shape() calls */
	uint64_t epoch;
	struct {
		uint64_t pass, topology;
	} bank[SEG_MAX_BANKS];

	struct seg_order *order;
	uint32_t ngroups;
	uint32_t overflowed; /* nodes of the last writer_shape() that found no room */
	uint32_t left_out;   /* groups that it was not even given */
	struct slot *slots;
	uint64_t *changed;
	uint64_t *rows; /* by slot: present, words */
	uint32_t *free; /* ring of max_groups: slots in the order in which they went */
	uint32_t free_first, free_count;
	uint32_t nslots; /* ever given out */
	uint32_t reserved;
};

static char *bank_at(const struct writer *w, unsigned i)
{
	return w->banks + i * w->bank_stride;
}

static struct seg_row *row_at(const struct writer *w, char *bank, uint32_t slot)
{
	return (void *)(bank + w->rows_offset + (size_t)slot * w->row_stride);
}

/* Pages that can be written. A disk's filesystem may need more for that than it has reserved, and one
 * without fallocate(2) may have left a hole: better an error here than a SIGBUS later. */
static int populate(const struct writer *w, uint64_t offset, uint64_t size)
{
	uint64_t from = offset / SEG_PAGE * SEG_PAGE, to = seg_round(offset + size, SEG_PAGE);

	if (madvise((char *)w->header + from, to - from, MADV_POPULATE_WRITE) == 0)
		return 0;
	switch (errno) {
	case EINVAL: /* before Linux 5.14 */
		return 0;
	case EFAULT: /* what would have been a SIGBUS */
		return -ENOSPC;
	default:
		return -errno;
	}
}

/* Memory for [offset, offset + size) of the file, which is mapped. 0 or -errno. */
static int reserve_bytes(const struct writer *w, uint64_t offset, uint64_t size)
{
	int r;

	do /* gives the error; EINTR: a tmpfs begins anew when a signal comes */
		r = posix_fallocate(w->file.fd, (off_t)offset, (off_t)size);
	while (r == EINTR);
	return r ? -r : populate(w, offset, size);
}

/* Memory for `size` bytes a slot, of slots from .. to-1, in an array at offset. */
static int reserve_array(const struct writer *w, uint64_t offset, uint64_t size, uint64_t from,
			 uint64_t to)
{
	return reserve_bytes(w, offset + from * size, (to - from) * size);
}

/* Memory for the slots below n, in whole chunks. What a failed call has got, the next gets for free. */
static int reserve_slots(struct writer *w, uint32_t n)
{
	uint64_t from = w->reserved, to = seg_round(n, CHUNK(n));
	int r;

	if (n <= w->reserved)
		return 0;
	if (to > w->max_groups)
		to = w->max_groups;
	r = reserve_array(w, w->groups_offset, sizeof(struct seg_group), from, to);
	if (r == 0 && w->reserve)
		r = w->reserve(w->arg, (uint32_t)from, (uint32_t)to);
	for (unsigned i = 0; r == 0 && i < w->nbanks; i++) {
		uint64_t bank = w->banks_offset + i * w->bank_stride;

		if (from == 0)
			r = reserve_bytes(w, bank, SEG_ORDER_OFFSET);
		if (r == 0)
			r = reserve_array(w, bank + SEG_ORDER_OFFSET, sizeof(struct seg_order),
					  from, to);
		if (r == 0)
			r = reserve_array(w, bank + w->rows_offset, w->row_stride, from, to);
	}
	if (r == 0)
		w->reserved = (uint32_t)to;
	return r;
}

/* Maps the file, and writes what never changes. */
static int map_file(struct writer *w, const struct writer_options *o, const struct seg_header *h)
{
	const struct seg_section *s = h->section;
	uint64_t fixed = s[2].offset; /* header, stats, strings */
	char *map;
	int fd, r;

	if (h->size > SIZE_MAX / 2)
		return -ENOMEM;
	fd = segment_file_reopen(&w->file);
	if (fd < 0)
		return fd;
	map = mmap(NULL, h->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	r = map == MAP_FAILED ? -errno : 0;
	close(fd);
	if (r)
		return r;
	w->header = (void *)map;
	w->size = h->size;
	r = reserve_bytes(w, 0, fixed);
	if (r == 0 && o->nhistograms)
		r = reserve_bytes(w, s[4].offset, s[4].size);
	if (r)
		return r;
	w->groups_offset = s[2].offset;
	w->groups = map + s[2].offset;
	w->banks_offset = s[3].offset;
	w->banks = map + s[3].offset;
	w->bank_stride = s[3].stride;
	w->rows_offset = seg_rows_offset(h->max_groups);
	w->row_stride = h->row_stride;
	w->words = layout_row_words(o);
	w->reserve = o->reserve;
	w->arg = o->arg;
	w->max_groups = h->max_groups;
	w->nbanks = h->nbanks;
	*w->header = *h;
	layout_schema(o, h, map);
	r = o->prepare ? o->prepare(o->arg, w) : 0;
	return r ? r : reserve_slots(w, 1);
}

static int allocate(struct writer *w)
{
	size_t n = w->max_groups;

	/* Zero pages until they are used: a writer with room for many groups costs what it has. */
	w->order = calloc(n, sizeof(*w->order));
	w->slots = calloc(n, sizeof(*w->slots));
	w->changed = calloc(n, sizeof(*w->changed));
	w->rows = calloc(n, (1 + w->words) * sizeof(*w->rows));
	w->free = calloc(n, sizeof(*w->free));
	return w->order && w->slots && w->changed && w->rows && w->free ? 0 : -ENOMEM;
}

static void release(struct writer *w)
{
	if (w->header)
		munmap(w->header, w->size);
	segment_file_close(&w->file);
	free(w->order);
	free(w->slots);
	free(w->changed);
	free(w->rows);
	free(w->free);
	free(w);
}

int writer_open(const char *path, const struct writer_options *options, struct writer **ret)
{
	struct seg_header header;
	struct writer *w;
	int r;

	if (!layout_good(options))
		return -EINVAL;
	r = layout_header(options, &header);
	if (r)
		return r;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	r = segment_file_create(path, header.size, &w->file);
	if (r) {
		free(w);
		return r;
	}
	r = map_file(w, options, &header);
	if (r == 0)
		r = allocate(w);
	if (r == 0)
		r = segment_file_commit(&w->file);
	if (r) {
		release(w);
		return r;
	}
	w->pass = options->first_pass ? options->first_pass : 1;
	*ret = w;
	return 0;
}

void writer_close(struct writer *w)
{
	if (!w)
		return;
	if (w->file.fd >= 0)
		store_relaxed(&w->header->state, (uint32_t)SEG_CLOSED);
	release(w);
}

void writer_disown(struct writer *w)
{
	segment_file_disown(&w->file);
}

int writer_fd(const struct writer *w)
{
	return w->file.fd;
}

void writer_begin(struct writer *w, uint64_t begin_ns)
{
	w->begin_ns = begin_ns;
}

/* A slot for a new group, or NONE. *full remembers a failed reservation for the rest of a call. */
static uint32_t take_slot(struct writer *w, bool *full)
{
	uint32_t slot = w->free[w->free_first];

#ifdef PLANT_EARLY_REUSE /* for tests/conform, which must notice it */
	if (w->free_count) {
#else
	if (w->free_count && w->pass >= w->slots[slot].gone + w->nbanks - 1) {
#endif
		w->free_first = (w->free_first + 1) % w->max_groups;
		w->free_count--;
		return slot;
	}
	if (*full || w->nslots == w->max_groups)
		return NONE;
	if (reserve_slots(w, w->nslots + 1)) {
		*full = true;
		return NONE;
	}
	return w->nslots++;
}

/* Makes a slot a group's that has no numbers yet. */
static void found_group(struct writer *w, uint32_t slot, uint64_t id, const char *name, size_t len)
{
	struct seg_group *to = (void *)(w->groups + (size_t)slot * sizeof(*to));
	struct slot *s = &w->slots[slot];
	_Alignas(8) char padded[sizeof(to->name)] = { 0 };

	s->generation++;
	memcpy(padded, name, len);
	store_relaxed(&to->id, id);
	store_relaxed(&to->generation, s->generation);
	store_relaxed(&to->name_len, (uint32_t)len);
	words_store(to->name, padded, len / 8 + 1);

	memset(&w->rows[(size_t)slot * (1 + w->words)], 0, 8 * (1 + (size_t)w->words));
	w->changed[slot] = w->pass;
}

int writer_take(struct writer *w, uint64_t id, const char *name, uint32_t *slot,
		uint32_t *generation)
{
	bool full = false;
	uint32_t taken = take_slot(w, &full);

	if (taken == NONE)
		return -ENOSPC;
	found_group(w, taken, id, name, strlen(name));
	w->slots[taken].position = 0; /* until writer_shape(): it lives */
	w->rows[(size_t)taken * (1 + w->words)] = UINT64_MAX; /* it has every column */
	*slot = taken;
	*generation = w->slots[taken].generation;
	return 0;
}

void *writer_section(const struct writer *w, uint32_t type)
{
	for (uint32_t i = 0; i < w->header->nsections; i++)
		if (w->header->section[i].type == type)
			return (char *)w->header + w->header->section[i].offset;
	return NULL;
}

int writer_reserve(const struct writer *w, const void *at, size_t size)
{
	return reserve_bytes(w, (uint64_t)((const char *)at - (const char *)w->header), size);
}

uint64_t *writer_edit(struct writer *w, uint32_t slot)
{
	w->changed[slot] = w->pass;
	return &w->rows[(size_t)slot * (1 + w->words) + 1];
}

uint64_t writer_pass(const struct writer *w)
{
	return w->pass;
}

void writer_epoch(struct writer *w, uint64_t epoch)
{
	w->epoch = epoch;
}

static bool lives(const struct writer *w, uint32_t slot)
{
	return slot < w->nslots && w->slots[slot].position != NONE;
}

/* Adds node i to the tree; false when it finds no room, or its parent found none. */
static bool add_node(struct writer *w, struct writer_node *nodes, uint32_t i, bool *full)
{
	struct writer_node *n = &nodes[i];
	struct seg_order *o = &w->order[w->ngroups];
	uint32_t parent = 0, depth = 0, path = 0, slot = n->slot;

	if (i) {
		if (n->parent >= i || nodes[n->parent].slot == WRITER_NEW)
			return false;
		parent = w->slots[nodes[n->parent].slot].position;
		depth = w->order[parent].depth + 1;
	}
	/* A slot that is not alive, or listed twice, is no slot. */
	if (!lives(w, slot) || w->slots[slot].shape == w->topology) {
		const char *name = i ? n->name : "";
		size_t len = strlen(name);

		if (!seg_name_good(name, len, i == 0))
			return false;
		if (i)
			path = w->slots[nodes[n->parent].slot].path + 1 + (uint32_t)len;
		if (path >= FRESHET_PATH_MAX)
			return false; /* nobody could ask for it */
		slot = take_slot(w, full);
		if (slot == NONE)
			return false;
		found_group(w, slot, n->id, name, len);
		w->slots[slot].path = path;
	}
	n->slot = slot;
	w->slots[slot].shape = w->topology;
	w->slots[slot].position = w->ngroups++;
	*o = (struct seg_order){ .slot = slot, .parent = parent, .size = 1, .depth = depth };
	return true;
}

void writer_shape(struct writer *w, struct writer_node *nodes, uint32_t count, uint32_t *overflowed)
{
	uint32_t left_out = 0;
	bool full = false;

	w->topology++;
	w->ngroups = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (!add_node(w, nodes, i, &full)) {
			nodes[i].slot = WRITER_NEW;
			left_out++;
		}
	}
	for (uint32_t i = w->ngroups; i-- > 1;)
		w->order[w->order[i].parent].size += w->order[i].size;

	for (uint32_t slot = 0; slot < w->nslots; slot++) {
		struct slot *s = &w->slots[slot];

		if (s->position == NONE || s->shape == w->topology)
			continue;
		s->position = NONE;
		s->gone = w->pass;
		w->changed[slot] = 0;
		if (s->generation == WRITER_MAX_GENERATION)
			continue;
		w->free[(w->free_first + w->free_count++) % w->max_groups] = slot;
	}
	w->overflowed = left_out;
	store_relaxed(&w->header->overflowed, (uint64_t)w->overflowed + w->left_out);
	*overflowed = left_out;
}

void writer_left_out(struct writer *w, uint32_t groups)
{
	w->left_out = groups;
	store_relaxed(&w->header->overflowed, (uint64_t)w->overflowed + w->left_out);
}

void writer_row(struct writer *w, uint32_t slot, const uint64_t *values, uint64_t present)
{
	uint64_t *row;

	if (!lives(w, slot))
		return;
	row = &w->rows[(size_t)slot * (1 + w->words)];
	if (row[0] == present && !memcmp(row + 1, values, 8 * (size_t)w->words))
		return;
	row[0] = present;
	memcpy(row + 1, values, 8 * (size_t)w->words);
	w->changed[slot] = w->pass;
}

/* order[], and for every slot whether and where it stands there. */
static void fill_shape(const struct writer *w, char *bank)
{
	struct seg_order *order = (void *)(bank + SEG_ORDER_OFFSET);

	words_store(order, w->order, w->ngroups * sizeof(*order) / 8);
	for (uint32_t i = 0; i < w->nslots; i++) {
		const struct slot *s = &w->slots[i];
		struct seg_row *row = row_at(w, bank, i);
		bool there = s->position != NONE;

		store_relaxed(&row->generation, there ? s->generation : 0);
		store_relaxed(&row->position, there ? s->position : 0);
	}
}

static void fill_bank(struct writer *w, unsigned i, uint64_t end_ns)
{
	char *bank = bank_at(w, i);
	struct seg_bank *b = (void *)bank;
	const size_t width = 1 + w->words;
#ifdef PLANT_STALE_BANK /* for tests/conform, which must notice it */
	const uint64_t since = w->pass - 1;
#else
	const uint64_t since = w->bank[i].pass;
#endif

	store_relaxed(&b->generation, w->pass);
	store_relaxed(&b->begin_ns, w->begin_ns);
	store_relaxed(&b->end_ns, end_ns);
	store_relaxed(&b->ngroups, w->ngroups);
	store_relaxed(&b->nslots, w->nslots);
	store_relaxed(&b->topology, w->topology);
	store_relaxed(&b->epoch, w->epoch);
	if (w->bank[i].topology != w->topology)
		fill_shape(w, bank);
	for (uint32_t slot = 0; slot < w->nslots; slot++)
		if (w->changed[slot] > since)
			words_store(&row_at(w, bank, slot)->present, &w->rows[slot * width], width);
	w->bank[i].pass = w->pass;
	w->bank[i].topology = w->topology;
}

uint64_t writer_publish(struct writer *w, uint64_t end_ns)
{
	unsigned i = w->pass & (w->nbanks - 1);

#ifndef PLANT_EARLY_PUBLISH /* for the race test, which must notice it */
	fill_bank(w, i, end_ns);
#endif
	/* Pairs with bank_load(). */
	store_release(&w->header->generation, w->pass);
	/* Before the next bank is touched; pairs with bank_whole(). */
	fence_release();
#ifdef PLANT_EARLY_PUBLISH
	fill_bank(w, i, end_ns);
#endif
	return w->pass++;
}
