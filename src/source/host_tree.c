/* SPDX-License-Identifier: MIT */
/*
 * Implements host_tree.h.
 *
 * Cost: a pass over an idle, unchanged tree compares each record with the last one, both lying in a
 * row, and touches nothing else. Growth climbs to the ancestors in one backward sweep, since in
 * pre-order every child stands behind its parent.
 */
#include "source/host_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "source/counters.h"
#include "source/cputime.h"
#include "source/ledger.h"

struct node {
	struct source_group group; /* name: owned; NULL while unknown */
	struct node *next;         /* of the same hash bucket */
	uint64_t serial;
	uint64_t seen;            /* number of the rebuild that found it in the records */
	bool listed;              /* in the lists; false only inside a rebuild */
	struct pass_counters own; /* while the lists are rebuilt; else in last[] */
	struct pass_counters total;
	struct ledger ledger;
	uint32_t round; /* the last in which the ledger was proved */
	struct cputime said;
};

/* One entry per record, in the pass's order. */
struct lists {
	struct node **node;
	uint32_t *parent;
	struct pass_record *last;       /* what the last run wrote */
	struct pass_throttle *throttle; /* the same */
	struct pass_counters *up;       /* growth handed up by children, not yet taken */
	struct pass_counters *kids;     /* with a ledger: sum of the children's totals */
	struct pass_counters *handed;   /* with a ledger: sum of the children's L */
	uint8_t *grown;                 /* up[] is not zero */
	uint8_t *dirty;                 /* numbers are to be computed by finish */
	struct source_group **shown;    /* shorter: living, named ones only */
	uint32_t *shown_at;             /* position in shown[], or UINT32_MAX */
};

struct host_tree {
	struct lists l;
	uint32_t count;
	uint32_t nshown;
	struct node **bucket;
	uint32_t buckets; /* power of two */
	uint64_t rebuilds;
	uint64_t passes;
	uint64_t shape;
	uint64_t known;
	uint32_t unnamed; /* living, but not shown */
	uint32_t unnamed_from;
	uint64_t root_id;
	char *root_name;  /* "", until the root's node owns it */
	uint64_t present; /* bits of the columns that every cgroup has */
	bool has_subtree;
	bool top;
};

int host_tree_new(unsigned has, bool top, uint64_t root_id, struct host_tree **ret)
{
	struct host_tree *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->root_name = strdup("");
	if (!t->root_name) {
		free(t);
		return -ENOMEM;
	}
	t->top = top;
	t->has_subtree = has & PASS_HAS_SUBTREE;
	t->root_id = root_id;
	t->present = 1u << HOST_USAGE | 1u << HOST_USER | 1u << HOST_SYSTEM;
	if (has & PASS_HAS_NICE)
		t->present |= 1u << HOST_NICE;
	if (has & PASS_HAS_FORCE_IDLE)
		t->present |= 1u << HOST_FORCE_IDLE;
	*ret = t;
	return 0;
}

static void node_free(struct node *n)
{
	free((char *)n->group.name);
	free(n);
}

static void lists_free(struct lists *l)
{
	free(l->node);
	free(l->parent);
	free(l->last);
	free(l->throttle);
	free(l->up);
	free(l->kids);
	free(l->handed);
	free(l->grown);
	free(l->dirty);
	free(l->shown);
	free(l->shown_at);
	*l = (struct lists){ 0 };
}

void host_tree_free(struct host_tree *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->count; i++)
		node_free(t->l.node[i]);
	lists_free(&t->l);
	free(t->bucket);
	free(t->root_name);
	free(t);
}

/* ---- finding nodes by serial ---- */

static struct node **bucket_of(const struct host_tree *t, uint64_t serial)
{
	return &t->bucket[serial & (t->buckets - 1)]; /* serials are dense: no hash is needed */
}

static struct node *node_find(const struct host_tree *t, uint64_t serial)
{
	struct node *n;

	if (!t->buckets)
		return NULL;
	for (n = *bucket_of(t, serial); n; n = n->next)
		if (n->serial == serial)
			return n;
	return NULL;
}

static void node_insert(struct host_tree *t, struct node *n)
{
	struct node **b = bucket_of(t, n->serial);

	n->next = *b;
	*b = n;
}

