/* SPDX-License-Identifier: MIT */
/*
 * The designs of bench/designs for tests/conform: ops is their first family of counters, set the
 * second; they have no gauges, histograms or snapshots. A family has as many counters as it may
 * have: the longer it takes to change or read it, the likelier it is seen torn.
 *
 * Their memory is mapped before the updating process is made, so that both have it at one address:
 * their readers flush and lock, which the reading process does as well.
 *
 * Signals are masked in every function, as interrupts are in the kernel's: none may be called by
 * a handler that interrupted another one. Only the stop of the whole process can come in the middle.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomics.h"
#include "conform/design.h"
#include "designs/all.h"

enum { OPS, SET };

_Static_assert(DESIGN_EXACT == 1 << EXACT && DESIGN_FRESH == 1 << FRESH &&
		       DESIGN_WHOLE == 1 << WHOLE && DESIGN_MONOTONE == 1 << MONOTONE &&
		       DESIGN_UNBLOCKED == 1 << UNBLOCKED && DESIGN_QUIET == 1 << QUIET,
	       "promises in the same order");

#define SLOTS 16u        /* more than lock-break-8 holds the lock for */
#define COLD  (1u << 19) /* words: more than a CPU's own cache */
#define AHEAD 8u
#define WROTE 77 /* an exit status */

static const struct bench_design *rival;
static struct design_shape shape = { .slots = SLOTS, .set_size = DESIGN_MAX_SET };

struct shared {
	void *tree; /* as the process that updates has opened it */
	uint64_t root;
	uint64_t cold[COLD];
};
/* Memory of both processes: what they must know, and the design's. */
static struct shared *shared;
static void *memory;

static void *map(size_t size, int how)
{
	void *m = mmap(NULL, size, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS, -1, 0);

	return m == MAP_FAILED ? NULL : m;
}

static int prepare(unsigned groups)
{
	shape.groups = groups;
	shared = map(sizeof(*shared), MAP_SHARED);
	memory = map(rival->size(&shape), MAP_SHARED);
	return shared && memory ? 0 : -ENOMEM;
}

static sigset_t mask(void)
{
	sigset_t all, old;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	return old;
}

static int unmask(const sigset_t *old, int result)
{
	pthread_sigmask(SIG_SETMASK, old, NULL);
	return result;
}

static int open_tree(const char *path, unsigned groups, void **tree)
{
	int r = rival->open(&shape, memory, tree);

	if (r == 0) {
		shared->tree = *tree;
		shared->root = rival->root(*tree);
	}
	return r;
}

static void close_tree(void *tree)
{
	rival->close(tree);
}

static struct group root(void *tree)
{
	return (struct group){ .ref = shared->root };
}

static int create(void *tree, const struct group *parent, const char *name, int later,
		  struct group *ret)
{
	sigset_t old = mask();

	memset(ret, 0, sizeof(*ret));
	return unmask(&old, rival->create(tree, parent->ref, &ret->ref));
}

static int remove_group(void *tree, const struct group *g)
{
	sigset_t old = mask();

	return unmask(&old, rival->remove(tree, g->ref));
}

static int flush(void *tree)
{
	sigset_t old = mask();
	int r = rival->flush(tree, shared->root, OPS);

	return unmask(&old, r ? r : rival->flush(tree, shared->root, SET));
}

/* Stores to lines that are likely not in the cache. Until they are there, later stores wait; later
 * loads do not: if an update needs a fence between the two, now is when it misses it. */
static void hold_stores_back(void)
{
	static _Thread_local uint64_t random = 1;

	for (unsigned i = 0; i < AHEAD; i++) {
		random = random * 6364136223846793005 + 1442695040888963407;
		store_relaxed(&shared->cold[random >> 32 & (COLD - 1)], random);
	}
}

/* On one slot after the other. Adds nothing first: so the group is on the slot's updated tree, and
 * a flush may take it off just when the update that counts looks whether it is. */
static int update(uint64_t ref, unsigned family, uint64_t n)
{
	static _Thread_local unsigned turn;
	sigset_t old = mask();
	unsigned slot = rival->enter(shared->tree, turn++ % SLOTS);
	int r = rival->update(shared->tree, slot, ref, family, 0);

	hold_stores_back();
	if (r == 0)
		r = rival->update(shared->tree, slot, ref, family, n);
	rival->leave(shared->tree, slot);
	return unmask(&old, r);
}

static int add_ops(const struct group *g, uint64_t n)
{
	return update(g->ref, OPS, n);
}

static int add_set(const struct group *g)
{
	return update(g->ref, SET, 1);
}

static int attach(void *tree, const char *path, void **reader)
{
	*reader = shared->tree;
	return 0;
}

static void detach(void *reader)
{
}

static uint64_t apart(const uint64_t *v)
{
	uint64_t bits = 0;

	for (unsigned i = 1; i < DESIGN_MAX_SET; i++)
		bits |= v[i] ^ v[0];
	return bits;
}

static int read_both(void *tree, uint64_t ref, struct numbers *ret,
		     int (*read)(void *, uint64_t, unsigned, uint64_t *))
{
	uint64_t ops[DESIGN_MAX_SET], set[DESIGN_MAX_SET];
	sigset_t old = mask();
	int r = read(tree, ref, OPS, ops);

	if (r == 0)
		r = read(tree, ref, SET, set);
	if (r == 0)
		*ret = (struct numbers){ .ops = ops[0],
					 .set = { set[0], set[1], set[DESIGN_MAX_SET - 1] },
					 .apart = apart(ops) | apart(set) };
	return unmask(&old, r);
}

static int read_group(void *reader, uint64_t ref, struct numbers *ret)
{
	return read_both(reader, ref, ret, rival->read);
}

static int read_flushed(void *reader, uint64_t ref, struct numbers *ret)
{
	return read_both(reader, ref, ret, rival->read_total);
}

static void wrote(int signal)
{
	_exit(WROTE);
}

/* In a process of its own that has a copy of the memory: updates, protects it and reads. */
static void read_protected(void *tree)
{
	const size_t size = rival->size(&shape);
	void *copy = map(size, MAP_PRIVATE);
	struct numbers n;

	signal(SIGSEGV, wrote);
	if (!copy)
		_exit(1);
	memcpy(copy, memory, size);
	if (mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, memory) != memory ||
	    update(shared->root, OPS, 1) || mprotect(memory, size, PROT_READ))
		_exit(1);
	_exit(read_group(tree, shared->root, &n) != 0);
}

static int read_writes(void *reader)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		read_protected(reader);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -errno;
	if (WIFEXITED(status) && WEXITSTATUS(status) == WROTE)
		return 1;
	return status ? -EIO : 0;
}

const struct design *rival_find(const char *name)
{
	static struct design d = {
		.prepare = prepare,
		.open = open_tree,
		.close = close_tree,
		.root = root,
		.create = create,
		.remove = remove_group,
		.flush = flush,
		.add_ops = add_ops,
		.add_set = add_set,
		.attach = attach,
		.detach = detach,
		.read = read_group,
		.read_flushed = read_flushed,
		.read_writes = read_writes,
	};

	rival = bench_design_find(name);
	if (!rival || !rival->size) /* ours, which has memory of its own, comes without this */
		return NULL;
	d.name = rival->name;
	d.promises = rival->promises;
	/* With stores held back a fence that is missing shows, too, which elsewhere takes luck. */
	d.lacks = rival->lacks | (~rival->promises & DESIGN_FRESH);
	return &d;
}
