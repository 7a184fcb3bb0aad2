/* SPDX-License-Identifier: MIT */
/*
 * What the HTTP server answers. Everything that depends on the pass alone is rendered once and
 * shared (http_body.h); everything here runs in the server's thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/duration.h"
#include "view/guard.h"
#include "view/http_request.h"
#include "view/segments.h"

/* Bodies of former passes, which only slow clients still hold, may take this much memory, and as
 * much as some current ones where those are large; of programs at most what the texts of an answer may take. */
#define OLD_BYTES_MAX  (12u << 20)
#define OLD_BODIES_MAX 4u

#define PARAMETERS 4u

static const struct {
	const char *path;
	const char *parameters[PARAMETERS];
} endpoints[NENDPOINTS] = {
	[LANDING] = { "/", { NULL } },
	[METRICS] = { "/metrics", { "path", "segment" } },
	[GROUPS] = { "/api/v1/groups", { "path", "segment", "depth", "max_age" } },
	[SEGMENTS] = { "/api/v1/segments", { NULL } },
	[HEALTHZ] = { "/healthz", { NULL } },
	[NOWHERE] = { NULL, { NULL } },
};

const char *const http_endpoint_names[NENDPOINTS] = {
	[LANDING] = "landing",   [METRICS] = "metrics", [GROUPS] = "groups",
	[SEGMENTS] = "segments", [HEALTHZ] = "healthz", [NOWHERE] = "other",
};