static void node_remove(struct host_tree *t, struct node *n)
{
	struct node **b = bucket_of(t, n->serial);

	while (*b != n)
		b = &(*b)->next;
	*b = n->next;
}

/* ---- the lists, when cgroups appeared, vanished or began to die ---- */

static int lists_alloc(struct lists *l, uint32_t n)
{
	*l = (struct lists){ 0 };
	l->node = calloc(n, sizeof(*l->node));
	l->parent = calloc(n, sizeof(*l->parent));
	l->last = calloc(n, sizeof(*l->last));
	l->throttle = calloc(n, sizeof(*l->throttle));
	l->up = calloc(n, sizeof(*l->up));
	l->kids = calloc(n, sizeof(*l->kids));
	l->handed = calloc(n, sizeof(*l->handed));
	l->grown = calloc(n, sizeof(*l->grown));
	l->dirty = calloc(n, sizeof(*l->dirty));
	l->shown = calloc(n, sizeof(*l->shown));
	l->shown_at = calloc(n, sizeof(*l->shown_at));
	if (l->node && l->parent && l->last && l->throttle && l->up && l->kids && l->handed &&
	    l->grown && l->dirty && l->shown && l->shown_at)
		return 0;
	lists_free(l);
	return -ENOMEM;
}

/* Parents from levels. False: the records are no tree in pre-order below one root. */
static bool find_parents(const struct host_reading *r, uint32_t *parent)
{
	for (uint32_t i = 1; i < r->count; i++) {
		uint32_t level = r->record[i].level, p = i - 1;

		if (level > r->record[p].level + 1 || level <= r->record[0].level)
			return false;
		while (r->record[p].level >= level)
			p = parent[p];
		parent[i] = p;
	}
	return true;
}

static bool same_list(const struct host_tree *t, const struct host_reading *r)
{
	if (r->count != t->count)
		return false;
	for (uint32_t i = 0; i < r->count; i++)
		if (r->record[i].serial != t->l.last[i].serial ||
		    (r->record[i].flags ^ t->l.last[i].flags) & PASS_DYING)
			return false;
	return true;
}

static int grow_buckets(struct host_tree *t, uint32_t count)
{
	uint32_t want = t->buckets ? t->buckets : 64;
	struct node **bucket;

	while (want < count)
		want *= 2;
	if (want == t->buckets)
		return 0;
	bucket = calloc(want, sizeof(*bucket));
	if (!bucket)
		return -ENOMEM;
	free(t->bucket);
	t->bucket = bucket;
	t->buckets = want;
	for (uint32_t i = 0; i < t->count; i++)
		node_insert(t, t->l.node[i]);
	return 0;
}

/* A node for every record, into l->node. On failure the new ones are gone again. */
static int find_nodes(struct host_tree *t, const struct host_reading *r, struct lists *l)
{
	uint64_t round = t->rebuilds + 1;
	uint32_t i;
	int err;

	for (i = 0; i < r->count; i++) {
		struct node *n = node_find(t, r->record[i].serial);

		if (n && n->seen == round) {
			err = -EAGAIN; /* met twice: torn */
			goto fail;
		}
		if (!n) {
			n = calloc(1, sizeof(*n));
			if (!n) {
				err = -ENOMEM;
				goto fail;
			}
			n->serial = r->record[i].serial;
			n->group.slot = UINT32_MAX;
			node_insert(t, n);
		}
		n->seen = round;
		l->node[i] = n;
	}
	t->rebuilds = round;
	return 0;
fail:
	while (i-- > 0) {
		l->node[i]->seen = 0;
		if (!l->node[i]->listed) {
			node_remove(t, l->node[i]);
			node_free(l->node[i]);
		}
	}
	return err;
}

static int rebuild(struct host_tree *t, const struct host_reading *r, bool *changed)
{
	struct lists l, *old = &t->l;
	int err;

	err = lists_alloc(&l, r->count);
	if (err)
		return err;
	if ((t->count && r->record[0].serial != old->last[0].serial) ||
	    !find_parents(r, l.parent)) {
		lists_free(&l);
		return -EAGAIN;
	}
	err = grow_buckets(t, r->count);
	if (!err)
		err = find_nodes(t, r, &l);
	if (err) {
		lists_free(&l);
		return err;
	}
	*changed = r->count != t->count;
	for (uint32_t i = 0; i < t->count; i++) {
		struct node *n = old->node[i];

		if (n->seen != t->rebuilds) {
			*changed = true;
			node_remove(t, n);
			node_free(n);
			continue;
		}
		n->own = old->last[i].own;
	}
	for (uint32_t i = 0; i < r->count; i++) {
		l.last[i] = r->record[i];
		l.last[i].own = l.node[i]->own;
		l.node[i]->listed = true;
		if (r->record[i].flags & PASS_THROTTLE)
			l.throttle[i] = r->throttle[i];
		l.dirty[i] = 1;
	}
	lists_free(old);
	t->l = l;
	t->count = r->count;
	return 0;
}

