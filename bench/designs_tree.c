/* SPDX-License-Identifier: MIT */
/* Implements designs_tree.h. */
#include "designs_tree.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "procs.h"

#define MAX_TEAMS 10u

static int make_groups(struct designs_tree *t, unsigned teams)
{
	const struct bench_design *d = t->design;
	uint64_t team[MAX_TEAMS];
	int err = 0;

	t->root = d->root(t->tree);
	for (unsigned i = 0; i < teams && !err; i++)
		err = d->create(t->tree, t->root, &team[i]);
	for (unsigned i = 0; i < t->owners && !err; i++)
		err = d->create(t->tree, team[i % teams], &t->owner[i]);
	for (unsigned i = 0; i < t->owners && !err; i++)
		err = d->create(t->tree, t->owner[i], &t->leaf[i]);
	return err;
}

int designs_tree_open(struct designs_tree *t, const struct bench_design *design, unsigned owners,
		      unsigned slots, unsigned set_size)
{
	const unsigned teams = owners / 2 < MAX_TEAMS ? owners / 2 : MAX_TEAMS;
	int err;

	memset(t, 0, sizeof(*t));
	t->design = design;
	t->owners = owners;
	t->shape.groups = 1 + teams + 2 * owners;
	t->shape.slots = slots;
	t->shape.set_size = set_size;
	if (design->size) {
		t->bytes = design->size(&t->shape);
		t->memory = mmap(NULL, t->bytes, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (t->memory == MAP_FAILED)
			return -errno;
	}
	err = design->open(&t->shape, t->memory, &t->tree);
	if (!err) {
		err = make_groups(t, teams);
		if (err)
			design->close(t->tree);
	}
	if (err && t->bytes)
		munmap(t->memory, t->bytes);
	return err;
}

void designs_tree_close(struct designs_tree *t)
{
	t->design->close(t->tree);
	if (t->bytes)
		munmap(t->memory, t->bytes);
}

int designs_tree_update(struct designs_tree *t, unsigned slot, unsigned owner, unsigned family)
{
	int err;

	do
		err = t->design->update(t->tree, slot, t->leaf[owner], family, 1);
	while (err == -EAGAIN);
	return err;
}

struct toucher_of {
	struct designs_tree *tree;
	unsigned first; /* of every second slot */
	int error;
};

static void *touch_half(void *arg)
{
	struct toucher_of *me = arg;
	struct designs_tree *t = me->tree;
	const struct bench_design *d = t->design;

	for (unsigned wanted = me->first; wanted < t->shape.slots && !me->error; wanted += 2) {
		unsigned slot = d->enter(t->tree, wanted);

		for (unsigned i = 0; i < t->owners && !me->error; i++)
			for (unsigned family = 0; family < DESIGN_FAMILIES && !me->error; family++)
				me->error = designs_tree_update(t, slot, i, family);
		d->leave(t->tree, slot);
	}
	return NULL;
}

int designs_tree_touch(struct designs_tree *t)
{
	struct toucher_of here = { .tree = t }, beside = { .tree = t, .first = 1 };
	pthread_t thread;
	int err = designs_thread_beside(&thread, 0, touch_half, &beside);

	if (err)
		return err;
	touch_half(&here);
	pthread_join(thread, NULL);
	return here.error ? here.error : beside.error;
}

int designs_thread_beside(pthread_t *ret, unsigned index, void *(*run)(void *), void *arg)
{
	/* Round robin over the CPUs but for the first one, the last one first. */
	const unsigned others = procs_cpus() - 1;

	return procs_thread(ret, procs_nth_cpu(others ? others - index % others : 0), run, arg);
}
