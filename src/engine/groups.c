/* SPDX-License-Identifier: MIT */
/*
 * Creating, finding and removing groups.
 *
 * The root is slot 0. A slot whose group was removed comes back from the writer when no bank that can
 * still be read shows that group; only then are its life and its cells made anew (cells.h, "Lives").
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "engine/tree.h"

static struct seg_life *life_at(const struct freshet_tree *t, uint32_t slot)
{
	return (struct seg_life *)(void *)t->lives + slot;
}

/* Order of t->names: by parent, then by name. */
static int compare(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return strcmp(x->name, y->name);
}

static struct node *find_child(const struct freshet_tree *t, uint32_t parent, const char *name)
{
	struct node key = { .parent = parent, .name = (char *)(uintptr_t)name };
	struct node **found = tfind(&key, &t->names, compare);

	return found ? *found : NULL;
}

static void fill_handle(const struct freshet_tree *t, uint32_t slot, struct freshet_handle *ret)
{
	uint64_t slots = t->cells.rseq_slots, stats = t->rseq ? t->schema.nstats : 0;

	ret->hot = t->hot;
	ret->cell = t->cell_memory + (size_t)slot * t->cells.cell_size;
	ret->tag = (uint64_t)t->nodes[slot].generation << TAG_SHIFT;
	ret->place = (int64_t)((uint64_t)t->place.area << 32 | t->cells.cells_stride);
	ret->limits = slots | (uint64_t)t->place.field << 16 | stats << 32 |
		      (t->schema.down ? stats : 0) << 48;
	ret->group = (struct freshet_group){ slot, t->nodes[slot].generation };
}

/* Whether it is a living group's. */
static bool lives(const struct freshet_tree *t, const struct freshet_handle *h)
{
	return h->hot == t->hot && h->group.slot < t->cells.max_groups && h->tag &&
	       t->tags[h->group.slot] == h->tag;
}

/* Makes the slot's shared part the new group's. */
static void begin_life(struct freshet_tree *t, uint32_t slot)
{
	const struct node *node = &t->nodes[slot];
	struct seg_life *life = life_at(t, slot);

	store_relaxed(&life->generation, 0);
	/* Pairs with fresh_difference(): who sees what follows sees that the generation is gone. */
	fence_release();
	/* The memory of a slot's first group is new. */
	for (uint32_t s = 0; s < t->cells.slots && node->generation > 1; s++) {
		uint64_t *cell = (uint64_t *)(uintptr_t)cells_cell(&t->cells, s, slot);

		for (uint32_t i = 0; i < t->cells.cell_size / 8; i++)
			store_relaxed(&cell[i], 0);
	}
	store_relaxed(&life->depth, node->depth);
	store_relaxed(&life->parent, 0);
	store_relaxed(&life->born, writer_pass(t->writer));
	for (uint32_t n = slot; n != NO_NODE; n = t->nodes[n].parent)
		store_relaxed(&life->ancestor[t->nodes[n].depth], n);
	if (node->parent != NO_NODE)
		/* Before its child can be updated: a reader that ought to see such an update
		 * looks below. */
		store_relaxed(&life_at(t, node->parent)->parent, 1);
	if (slot >= t->control->used_groups)
		/* Pairs with fresh_groups(). */
		store_release(&t->control->used_groups, slot + 1);
	/* Pairs with fresh_life(). */
	store_release(&life->generation, node->generation);
	/* Pairs with the loads in update.c. */
	store_seq_cst(&t->tags[slot], (uint64_t)node->generation << TAG_SHIFT);
}

/* Puts a node at the end of its parent's children. */
static void link_node(struct freshet_tree *t, uint32_t slot)
{
	struct node *node = &t->nodes[slot], *parent = &t->nodes[node->parent];

	node->previous = parent->last_child;
	if (node->previous == NO_NODE)
		parent->first_child = slot;
	else
		t->nodes[node->previous].next = slot;
	parent->last_child = slot;
	parent->children++;
}

