/* SPDX-License-Identifier: MIT */
/* The trees that the HTTP server shows: the host's, and those of programs, which come and go. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "view/guard.h"
#include "view/http_request.h"

int http_begin(struct http *h)
{
	static const char *const more[] = { "freshet_segment_age_seconds" };
	struct buf text _cleanup_(buf_free) = BUF_INIT;
	int r = tree_new(h->options.name, h->options.prefix, false, h->options.view, &h->host);

	if (r < 0)
		return r;
	/* Whatever is called so later, these names are taken. */
	http_age_metric(h, &text, METRICS_OPENMETRICS);
	http_own_metrics(h, &text, METRICS_OPENMETRICS);
	r = text.error ? text.error : claims_add_text(&h->own, text.data, text.len);
	for (size_t i = 0; i < sizeof(more) / sizeof(*more) && r == 0; i++)
		r = claims_add(&h->own, more[i], METRICS_GAUGE);
	return r;
}

void http_end(struct http *h)
{
	struct tree *t;

	http_reap(h);
	while ((t = h->programs)) {
		h->programs = t->next;
		tree_free(t);
	}
	tree_free(h->host);
	claims_free(&h->own);
}

struct tree *http_tree(struct http *h, const char *name)
{
	if (!name || strcmp(name, h->host->name) == 0)
		return h->host;
	for (struct tree *t = h->programs; t; t = t->next)
		if (strcmp(name, t->name) == 0)
			return t;
	return NULL;
}

/* Bytes that one more copy may take beside those of the programs, without that of `but`. */
static size_t room(const struct http *h, const struct tree *but)
{
	size_t used = 0, left;

	for (const struct tree *t = h->programs; t; t = t->next)
		used += t == but ? 0 : freshet_snapshot_memory(t->snapshot);
	left = used < TREES_BYTES_MAX ? TREES_BYTES_MAX - used : 1;
	return left < TREE_BYTES_MAX ? left : TREE_BYTES_MAX;
}

size_t http_text_room(struct http *h, const struct tree *t, const struct bodies *answer)
{
	size_t cached = 0, used = 0;

	if (!t->program)
		return 0;
	for (const struct tree *p = h->programs; p; p = p->next)
		cached += body_cache_bytes(&p->cache);
	/* Whoever asks for one part after the other shall not fill our memory. */
	for (struct tree *p = h->programs; p && cached > TREE_BYTES_MAX / 2; p = p->next)
		body_cache_clear(&p->cache);
	for (unsigned i = 1; i < answer->count; i++) /* the first one is the host's */
		used += answer->body[i]->len;
	return used < TREE_BYTES_MAX ? TREE_BYTES_MAX - used : 1;
}

int http_catch_up(struct http *h, struct tree *t)
{
	if (t->program)
		freshet_snapshot_limit(t->snapshot, room(h, t), TREE_COPY_NS);
	return tree_catch_up(t);
}

/* Names those that are left out. */
static void list_without(const struct tree *t, char *buf, size_t size)
{
	struct buf b _cleanup_(buf_free) = BUF_INIT;

	for (size_t i = 0; i < t->metrics.nstats; i++)
		if (t->metrics.without >> i & 1)
			buf_printf(&b, "%s%s_%s", b.len ? ", " : "", t->metrics.stats[i].family,
				   t->metrics.stats[i].name);
	for (size_t i = 0; i < t->metrics.nhistograms; i++)
		if (t->metrics.without_histograms >> i & 1)
			buf_printf(&b, "%s%s_%s", b.len ? ", " : "",
				   t->metrics.histograms[i].family, t->metrics.histograms[i].name);
	snprintf(buf, size, "%.*s", (int)b.len, b.len ? b.data : "");
}

/* Puts the new tree behind the others, if there is room and its names are free. */
static int append(struct http *h, struct tree *new)
{
	const struct claims *others[HTTP_PROGRAMS_MAX + 1] = { &h->own };
	struct tree **at = &h->programs;
	size_t n = 1;
	int r;

	if (http_tree(h, new->name))
		return HTTP_PREFIX_TAKEN;
	if (freshet_snapshot_memory(new->snapshot) > room(h, NULL))
		return -E2BIG; /* the others have grown meanwhile */
	for (; *at; at = &(*at)->next) {
		if (strcmp((*at)->prefix, new->prefix) == 0)
			return HTTP_PREFIX_TAKEN;
		if (n > HTTP_PROGRAMS_MAX - 1)
			return HTTP_FULL;
		others[n++] = &(*at)->claims;
	}
	r = claims_schema(&new->claims, others, n, &new->metrics);
	if (r == 0)
		*at = new;
	return r;
}

int http_program_add(struct http *h, const char *name, struct freshet_view *view, char *without,
		     size_t without_size)
{
	struct tree *t;
	int r = tree_new(name, NULL, true, view, &t);

	if (r < 0)
		return r;
	/* What is no tree is found out now. Nobody else knows of it yet. */
	pthread_mutex_lock(&h->view_lock);
	freshet_snapshot_limit(t->snapshot, room(h, NULL), TREE_COPY_NS);
	pthread_mutex_unlock(&h->view_lock);
	r = tree_catch_up(t);
	if (r == 0) {
		pthread_mutex_lock(&h->view_lock);
		r = append(h, t);
		if (r == 0)
			list_without(t, without, without_size);
		pthread_mutex_unlock(&h->view_lock);
	}
	if (r < 0) {
		t->program = false; /* the view stays the caller's */
		tree_free(t);
	}
	return r;
}

