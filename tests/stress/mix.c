/* SPDX-License-Identifier: MIT */
/*
 * Everything at random: many threads, which come and go, create, remove, update, read, flush and take
 * snapshots of one tree. A model of plain additions goes along. At checkpoints all threads pause, and
 * the tree must be the model: who is there, below whom, and every number.
 */
#include "stress/stress.h"

#define THREADS    64u
#define MAX_GROUPS 200u
#define NODES      4096u /* groups of a whole run, removed ones included */
#define BATCH      40u   /* steps of a thread between two looks for a checkpoint */
#define LIFE       400u  /* steps of a thread */

/* A group that there is or was. Its numbers are of itself alone; changed by any thread. */
static struct model_node {
	struct freshet_handle handle;
	int parent;
	unsigned depth;
	uint32_t alive; /* 1; 2: being removed; 0 */
	uint64_t ops, sets, sum, count, unsure;
	int64_t busy;
	char name[24];
} node[NODES];
static uint32_t nodes; /* those below it can be used */
static pthread_mutex_t nodes_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_rwlock_t pause_lock;
static struct freshet_tree *tree;
static uint32_t stop;
static uint64_t steps, updates, creations, removals, refused;

#define COUNT(what) __atomic_fetch_add(&(what), 1, __ATOMIC_RELAXED)

static void update(struct model_node *m, uint64_t x)
{
	const struct freshet_handle h = m->handle;
	const int64_t one[3] = { 1, 1, 1 };
	volatile unsigned three = 3; /* the way that is not inline */
	int64_t n = (int64_t)(x >> 16 & 15);
	int r;

	switch (x >> 8 & 7) {
	case 0:
		r = freshet_add(&h, BUSY, n - 8);
		if (r == 0)
			__atomic_fetch_add(&m->busy, n - 8, __ATOMIC_RELAXED);
		break;
	case 1:
		r = freshet_observe(&h, 0, (uint64_t)n);
		if (r == 0) {
			__atomic_fetch_add(&m->sum, (uint64_t)n, __ATOMIC_RELAXED);
			COUNT(m->count);
		} else if (r == -ENOENT) { /* the sum may have got it */
			__atomic_fetch_add(&m->unsure, (uint64_t)n, __ATOMIC_RELAXED);
		}
		break;
	case 2:
		r = freshet_add_set(&h, A, three, one);
		if (r == 0)
			COUNT(m->sets);
		break;
	case 3:
	case 4:
		r = freshet_add_set(&h, A, 3, one);
		if (r == 0)
			COUNT(m->sets);
		break;
	default:
		r = freshet_add(&h, OPS, n);
		if (r == 0)
			__atomic_fetch_add(&m->ops, (uint64_t)n, __ATOMIC_RELAXED);
	}
	COUNT(updates);
	/* With so many threads on few CPUs all fallback slots may be held by sleeping ones. */
	if (r == -EAGAIN)
		COUNT(refused);
	else
		EXPECT(r == 0 || (r == -ENOENT && load_relaxed(&m->alive) != 1), "update: %d", r);
}

static void create(int parent, uint64_t x)
{
	struct model_node *m, *above = &node[parent];
	struct freshet_handle h;
	char name[24];
	int r;

	snprintf(name, sizeof(name), "g%llx", (unsigned long long)(x >> 16));
	r = freshet_create(tree, &above->handle, name, x & 0x1000 ? FRESHET_LATER : 0, &h);
	if (above->depth == FRESHET_MAX_DEPTH)
		EXPECT(r == -ELOOP || r == -ENOENT, "create at the ceiling: %d", r);
	else
		EXPECT(r == 0 || r == -ENOSPC || (r == -ENOENT && load_relaxed(&above->alive) != 1),
		       "create: %d", r);
	if (r)
		return;
	COUNT(creations);
	pthread_mutex_lock(&nodes_lock);
	if (nodes == NODES) {
		/* The model is full: nobody has seen the group. */
		EXPECT_EQ(freshet_remove(tree, &h, 0), 0);
	} else {
		m = &node[nodes];
		m->handle = h;
		m->parent = parent;
		m->depth = above->depth + 1;
		m->alive = 1;
		strcpy(m->name, name);
		store_release(&nodes, nodes + 1); /* pairs with step() */
	}
	pthread_mutex_unlock(&nodes_lock);
}