/* ---- names, and which cgroups are shown ---- */

static void take_names(struct host_tree *t, const struct host_reading *r)
{
	for (uint32_t i = 0; i < r->names; i++) {
		struct node *n = node_find(t, r->name[i].serial);

		if (!n || n->group.name || n == t->l.node[0])
			continue;
		/* No memory: it stays unnamed, and the next pass tries again. */
		n->group.name = strndup(r->name[i].name, PASS_NAME_MAX - 1);
		n->group.id = r->name[i].id;
	}
}

/* Sets shown[], known and unnamed_from. True: some have no name. */
static bool choose_shown(struct host_tree *t)
{
	struct lists *l = &t->l;
	uint64_t known = 0, first_unnamed = UINT64_MAX;

	t->nshown = 0;
	t->unnamed = 0;
	t->unnamed_from = 0;
	for (uint32_t i = 0; i < t->count; i++) {
		struct node *n = l->node[i];
		struct source_group *g = &n->group;
		uint32_t above;

		if (i == 0 && !g->name) {
			g->name = t->root_name;
			t->root_name = NULL;
			g->id = t->root_id;
		}
		if (n->serial > known)
			known = n->serial;
		l->shown_at[i] = UINT32_MAX;
		if (i > 0 && l->last[i].flags & PASS_DYING)
			continue;
		if (!g->name) {
			if (!t->unnamed++)
				t->unnamed_from = i;
			if (n->serial < first_unnamed)
				first_unnamed = n->serial;
			continue;
		}
		above = l->shown_at[l->parent[i]];
		if (i > 0 && above == UINT32_MAX)
			continue; /* below one that has no name yet */
		g->parent = i ? above : 0;
		l->shown_at[i] = t->nshown;
		l->shown[t->nshown++] = g;
	}
	t->known = t->unnamed ? first_unnamed - 1 : known;
	t->shape++;
	return t->unnamed > 0;
}

void host_tree_unnamed(const struct host_tree *t, uint64_t *known, uint32_t *from)
{
	*known = t->known;
	*from = t->unnamed_from;
}

/* ---- numbers ---- */

static bool words_equal(const void *a, const void *b, size_t words)
{
	const uint64_t *x = a, *y = b;
	uint64_t differ = 0;

	for (size_t i = 0; i < words; i++)
		differ |= x[i] ^ y[i];
	return !differ;
}

/* Believes the ledger of entry i if it may: what the removed left is added to up[i]. False: it has
 * not been proved in this round. */
static bool settle(struct host_tree *t, uint32_t i, const struct host_reading *r)
{
	struct lists *l = &t->l;
	struct pass_counters have, should;

#ifdef PLANT_NO_LEDGER /* for the test with a simulated kernel, which must notice it */
	return true;
#endif
	if (!ledger_reading(&l->node[i]->ledger, &r->ledger[i], &l->handed[i], t->has_subtree,
			    r->at_ns))
		return l->node[i]->round == r->round;
	l->node[i]->round = r->round;
	have = l->node[i]->total;
	counters_add(&have, &l->up[i]);
	should = l->node[i]->ledger.left;
	counters_add(&should, &l->last[i].own);
	counters_add(&should, &l->kids[i]);
	counters_growth(&l->up[i], &have, &should);
	return true;
}