void http_program_drop(struct http *h, const char *name)
{
	struct tree *gone;

	pthread_mutex_lock(&h->view_lock);
	for (struct tree **at = &h->programs; (gone = *at); at = &gone->next) {
		if (strcmp(gone->name, name) != 0)
			continue;
		*at = gone->next;
		if (tree_retire(gone)) {
			gone->next = h->retired;
			h->retired = gone;
		}
		break;
	}
	pthread_mutex_unlock(&h->view_lock);
}

void http_reap(struct http *h)
{
	struct tree *t;

	while ((t = h->retired)) {
		h->retired = t->next;
		tree_free(t);
	}
}

int http_program_error(struct http *h, const char *name)
{
	struct tree *t;
	int error;

	/* An answer may take some ms, which the caller has passes to make in: the next time, then. */
	if (pthread_mutex_trylock(&h->view_lock))
		return 0;
	t = http_tree(h, name);
	error = t ? tree_error(t) : 0;
	pthread_mutex_unlock(&h->view_lock);
	return error;
}

/* What is said of a segment. False: its producer has ended, or it cannot be read: it is about to be
 * dropped. */
static bool inquire(const struct tree *t, struct freshet_producer_info *info, uint32_t *groups)
{
	bool good;

	guard_begin(t->view);
	good = !t->program || freshet_producer(t->view) == FRESHET_ALIVE;
	good = good && freshet_producer_info(t->view, info) == 0 && tree_groups(t, groups) == 0;
	return !guard_end() && good;
}

void http_segments_json(struct http *h, struct buf *out)
{
	struct tree *first = h->host;

	buf_str(out, "{\"segments\":[");
	for (struct tree *t = first; t; t = t == first ? h->programs : t->next) {
		struct freshet_producer_info info = { 0 };
		uint32_t groups = 0;

		if (!inquire(t, &info, &groups) && t->program)
			continue;
		buf_str(out, t == first ? "\n{\"name\":" : ",\n{\"name\":");
		json_string(out, t->name);
		buf_str(out, ",\"producer\":");
		json_string(out, info.name);
		buf_printf(out,
			   ",\"pid\":%d,\"live\":%s,\"metrics\":\"%s\",\"groups\":%u,"
			   "\"max_groups\":%u,\"left_out\":%llu}",
			   (int)info.pid, t->live ? "true" : "false", t->prefix, groups,
			   info.max_groups, (unsigned long long)info.overflowed);
	}
	buf_str(out, "\n]}\n");
}

void http_landing(struct http *h, struct buf *out)
{
	struct http_fact facts[HTTP_PROGRAMS_MAX];
	char text[HTTP_PROGRAMS_MAX][128];
	size_t n = 0;

	for (struct tree *t = h->programs; t; t = t->next) {
		struct freshet_producer_info info = { 0 };
		uint32_t groups = 0;

		if (!inquire(t, &info, &groups))
			continue;
		snprintf(text[n], sizeof(text[n]), "%s, pid %d, %u group%s", info.name,
			 (int)info.pid, groups, groups == 1 ? "" : "s");
		facts[n] = (struct http_fact){ t->name, text[n] };
		n++;
	}
	landing_render(out, h->options.facts, h->options.nfacts, facts, n);
}

void http_age_metric(struct http *h, struct buf *out, enum metrics_format format)
{
	metrics_family(out, format, "freshet_last_pass_age_seconds", METRICS_GAUGE, "seconds",
		       "Time since the last pass over the cgroups began.");
	buf_str(out, "freshet_last_pass_age_seconds ");
	buf_seconds(out, tree_age(h->host));
	buf_char(out, '\n');
}

/* Names of segments need no escape: base/where.h. */
static void add_ages(struct http *h, struct buf *out, enum metrics_format format)
{
	bool first = true;

	for (struct tree *t = h->programs; t; t = t->next) {
		if (tree_error(t) < 0)
			continue;
		if (first)
			metrics_family(out, format, "freshet_segment_age_seconds", METRICS_GAUGE,
				       "seconds",
				       "Time since the numbers shown of a program's segment were "
				       "copied or, if it has passes, since their pass began.");
		first = false;
		buf_printf(out, "freshet_segment_age_seconds{segment=\"%s\"} ", t->name);
		buf_seconds(out, tree_age(t));
		buf_char(out, '\n');
	}
}

void http_own_metrics(struct http *h, struct buf *out, enum metrics_format format)
{
	unsigned programs = 0;

	for (const struct tree *t = h->programs; t; t = t->next)
		programs += tree_error(t) == 0;
	h->options.metrics(h->options.context, out, format);
	metrics_family(out, format, "freshet_segments", METRICS_GAUGE, NULL,
		       "Segments of programs that are shown.");
	buf_printf(out, "freshet_segments %u\n", programs);
	add_ages(h, out, format);
	metrics_family(out, format, "freshet_rendered_bytes", METRICS_COUNTER, "bytes",
		       "Bytes of metrics and JSON rendered; answers that share one count once.");
	buf_printf(out, "freshet_rendered_bytes_total %llu\n",
		   (unsigned long long)h->rendered_bytes);
	metrics_family(out, format, "freshet_requests", METRICS_COUNTER, NULL,
		       "HTTP requests by endpoint.");
	for (unsigned i = 0; i < NENDPOINTS; i++)
		buf_printf(out, "freshet_requests_total{endpoint=\"%s\"} %llu\n",
			   http_endpoint_names[i], (unsigned long long)h->requests[i]);
}