static void remove_group(struct model_node *m)
{
	uint32_t alive = 1;
	int r;

	/* Only one thread removes it, so that it knows what to expect. */
	if (!cas_seq_cst(&m->alive, &alive, 2u))
		return;
	r = freshet_remove(tree, &m->handle, 0);
	EXPECT(r == 0 || r == -ENOTEMPTY, "remove: %d", r);
	store_release(&m->alive, r ? 1u : 0u);
	if (r == 0) {
		COUNT(removals);
		EXPECT_EQ(freshet_add(&m->handle, OPS, 1), -ENOENT);
		EXPECT_EQ(freshet_remove(tree, &m->handle, 0), -ENOENT);
	}
}

static void read_group(const struct model_node *m)
{
	uint64_t low = load_relaxed(&m->ops), v[STATS], present;
	int r = freshet_read(freshet_view_of(tree), m->handle.group, 0, STATS, v, &present, NULL);

	if (r == -ENOENT && load_relaxed(&m->alive) != 1)
		return;
	EXPECT(r == 0, "read: %d", r);
	if (r == 0)
		EXPECT(v[OPS] >= low && v[A] == v[B] && v[A] == v[C],
		       "%llu of %llu; %llu %llu %llu", (unsigned long long)v[OPS],
		       (unsigned long long)low, (unsigned long long)v[A], (unsigned long long)v[B],
		       (unsigned long long)v[C]);
}

static void step(uint64_t x, struct freshet_snapshot *snap)
{
	/* Pairs with create(). Mostly young ones, which are likely to live. */
	uint32_t n = load_acquire(&nodes), back = (uint32_t)(x >> 32) % (2 * MAX_GROUPS);
	uint32_t i = x & 1 || back >= n ? (uint32_t)(x >> 33) % n : n - 1 - back;
	struct model_node *m = &node[i];
	unsigned what = x >> 4 & 0xff;

	COUNT(steps);
	if (what < 8)
		create((int)i, x);
	else if (what < 20 && i)
		remove_group(m);
	else if (what < 40)
		read_group(m);
	else if (what < 44)
		EXPECT_EQ(freshet_flush(tree), 0);
	else if (what < 46)
		EXPECT_EQ(freshet_snapshot_take(snap, freshet_view_of(tree)), 0);
	else
		update(m, x);
}

static void *work(void *arg)
{
	uint64_t random = stress.seed * 2654435761u + COUNT(steps) * 0x9e3779b9u + 1;
	struct freshet_snapshot *snap;

	if (freshet_snapshot_new(&snap))
		abort();
	for (unsigned i = 0; i < LIFE && !load_relaxed(&stop); i += BATCH) {
		pthread_rwlock_rdlock(&pause_lock);
		for (unsigned k = 0; k < BATCH; k++)
			step(stress_random(&random), snap);
		pthread_rwlock_unlock(&pause_lock);
	}
	freshet_snapshot_free(snap);
	return NULL;
}

static void *hire(void *arg)
{
	while (!load_relaxed(&stop)) {
		pthread_t t;

		if (pthread_create(&t, NULL, work, NULL))
			abort();
		pthread_join(t, NULL);
	}
	return NULL;
}

/* Makes room in the model: what removed groups counted, the living ones above them did. All threads
 * are paused. */
static void forget_removed(void)
{
	static int now[NODES];
	uint32_t kept = 0;

	for (uint32_t i = nodes; i-- > 1;) {
		struct model_node *m = &node[i], *up = &node[m->parent];

		if (m->alive)
			continue;
		up->ops += m->ops;
		up->sets += m->sets;
		up->sum += m->sum;
		up->count += m->count;
		up->busy += m->busy;
		up->unsure += m->unsure;
	}
	for (uint32_t i = 0; i < nodes; i++) {
		if (!node[i].alive)
			continue;
		now[i] = (int)kept;
		node[kept] = node[i];
		node[kept].parent = now[node[i].parent];
		kept++;
	}
	memset(&node[kept], 0, (nodes - kept) * sizeof(node[0]));
	nodes = kept;
}

struct sums {
	uint64_t ops, sets, sum, count, busy, unsure;
};

static void check_entry(const struct freshet_entry *e, const struct sums *s, unsigned word)
{
	uint64_t count = 0;

	for (unsigned b = 0; b < 13; b++)
		count += e->values[word + b];
	EXPECT(e->values[OPS] == s->ops && e->values[A] == s->sets && e->values[B] == s->sets &&
		       e->values[C] == s->sets && e->values[BUSY] == s->busy && count == s->count &&
		       e->values[word + 13] - s->sum <= s->unsure,
	       "%s: ops %llu of %llu, set %llu of %llu", e->name,
	       (unsigned long long)e->values[OPS], (unsigned long long)s->ops,
	       (unsigned long long)e->values[A], (unsigned long long)s->sets);
}