/* The backward sweep. True: every group's ledger has been proved in this round. */
static bool climb(struct host_tree *t, const struct host_reading *r)
{
	struct lists *l = &t->l;
	bool settled = true;

	if (r->ledger) {
		memset(l->kids, 0, t->count * sizeof(*l->kids));
		memset(l->handed, 0, t->count * sizeof(*l->handed));
	}
	for (uint32_t i = t->count; i-- > 0;) {
		const struct pass_record *now = &r->record[i];
		struct pass_counters *up = &l->up[i];
		uint32_t p = l->parent[i];

		if (now->flags & PASS_THROTTLE &&
		    !words_equal(&r->throttle[i], &l->throttle[i], sizeof(l->throttle[i]) / 8)) {
			l->throttle[i] = r->throttle[i];
			l->dirty[i] = 1;
		}
		if (!l->grown[i] && !r->ledger && words_equal(now, &l->last[i], sizeof(*now) / 8))
			continue;
		if (now->flags != l->last[i].flags)
			l->dirty[i] = 1;
		l->last[i].flags = now->flags;
		counters_growth(up, &l->last[i].own, &now->own);
		if (r->ledger && !(i == 0 && t->top) && !settle(t, i, r))
			settled = false;
		if (counters_any(up)) {
			counters_add(&l->node[i]->total, up);
			l->dirty[i] = 1;
			if (i) {
				counters_add(&l->up[p], up);
				l->grown[p] = 1;
			}
			*up = (struct pass_counters){ 0 };
		}
		l->grown[i] = 0;
		if (r->ledger && i) {
			counters_add(&l->kids[p], &l->node[i]->total);
			counters_add(&l->handed[p], &r->ledger[i].handed);
		}
	}
	return settled;
}

int host_tree_take(struct host_tree *t, const struct host_reading *r)
{
	bool changed = false;
	int err, bits = 0;

	if (!r->count)
		return -EAGAIN;
	if (!same_list(t, r)) {
		err = rebuild(t, r, &changed);
		if (err)
			return err;
		take_names(t, r);
		bits |= changed ? TREE_CHANGED : 0;
		bits |= choose_shown(t) ? TREE_UNNAMED : 0;
	} else if (r->names) {
		take_names(t, r);
		bits |= choose_shown(t) ? TREE_UNNAMED : 0;
	}
	if (!climb(t, r))
		bits |= TREE_UNSETTLED;
	/* The kernel counts a dying cgroup in all its ancestors, so the root speaks for the tree. */
	bits |= r->record[0].flags & PASS_LOSING ? TREE_LOSING : 0;
	return bits;
}

static void compute(struct host_tree *t, uint32_t i, struct source_group *g)
{
	const struct pass_throttle *th = &t->l.throttle[i];
	struct node *n = t->l.node[i];

	cputime_adjust(&n->said, n->total.exec, n->total.utime, n->total.stime);
	g->present = t->present;
	g->value[HOST_USAGE] = n->total.exec;
	g->value[HOST_USER] = n->said.user;
	g->value[HOST_SYSTEM] = n->said.system;
	g->value[HOST_NICE] = n->total.nice_;
	g->value[HOST_FORCE_IDLE] = n->total.force_idle;
	if (!(t->l.last[i].flags & PASS_THROTTLE)) {
		for (int k = HOST_PERIODS; k <= HOST_BURST; k++)
			g->value[k] = 0;
		return;
	}
	g->present |= 1u << HOST_PERIODS | 1u << HOST_THROTTLED_PERIODS | 1u << HOST_THROTTLED |
		      1u << HOST_BURSTS | 1u << HOST_BURST;
	g->value[HOST_PERIODS] = th->nr_periods;
	g->value[HOST_THROTTLED_PERIODS] = th->nr_throttled;
	g->value[HOST_THROTTLED] = th->throttled;
	g->value[HOST_BURSTS] = th->nr_bursts;
	g->value[HOST_BURST] = th->burst;
}

void host_tree_finish(struct host_tree *t, const uint64_t *root_value, uint64_t root_present,
		      struct source_tree *tree)
{
	struct lists *l = &t->l;

	t->passes++;
	for (uint32_t i = t->top ? 1 : 0; i < t->count; i++) {
		if (!l->dirty[i])
			continue;
		compute(t, i, &l->node[i]->group);
		l->node[i]->group.changed = t->passes;
		l->dirty[i] = 0;
	}
	if (t->top) {
		struct source_group *g = &l->node[0]->group;

		memcpy(g->value, root_value, sizeof(g->value));
		g->present = root_present;
		g->changed = t->passes;
	}
	tree->pass = t->passes;
	tree->shape = t->shape;
	tree->group = l->shown;
	tree->count = t->nshown;
	tree->left_out = t->unnamed;
}