static const char *header(const struct request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

/* Makes room where old bodies take too much. */
static void limit_old(struct http *h)
{
	size_t most = 0;

	for (const struct tree *t = h->programs; t; t = t->next)
		most += OLD_BODIES_MAX * t->body_bytes;
	if (most > TREE_BYTES_MAX)
		most = TREE_BYTES_MAX;
	if (h->live_bytes > OLD_BYTES_MAX + OLD_BODIES_MAX * h->host->body_bytes + most)
		conns_drop_old(&h->conns);
}

/* Adds the body of a tree that is up to date. 0, -ENOENT no such group, -ENOMEM, -E2BIG. */
static int add_body(struct http *h, struct tree *t, const struct rendering *what,
		    struct bodies *bodies)
{
	struct rendering found = *what;
	struct body *plain, *b;
	size_t room = http_text_room(h, t, bodies);
	int r = tree_look_up(t, &found);

	if (r < 0)
		return r;
	b = tree_cached(t, &found, bodies->gzip, &plain);
	if (b) {
		body_ref(b);
	} else {
		limit_old(h);
		r = tree_render(t, &found, bodies->gzip, plain, room, &h->live_bytes,
				&h->rendered_bytes, &b);
		if (r < 0)
			return r;
	}
	bodies->body[bodies->count++] = b;
	return 0;
}

/* Those of all programs. One that is damaged, takes too much or has just ended is left out: it must not
 * cost the others their answer. */
static int add_programs(struct http *h, const struct rendering *what, struct bodies *bodies)
{
	for (struct tree *t = h->programs; t; t = t->next) {
		int r = http_catch_up(h, t) == 0 ? add_body(h, t, what, bodies) : 0;

		if (r == -ENOMEM)
			return r;
		if (r == -E2BIG) /* it is dropped for that: daemon/programs.c */
			t->error = r;
	}
	return 0;
}

static enum MHD_Result cannot_render(struct http *h, struct request *r, int error)
{
	if (error == -ENOENT)
		return http_say(h, r, MHD_HTTP_NOT_FOUND, "path: no such group");
	if (error == -ENODEV)
		return http_say(h, r, MHD_HTTP_NOT_FOUND, "segment: its producer has ended");
	if (error == -EIO || error == -E2BIG)
		return http_say(h, r, MHD_HTTP_SERVICE_UNAVAILABLE, "segment: %s",
				segments_error(error));
	return http_say(h, r, MHD_HTTP_SERVICE_UNAVAILABLE, "cannot render the numbers now: %s",
			strerror(-error));
}

static void add_head(struct http *h, struct request *r, const struct tree *t,
		     const struct rendering *what, struct buf *head)
{
	struct freshet_producer_info info = { 0 };

	if (what->metrics) {
		/* Who asks for a subtree is shown nothing of what is beside it. */
		if (!t->program)
			http_age_metric(h, head, what->format);
		if (!http_target_get(&r->target, "path") && !http_target_get(&r->target, "segment"))
			http_own_metrics(h, head, what->format);
		return;
	}
	guard_begin(t->view);
	freshet_producer_info(t->view, &info);
	guard_end();
	json_head(head, t->program ? t->name : NULL, t->moment.pass, tree_age(t), info.overflowed);
}

static enum MHD_Result send_rendering(struct http *h, struct request *r, struct tree *t,
				      const struct rendering *what, const char *type)
{
	struct bodies bodies _cleanup_(bodies_unref) = {
		.gzip = http_accept_gzip(header(r, MHD_HTTP_HEADER_ACCEPT_ENCODING))
	};
	const char *tail = what->metrics && what->format == METRICS_OPENMETRICS ? "# EOF\n" : "";
	bool all = what->metrics && !http_target_get(&r->target, "path") &&
		   !http_target_get(&r->target, "segment");
	struct buf head _cleanup_(buf_free) = BUF_INIT;
	struct MHD_Response *response;
	const struct bodies *kept;
	int error;

	error = http_catch_up(h, t);
	if (error == 0)
		error = add_body(h, t, what, &bodies);
	if (error == 0 && all)
		error = add_programs(h, what, &bodies);
	if (error < 0)
		return cannot_render(h, r, error);
	add_head(h, r, t, what, &head);
	response = bodies_response(&bodies, &head, tail, &kept);
	if (!response)
		return cannot_render(h, r, -ENOMEM);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept, Accept-Encoding");
	if (kept->gzip)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	return http_send(h, r, MHD_HTTP_OK, response, kept);
}

/* Into *ret the tree that is asked for; or gives false after an answer, whose result is *result. */
static bool find_tree(struct http *h, struct request *r, struct tree **ret, enum MHD_Result *result)
{
	*ret = http_tree(h, http_target_get(&r->target, "segment"));
	if (!*ret)
		*result = http_say(h, r, MHD_HTTP_NOT_FOUND,
				   "segment: no such segment; /api/v1/segments lists them");
	return *ret;
}

static const char *path_parameter(const struct request *r)
{
	const char *path = http_target_get(&r->target, "path");

	return path && *path ? path : "/";
}

static enum MHD_Result answer_metrics(struct http *h, struct request *r)
{
	static const struct http_media offered[] = {
		[METRICS_TEXT] = { "text/plain", "0.0.4" },
		[METRICS_OPENMETRICS] = { "application/openmetrics-text", "1.0.0" },
	};
	static const char *const types[] = {
		[METRICS_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
		[METRICS_OPENMETRICS] =
			"application/openmetrics-text; version=1.0.0; charset=utf-8",
	};
	struct rendering what = { .metrics = true, .path = path_parameter(r) };
	int format = http_accept(header(r, MHD_HTTP_HEADER_ACCEPT), offered, 2);
	enum MHD_Result result;
	struct tree *t;

	if (format < 0)
		return http_say(h, r, MHD_HTTP_NOT_ACCEPTABLE,
				"Accept: there are text/plain;version=0.0.4 and "
				"application/openmetrics-text;version=1.0.0");
	if (!find_tree(h, r, &t, &result))
		return result;
	what.format = (enum metrics_format)format;
	return send_rendering(h, r, t, &what, types[format]);
}

/* Up to nine digits. */
static bool parse_depth(const char *text, uint32_t *ret)
{
	size_t digits = strspn(text, "0123456789");

	if (!digits || digits > 9 || text[digits])
		return false;
	*ret = (uint32_t)strtoul(text, NULL, 10);
	return true;
}

static enum MHD_Result answer_groups(struct http *h, struct request *r)
{
	static const struct http_media offered = { "application/json", NULL };
	const char *depth = http_target_get(&r->target, "depth");
	const char *max_age = http_target_get(&r->target, "max_age");
	struct rendering what = { .path = path_parameter(r), .depth = JSON_ALL_DEPTHS };
	uint64_t age, now = clock_ns();
	struct freshet_moment last;
	enum MHD_Result result;
	struct tree *t;

	if (http_accept(header(r, MHD_HTTP_HEADER_ACCEPT), &offered, 1) < 0)
		return http_say(h, r, MHD_HTTP_NOT_ACCEPTABLE, "Accept: there is application/json");
	if (depth && !parse_depth(depth, &what.depth))
		return http_say(h, r, MHD_HTTP_BAD_REQUEST,
				"depth: not a number of levels, such as 1");
	if (max_age && !r->asked_ns) {
		if (duration_parse(max_age, &age) < 0)
			return http_say(h, r, MHD_HTTP_BAD_REQUEST,
					"max_age: not a time, such as 100ms");
		r->since_ns = age < now ? now - age : 0;
		r->asked_ns = now;
	}
	if (!find_tree(h, r, &t, &result))
		return result;
	if (t->program) {
		/* Live ones are young; passes of the others are not ours to make. */
		if (r->since_ns && !t->live &&
		    (tree_last_pass(t, &last) < 0 || last.begin_ns < r->since_ns))
			return http_say(
				h, r, MHD_HTTP_SERVICE_UNAVAILABLE,
				"max_age: the segment's producer has made no pass that young");
	} else if (r->since_ns) {
		if (http_wait(h, r))
			return MHD_YES;
		if (freshet_last_pass(h->options.view, &last) < 0 || last.begin_ns < r->since_ns)
			return http_say(h, r, MHD_HTTP_SERVICE_UNAVAILABLE,
					"max_age: no pass that young within %.1f s",
					(double)(now - r->asked_ns) / 1e9);
	}
	return send_rendering(h, r, t, &what, "application/json");
}

static enum MHD_Result answer_healthz(struct http *h, struct request *r)
{
	uint64_t limit = http_stale_ns(h->options.interval_ns), age;
	char ailing[sizeof(h->ailing)];

	pthread_mutex_lock(&h->lock);
	strcpy(ailing, h->ailing);
	pthread_mutex_unlock(&h->lock);
	if (freshet_age(h->options.view, &age) < 0)
		return http_say(h, r, MHD_HTTP_SERVICE_UNAVAILABLE, "no pass yet");
	if (age > limit)
		return http_say(h, r, MHD_HTTP_SERVICE_UNAVAILABLE,
				"the last pass began %.1f s ago, longer than %.1f s",
				(double)age / 1e9, (double)limit / 1e9);
	if (*ailing)
		return http_say(h, r, MHD_HTTP_SERVICE_UNAVAILABLE, "%s", ailing);
	return http_say(h, r, MHD_HTTP_OK, "ok, the last pass began %.3f s ago", (double)age / 1e9);
}

/* A page that is new with every answer. */
static struct MHD_Response *page_response(const struct buf *page, const char *type)
{
	struct MHD_Response *response = NULL;

	if (!page->error)
		response = MHD_create_response_from_buffer(page->len, page->data,
							   MHD_RESPMEM_MUST_COPY);
	if (response)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	return response;
}

static enum MHD_Result answer_segments(struct http *h, struct request *r)
{
	static const struct http_media offered = { "application/json", NULL };
	struct buf page _cleanup_(buf_free) = BUF_INIT;

	if (http_accept(header(r, MHD_HTTP_HEADER_ACCEPT), &offered, 1) < 0)
		return http_say(h, r, MHD_HTTP_NOT_ACCEPTABLE, "Accept: there is application/json");
	http_segments_json(h, &page);
	return http_send(h, r, MHD_HTTP_OK, page_response(&page, offered.type), NULL);
}

static enum MHD_Result answer_landing(struct http *h, struct request *r)
{
	struct buf page _cleanup_(buf_free) = BUF_INIT;
	struct MHD_Response *response;

	http_landing(h, &page);
	response = page_response(&page, "text/html; charset=utf-8");
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "Content-Security-Policy",
				"default-src 'none'; style-src 'unsafe-inline'");
	return http_send(h, r, MHD_HTTP_OK, response, NULL);
}

/* A parameter that the endpoint does not have, or one given twice; NULL: all is well. */
static const char *stray_parameter(const struct request *r, enum endpoint e)
{
	for (unsigned i = 0; i < r->target.count; i++) {
		const char *name = r->target.parameter[i].name;
		bool known = false;

		for (unsigned j = 0; j < PARAMETERS && endpoints[e].parameters[j]; j++)
			known |= strcmp(endpoints[e].parameters[j], name) == 0;
		if (!known || http_target_get(&r->target, name) != r->target.parameter[i].value)
			return name;
	}
	return NULL;
}

enum MHD_Result http_answer(struct http *h, struct request *r, const char *method)
{
	enum endpoint e = NOWHERE;
	const char *stray;

	http_reap(h);
	for (unsigned i = 0; i < NOWHERE && r->parsed == 0; i++)
		if (strcmp(endpoints[i].path, r->target.path) == 0)
			e = (enum endpoint)i;
	if (!r->asked_ns) /* else it was counted before it waited */
		h->requests[e]++;

	if (r->parsed == -E2BIG)
		return http_say(h, r, MHD_HTTP_BAD_REQUEST, "too many parameters");
	if (r->parsed < 0)
		return http_say(h, r, MHD_HTTP_BAD_REQUEST, "malformed percent escape");
	if (e == NOWHERE)
		return http_say(h, r, MHD_HTTP_NOT_FOUND,
				"not found; there are /, /metrics, /api/v1/groups, "
				"/api/v1/segments and /healthz");
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return http_say(h, r, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");
	stray = stray_parameter(r, e);
	if (stray)
		return http_say(h, r, MHD_HTTP_BAD_REQUEST, "%.64s: unknown here, or given twice",
				stray);

	switch (e) {
	case METRICS:
		return answer_metrics(h, r);
	case GROUPS:
		return answer_groups(h, r);
	case SEGMENTS:
		return answer_segments(h, r);
	case HEALTHZ:
		return answer_healthz(h, r);
	default:
		return answer_landing(h, r);
	}
}
