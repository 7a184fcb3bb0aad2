/* SPDX-License-Identifier: MIT */
/* Implements http_tree.h. */
#include "view/http_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "view/guard.h"

/* What is known of the segment once it is attached. */
static void describe(struct tree *t)
{
	t->metrics.prefix = t->prefix;
	t->metrics.label = t->program ? "group" : "cgroup";
	t->metrics.stats = t->json.stats = freshet_stats(t->view, &t->metrics.nstats);
	t->metrics.histograms = t->json.histograms =
		freshet_histograms(t->view, &t->metrics.nhistograms);
	t->json.nstats = t->metrics.nstats;
	t->json.nhistograms = t->metrics.nhistograms;
	t->live = freshet_is_live(t->view);
}

int tree_new(const char *name, const char *prefix, bool program, const struct freshet_view *view,
	     struct tree **ret)
{
	struct tree *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	r = freshet_snapshot_new(&t->snapshot);
	if (r < 0) {
		free(t);
		return r;
	}
	snprintf(t->name, sizeof(t->name), "%s", name);
	if (prefix)
		snprintf(t->prefix, sizeof(t->prefix), "%s", prefix);
	else
		claims_prefix(name, t->prefix, sizeof(t->prefix));
	t->program = program;
	t->view = (struct freshet_view *)(uintptr_t)view;
	describe(t);
	*ret = t;
	return 0;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	body_cache_clear(&t->cache);
	freshet_snapshot_free(t->snapshot);
	claims_free(&t->claims);
	if (t->program)
		freshet_detach(t->view);
	free(t);
}

bool tree_retire(struct tree *t)
{
	for (unsigned i = 0; i < BODY_CACHE_ENTRIES; i++) {
		if (!t->cache.entry[i].body)
			continue;
		freshet_detach(t->view);
		t->program = false;
		freshet_snapshot_free(t->snapshot);
		t->snapshot = NULL;
		return true;
	}
	tree_free(t);
	return false;
}

void tree_view(struct tree *t, const struct freshet_view *view)
{
	t->view = (struct freshet_view *)(uintptr_t)view;
	describe(t);
	/* Its passes may have the numbers of the former segment's. */
	t->spoilt = true;
	t->copied_ns = 0;
}

int tree_groups(const struct tree *t, uint32_t *ret)
{
	struct freshet_group root;
	struct freshet_info info = { 0 };
	int r = freshet_root(t->view, &root);

	if (r == 0)
		r = freshet_info(t->view, root, &info);
	if (r == -EAGAIN || r == -ENOENT) { /* lost a race; or passes have none */
		*ret = (uint32_t)freshet_snapshot_count(t->snapshot);
		return 0;
	}
	*ret = info.descendants + 1;
	return r;
}

/* Copies somebody else's segment. */
static int take_guarded(struct tree *t)
{
	int r;

	guard_begin(t->view);
	r = freshet_producer(t->view);
	if (r >= 0)
		r = r == FRESHET_ALIVE ? freshet_snapshot_take(t->snapshot, t->view) : -ENODEV;
	if (guard_end()) {
		t->spoilt = true;
		return -EIO;
	}
	return r;
}

int tree_last_pass(const struct tree *t, struct freshet_moment *ret)
{
	int r;

	guard_begin(t->view);
	r = freshet_last_pass(t->view, ret);
	return guard_end() ? -EIO : r;
}

/* Copies it if there is anything new. */
static int copy(struct tree *t)
{
	struct freshet_moment last;
	int r;

	if (!t->live) {
		r = tree_last_pass(t, &last);
		if (r < 0 || (t->moment.pass == last.pass && !t->spoilt))
			return r;
	}
	t->copied_ns = clock_ns();
	r = t->program ? take_guarded(t) : freshet_snapshot_take(t->snapshot, t->view);
	t->cost_ns = clock_ns() - t->copied_ns;
	if (r < 0)
		return r;
	t->spoilt = false;
	freshet_snapshot_moment(t->snapshot, &t->moment);
	body_cache_pass(&t->cache, ++t->copies);
	t->body_bytes = 0;
	return 0;
}