/* With all threads paused. */
static void checkpoint(struct freshet_snapshot *snap)
{
	static struct sums sums[NODES];
	const struct freshet_view *v = freshet_view_of(tree);
	size_t count, seen = 0, alive = 0;
	const struct freshet_histogram *h = freshet_histograms(v, &count);
	const struct freshet_entry *e;

	for (uint32_t i = 0; i < nodes; i++)
		sums[i] = (struct sums){ node[i].ops,   node[i].sets,           node[i].sum,
					 node[i].count, (uint64_t)node[i].busy, node[i].unsure };
	for (uint32_t i = nodes; i-- > 1;) {
		struct sums *up = &sums[node[i].parent];

		up->ops += sums[i].ops;
		up->sets += sums[i].sets;
		up->sum += sums[i].sum;
		up->count += sums[i].count;
		up->busy += sums[i].busy;
		up->unsure += sums[i].unsure;
	}
	EXPECT_EQ(freshet_flush(tree), 0); /* shows what was created "later" */
	EXPECT_EQ(freshet_snapshot_take(snap, v), 0);
	e = freshet_snapshot_entries(snap);
	count = freshet_snapshot_count(snap);
	for (uint32_t i = 0; i < nodes; i++) {
		struct freshet_handle found;
		uint64_t values[STATS], present;
		size_t at;

		if (!node[i].alive) {
			EXPECT_EQ(freshet_read(v, node[i].handle.group, OPS, 1, values, &present,
					       NULL),
				  -ENOENT);
			continue;
		}
		alive++;
		for (at = 0; at < count; at++)
			if (e[at].group.slot == node[i].handle.group.slot)
				break;
		if (!EXPECT(at < count && e[at].group.generation == node[i].handle.group.generation,
			    "%s is not there", node[i].name))
			continue;
		seen++;
		check_entry(&e[at], &sums[i], h->word);
		EXPECT(!strcmp(e[at].name, node[i].name), "%s", e[at].name);
		EXPECT_EQ(e[at].depth, node[i].depth);
		EXPECT(stress_read(v, node[i].handle.group, OPS) == sums[i].ops, "%s",
		       node[i].name);
		EXPECT_EQ(freshet_read_total(v, node[i].handle.group, 0, STATS, values, &present,
					     NULL),
			  0);
		EXPECT(values[OPS] == sums[i].ops && values[A] == sums[i].sets, "%s", node[i].name);
		if (i == 0)
			continue;
		EXPECT_EQ(freshet_lookup(tree, &node[node[i].parent].handle, node[i].name, &found),
			  0);
		EXPECT_EQ(
			freshet_create(tree, &node[node[i].parent].handle, node[i].name, 0, &found),
			-EEXIST);
	}
	EXPECT(seen == alive && count == alive, "%zu of %zu, %zu in the snapshot", seen, alive,
	       count);
}

TEST(mix)
{
	uint64_t until = clock_ns() + stress.ns;
	pthread_rwlockattr_t attr;
	pthread_t thread[THREADS];
	struct freshet_snapshot *snap;
	unsigned checkpoints = 0;

	/* So that the checkpoint's turn comes. */
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&pause_lock, &attr);
	REQUIRE(stress_open(NULL, MAX_GROUPS, 0, &tree) == 0);
	REQUIRE(freshet_snapshot_new(&snap) == 0);
	node[0] = (struct model_node){ .handle = freshet_tree_root(tree), .alive = 1 };
	nodes = 1;
	for (unsigned i = 0; i < THREADS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, hire, NULL) == 0);
	while (clock_ns() < until) {
		stress_nap(stress.ns / 8);
		pthread_rwlock_wrlock(&pause_lock);
		checkpoint(snap);
		checkpoints++;
		if (nodes > NODES / 2)
			forget_removed();
		pthread_rwlock_unlock(&pause_lock);
	}
	store_relaxed(&stop, 1);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	checkpoint(snap);
	printf("# %u checkpoints, %llu updates (%llu refused), %llu groups made, %llu removed\n",
	       checkpoints, (unsigned long long)updates, (unsigned long long)refused,
	       (unsigned long long)creations, (unsigned long long)removals);
	EXPECT(updates > 1000 && creations > 10 && removals > 10);
	freshet_snapshot_free(snap);
	freshet_close(tree);
}

STRESS_MAIN(2)
