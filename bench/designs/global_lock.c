/* SPDX-License-Identifier: MIT */
/*
 * global-lock: Linux up to 6.14. One spinlock, with interrupts off, over all CPUs: cgroup_rstat_flush()
 * and cgroup_rstat_flush_hold(), under which cpu.stat is printed; one updated tree for all
 * subsystems, so that whoever wants CPU time flushes memory, too.
 *
 * global-lock-nosync: the same without seqcount in the cells (u64_stats_sync is a no-op on 64-bit
 * machines) and without a fence in updates, which is how the kernel has it.
 *
 * Source: kernel/cgroup/rstat.c of 6.1 to 6.14.
 */
#include "designs/rstat.h"

static int open_tree(const struct design_shape *shape, void *memory, unsigned how, void **ret)
{
	struct rstat *r;
	int err = rstat_open(shape, memory, 1, how, &r);

	if (!err)
		*ret = r;
	return err;
}

static int open_sync(const struct design_shape *shape, void *memory, void **ret)
{
	return open_tree(shape, memory, 0, ret);
}

static int open_nosync(const struct design_shape *shape, void *memory, void **ret)
{
	return open_tree(shape, memory, RSTAT_AS_KERNEL, ret);
}

static void flush_locked(struct rstat *r, uint32_t group)
{
	for (unsigned slot = 0; slot < r->shape.slots; slot++)
		rstat_flush_slot(r, 0, slot, group);
}

static void flush_removed(struct rstat *r, uint32_t group, unsigned tree)
{
	spin_lock(&r->lock[tree]);
	flush_locked(r, group);
	spin_unlock(&r->lock[tree]);
}

static int remove_group(void *tree, uint64_t group)
{
	return rstat_remove(tree, group, flush_removed);
}

static int flush_and_read(struct rstat *r, uint64_t ref, unsigned family, bool flush,
			  uint64_t *values)
{
	uint32_t group;

	spin_lock(&r->lock[0]);
	group = rstat_index(r, ref);
	if (group != RSTAT_NONE && flush)
		flush_locked(r, group);
	if (group != RSTAT_NONE && values)
		rstat_copy_total(r, group, family, values);
	spin_unlock(&r->lock[0]);
	return group == RSTAT_NONE ? -ENOENT : 0;
}

static int flush(void *tree, uint64_t group, unsigned family)
{
	return flush_and_read(tree, group, family, true, NULL);
}

static int read_group(void *tree, uint64_t group, unsigned family, uint64_t *values)
{
	return flush_and_read(tree, group, family, true, values);
}

static int read_total(void *tree, uint64_t group, unsigned family, uint64_t *values)
{
	return flush_and_read(tree, group, family, false, values);
}

static uint64_t longest_hold(void *tree)
{
	struct rstat *r = tree;

	return spin_longest(&r->lock[0]);
}

RSTAT_UPDATES(sync, 0)
RSTAT_UPDATES(nosync, RSTAT_AS_KERNEL)

#define FUNCTIONS                                                                             \
	.size = rstat_size, .close = rstat_close, .root = rstat_root, .create = rstat_create, \
	.remove = remove_group, .enter = rstat_enter, .leave = rstat_leave, .flush = flush,   \
	.read = read_group, .read_total = read_total, .longest_hold = longest_hold

const struct bench_design design_global_lock = {
	.name = "global-lock",
	.backend = "spinlock",
	.models = "one spinlock over all CPUs (Linux up to 6.14)",
	.promises = DESIGN_EXACT | DESIGN_FRESH | DESIGN_WHOLE | DESIGN_MONOTONE,
	.lacks = DESIGN_UNBLOCKED | DESIGN_QUIET,
	.open = open_sync,
	.update = sync_update,
	.update_many = sync_update_many,
	FUNCTIONS
};

const struct bench_design design_global_lock_nosync = {
	.name = "global-lock-nosync",
	.backend = "spinlock",
	.models = "the same with 64-bit cells as they are: no seqcount, no fence",
	.promises = DESIGN_MONOTONE,
	.lacks = DESIGN_WHOLE | DESIGN_UNBLOCKED | DESIGN_QUIET,
	.open = open_nosync,
	.update = nosync_update,
	.update_many = nosync_update_many,
	FUNCTIONS
};