static void unlink_node(struct freshet_tree *t, uint32_t slot)
{
	struct node *node = &t->nodes[slot], *parent = &t->nodes[node->parent];

	if (node->previous == NO_NODE)
		parent->first_child = node->next;
	else
		t->nodes[node->previous].next = node->next;
	if (node->next == NO_NODE)
		parent->last_child = node->previous;
	else
		t->nodes[node->next].previous = node->previous;
}

/* A slot with its memory. Those of removed groups may need some more passes to be free. */
static int take_slot(struct freshet_tree *t, const char *name, uint32_t *slot, uint32_t *generation)
{
	int r = writer_take(t->writer, t->next_id, name, slot, generation);

	for (unsigned i = 0; r == -ENOSPC && i < CELLS_EPOCHS; i++) {
		if (t->ndead)
			flush_locked(t);
		else
			publish(t, publish_wait(t));
		r = writer_take(t->writer, t->next_id, name, slot, generation);
	}
	if (r == 0)
		t->next_id++;
	return r;
}

static int make_node(struct freshet_tree *t, uint32_t parent, const char *name, uint32_t *ret)
{
	char *copy = strdup(name);
	uint32_t slot, generation;
	struct node *node;
	int r;

	if (!copy)
		return -ENOMEM;
	r = take_slot(t, name, &slot, &generation);
	if (r) {
		free(copy);
		return r;
	}
	node = &t->nodes[slot];
	*node = (struct node){
		.id = t->next_id - 1,
		.name = copy,
		.generation = generation,
		.parent = parent,
		.first_child = NO_NODE,
		.last_child = NO_NODE,
		.next = NO_NODE,
		.previous = NO_NODE,
		.depth = parent == NO_NODE ? 0 : (uint16_t)(t->nodes[parent].depth + 1),
	};
	if (parent != NO_NODE) {
		if (!tsearch(node, &t->names, compare)) {
			/* The next publication does not list the slot, and so gives it back. */
			free(copy);
			node->name = NULL;
			return -ENOMEM;
		}
		link_node(t, slot);
	}
	begin_life(t, slot);
	t->shape_changed = true;
	*ret = slot;
	return 0;
}

int groups_make_root(struct freshet_tree *t)
{
	uint32_t slot;

	t->next_id = 1;
	return make_node(t, NO_NODE, "", &slot);
}

static void free_nothing(void *node)
{
}

void groups_free(struct freshet_tree *t)
{
	tdestroy(t->names, free_nothing);
	for (uint32_t i = 0; i < t->cells.max_groups; i++)
		free(t->nodes[i].name);
}

struct freshet_handle freshet_tree_root(const struct freshet_tree *t)
{
	struct freshet_handle root;

	fill_handle(t, 0, &root);
	return root;
}