/* Whether it is too early to copy it again. */
static bool rests(const struct tree *t)
{
	uint64_t wait = TREE_LIVE_SHARE * t->cost_ns;

	if (!t->copied_ns || (!t->live && t->error == 0))
		return false;
	return clock_ns() < t->copied_ns + (wait > TREE_LIVE_NS ? wait : TREE_LIVE_NS);
}

int tree_catch_up(struct tree *t)
{
	if (!rests(t))
		t->error = copy(t);
	return tree_error(t);
}

int tree_error(const struct tree *t)
{
	bool copied = t->copies && !t->spoilt;

	switch (t->error) {
	case -EIO:
	case -E2BIG:
	case -ENODEV:
		return t->error;
	default: /* it passes */
		return copied ? 0 : t->error;
	}
}

uint64_t tree_age(const struct tree *t)
{
	uint64_t now = clock_ns();

	return now > t->moment.begin_ns ? now - t->moment.begin_ns : 0;
}

int tree_look_up(const struct tree *t, struct rendering *what)
{
	const struct freshet_entry *entries = freshet_snapshot_entries(t->snapshot);
	uint32_t height = 0;
	int error;

	if (strlen(what->path) >= FRESHET_PATH_MAX)
		return -ENOENT;
	error = freshet_snapshot_find(t->snapshot, what->path, &what->at);
	if (error < 0) /* a path that goes astray names nothing, and learns no more than that */
		return error == -EINVAL ? -ENOENT : error;
	if (what->depth == JSON_ALL_DEPTHS)
		return 0;
	for (size_t i = what->at; i < what->at + entries[what->at].size; i++)
		if (entries[i].depth - entries[what->at].depth > height)
			height = entries[i].depth - entries[what->at].depth;
	if (what->depth >= height)
		what->depth = JSON_ALL_DEPTHS;
	return 0;
}

#define KEY_SIZE 64

/* The first character says plain or gzip; the rest, what it is. */
static void make_key(const struct rendering *what, bool gzip, char *key)
{
	snprintf(key, KEY_SIZE, "%c%d/%d/%u/%zu", gzip ? 'g' : 'p', what->metrics, what->format,
		 what->depth, what->at);
}

struct body *tree_cached(struct tree *t, const struct rendering *what, bool gzip,
			 struct body **plain)
{
	char key[KEY_SIZE];

	make_key(what, false, key);
	*plain = body_cache_get(&t->cache, key);
	if (!gzip)
		return *plain;
	make_key(what, true, key);
	return body_cache_get(&t->cache, key);
}

int tree_render(struct tree *t, const struct rendering *what, bool gzip, struct body *plain,
		size_t room, size_t *live, uint64_t *rendered, struct body **ret)
{
	const struct freshet_entry *entries = freshet_snapshot_entries(t->snapshot);
	struct buf text _cleanup_(buf_free) = { .max = room };
	uint64_t begin = clock_ns();
	char key[KEY_SIZE];
	struct body *b;

	if (plain) {
		body_ref(plain);
	} else {
		if (what->metrics)
			metrics_groups(&text, what->format, &t->metrics, entries, what->at);
		else
			json_groups(&text, &t->json, entries, what->at, what->depth);
		if (text.error)
			return text.error;
		*rendered += text.len;
		plain = body_new(&text, live);
		if (!plain)
			return -ENOMEM;
	}
	b = plain;
	if (gzip) {
		b = body_deflate(plain);
		body_unref(plain);
		if (!b)
			return -ENOMEM;
	}
	if (b->len > t->body_bytes)
		t->body_bytes = b->len;
	make_key(what, gzip, key);
	body_cache_put(&t->cache, key, b);
	t->cost_ns += clock_ns() - begin;
	*ret = b;
	return 0;
}