static int check_name(const char *name)
{
	size_t len = name ? strlen(name) : 0;

	if (len == 0 || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EINVAL;
	return len > FRESHET_NAME_MAX ? -ENAMETOOLONG : 0;
}

/* Whether parent can have a child called name now. 0 or -errno. */
static int may_create(const struct freshet_tree *t, const struct freshet_handle *parent,
		      const char *name)
{
	if (!lives(t, parent))
		return -ENOENT;
	if (find_child(t, parent->group.slot, name))
		return -EEXIST;
	return t->nodes[parent->group.slot].depth == FRESHET_MAX_DEPTH ? -ELOOP : 0;
}

/* Buries a removed child of that name, if it can. */
static void free_name(struct freshet_tree *t, const struct freshet_handle *parent,
		      const char *name)
{
	const struct node *child = lives(t, parent) ? find_child(t, parent->group.slot, name) : NULL;

	if (child && child->dead) {
		publish_turn(t);
		flush_locked(t);
	}
}

int freshet_create(struct freshet_tree *t, const struct freshet_handle *parent, const char *name,
		   unsigned flags, struct freshet_handle *ret)
{
	uint64_t began = 0;
	uint32_t slot;
	int r;

	if (flags & ~FRESHET_LATER)
		return -EINVAL;
	if (tree_is_childs(t))
		return -ECHILD;
	r = check_name(name);
	if (r)
		return r;
	pthread_mutex_lock(&t->lock);
	free_name(t, parent, name);
	r = may_create(t, parent, name);
	if (r == 0 && !(flags & FRESHET_LATER)) {
		publish_turn(t);
		began = publish_wait(t);
		r = may_create(t, parent, name);
	}
	if (r == 0)
		r = make_node(t, parent->group.slot, name, &slot);
	if (r == 0) {
		fill_handle(t, slot, ret);
		if (!(flags & FRESHET_LATER))
			publish(t, began);
	}
	pthread_mutex_unlock(&t->lock);
	return r;
}

int freshet_lookup(struct freshet_tree *t, const struct freshet_handle *parent, const char *name,
		   struct freshet_handle *ret)
{
	const struct node *node;
	int r = -ENOENT;

	if (tree_is_childs(t))
		return -ECHILD;
	if (!name)
		return -EINVAL;
	pthread_mutex_lock(&t->lock);
	if (lives(t, parent)) {
		node = find_child(t, parent->group.slot, name);
		if (node && !node->dead) {
			fill_handle(t, (uint32_t)(node - t->nodes), ret);
			r = 0;
		}
	}
	pthread_mutex_unlock(&t->lock);
	return r;
}

/* Lets go of one that was removed, if nothing can still be updating it. */
static bool bury(struct freshet_tree *t, uint32_t slot, uint64_t epoch)
{
	struct node *node = &t->nodes[slot];

	if (!node->name || !node->dead || node->first_child != NO_NODE || flush_is_carried(t, slot))
		return false;
	/* The flip was before the removal (that flush failed): stamps of the present epoch still
	 * match. */
	if (node->died > epoch)
		return false;
	/* Its last update can have its bit in the new epoch: on a fallback slot, the tag is loaded
	 * before the selector. */
	if (!flush_group(t, slot))
		return false;
	tdelete(node, &t->names, compare);
	unlink_node(t, slot);
	free(node->name);
	node->name = NULL;
	t->ndead--;
	t->shape_changed = true;
	return true;
}

void groups_bury(struct freshet_tree *t, uint64_t epoch)
{
	for (uint32_t slot = 1; t->ndead && slot < t->control->used_groups; slot++)
		/* Its parent may have waited for it. */
		for (uint32_t n = slot; bury(t, n, epoch);)
			n = t->nodes[n].parent;
}

static int may_remove(const struct freshet_tree *t, const struct freshet_handle *group)
{
	if (!lives(t, group))
		return -ENOENT;
	if (t->nodes[group->group.slot].parent == NO_NODE)
		return -EBUSY;
	return t->nodes[group->group.slot].children ? -ENOTEMPTY : 0;
}

/* Updates that do not see it, the flush waits out, or carries. */
static void mark_dead(struct freshet_tree *t, struct node *node)
{
	/* Pairs with the loads in update.c. */
	store_seq_cst(&t->tags[node - t->nodes], 0);
	node->dead = true;
	node->died = t->hot->selector;
	t->nodes[node->parent].children--;
	t->ndead++;
}

int freshet_remove(struct freshet_tree *t, const struct freshet_handle *group, unsigned flags)
{
	int r;

	if (flags & ~FRESHET_LATER)
		return -EINVAL;
	if (tree_is_childs(t))
		return -ECHILD;
	pthread_mutex_lock(&t->lock);
	r = may_remove(t, group);
	if (r == 0 && !(flags & FRESHET_LATER)) {
		publish_turn(t);
		r = may_remove(t, group);
	}
	if (r == 0) {
		bool again = t->flipped; /* see bury() */

		mark_dead(t, &t->nodes[group->group.slot]);
		/* Should the flush fail, a later one buries the group. */
		if (!(flags & FRESHET_LATER) && flush_locked(t) == 0 && again)
			flush_locked(t);
	}
	pthread_mutex_unlock(&t->lock);
	return r;
}
