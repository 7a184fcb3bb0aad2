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
#include "view/http_request.h"
#include "view/json.h"

/* Bodies of former passes, which only slow clients still hold, may take this much memory, and as
 * much as some current ones where those are large. */
#define OLD_BYTES_MAX  (12u << 20)
#define OLD_BODIES_MAX 4u

static const struct {
	const char *path;
	const char *name;
	const char *parameters[3];
} endpoints[NENDPOINTS] = {
	[LANDING] = { "/", "landing", { NULL } },
	[METRICS] = { "/metrics", "metrics", { "path" } },
	[GROUPS] = { "/api/v1/groups", "groups", { "path", "depth", "max_age" } },
	[HEALTHZ] = { "/healthz", "healthz", { NULL } },
	[NOWHERE] = { NULL, "other", { NULL } },
};

static const char *header(const struct request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

/* What is asked for, apart from the encoding. */
struct rendering {
	enum endpoint endpoint;
	enum metrics_format format;
	const char *path;
	uint32_t depth;
	size_t at; /* entry of the path, once it was looked up */
};

/* Looks the path up in the snapshot, so that all ways to write one request share one rendering.
 * -ENOENT: no such group. */
static int look_up(struct http *h, struct rendering *what)
{
	const struct freshet_entry *entries = freshet_snapshot_entries(h->snapshot);
	uint32_t height = 0;
	int error;

	if (strlen(what->path) >= FRESHET_PATH_MAX)
		return -ENOENT;
	error = freshet_snapshot_find(h->snapshot, what->path, &what->at);
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

/* Renders from the snapshot. */
static int render(struct http *h, const struct rendering *what, struct buf *out)
{
	const struct freshet_entry *entries = freshet_snapshot_entries(h->snapshot);
	const struct freshet_stat *stats;
	size_t nstats;

	stats = freshet_stats(h->options.view, &nstats);
	if (what->endpoint == METRICS) {
		metrics_groups(out, what->format, h->options.prefix, stats, nstats, entries,
			       what->at);
		metrics_end(out, what->format);
	} else {
		json_groups(out, stats, nstats, entries, what->at, what->depth);
	}
	h->rendered_bytes += out->len;
	return out->error;
}

/* The snapshot and the cache are of the last pass afterwards. */
static int catch_up(struct http *h, struct freshet_moment *moment)
{
	struct freshet_moment last;
	int error = freshet_last_pass(h->options.view, &last);

	if (error < 0)
		return error;
	freshet_snapshot_moment(h->snapshot, moment);
	if (moment->pass != last.pass) {
		error = freshet_snapshot_take(h->snapshot, h->options.view);
		if (error < 0)
			return error;
		freshet_snapshot_moment(h->snapshot, moment);
	}
	body_cache_pass(&h->cache, moment->pass);
	return 0;
}

/* The body of an answer, of the last pass; the caller gets a reference. */
static int find_body(struct http *h, const struct rendering *what, bool gzip, struct body **ret)
{
	struct buf text _cleanup_(buf_free) = BUF_INIT;
	struct buf key _cleanup_(buf_free) = BUF_INIT;
	struct body *plain, *b;
	int error;

	/* The first character says plain or gzip; the rest, what it is. */
	buf_printf(&key, "p%d/%d/%u/%zu", what->endpoint, what->format, what->depth, what->at);
	buf_char(&key, '\0');
	if (key.error)
		return key.error;
	plain = body_cache_get(&h->cache, key.data);
	key.data[0] = gzip ? 'g' : 'p';
	b = body_cache_get(&h->cache, key.data);
	if (b) {
		*ret = body_ref(b);
		return 0;
	}
	if (h->live_bytes > OLD_BYTES_MAX + OLD_BODIES_MAX * h->body_bytes)
		conns_drop_old(&h->conns);
	if (plain) {
		body_ref(plain);
	} else {
		error = render(h, what, &text);
		if (error < 0)
			return error;
		plain = body_new(&text, &h->live_bytes);
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
	h->body_bytes = b->len;
	body_cache_put(&h->cache, key.data, b);
	*ret = b;
	return 0;
}

static void add_age(struct buf *out, enum metrics_format format,
		    const struct freshet_moment *moment)
{
	metrics_family(out, format, "freshet_last_pass_age_seconds", METRICS_GAUGE, "seconds",
		       "Time since the last pass over the cgroups began.");
	buf_str(out, "freshet_last_pass_age_seconds ");
	buf_seconds(out, clock_ns() - moment->begin_ns);
	buf_char(out, '\n');
}

static void add_own(struct http *h, struct buf *out, enum metrics_format format)
{
	h->options.metrics(h->options.context, out, format);
	metrics_family(out, format, "freshet_rendered_bytes", METRICS_COUNTER, "bytes",
		       "Bytes of metrics and JSON rendered; answers that share one count once.");
	buf_printf(out, "freshet_rendered_bytes_total %llu\n",
		   (unsigned long long)h->rendered_bytes);
	metrics_family(out, format, "freshet_requests", METRICS_COUNTER, NULL,
		       "HTTP requests by endpoint.");
	for (unsigned i = 0; i < NENDPOINTS; i++)
		buf_printf(out, "freshet_requests_total{endpoint=\"%s\"} %llu\n", endpoints[i].name,
			   (unsigned long long)h->requests[i]);
}

static enum MHD_Result send_rendering(struct http *h, struct request *r, struct rendering *what,
				      const char *type)
{
	bool gzip = http_accept_gzip(header(r, MHD_HTTP_HEADER_ACCEPT_ENCODING));
	struct buf head _cleanup_(buf_free) = BUF_INIT;
	struct MHD_Response *response = NULL;
	struct freshet_moment moment;
	struct body *body = NULL;
	enum MHD_Result result;
	int error;

	error = catch_up(h, &moment);
	if (error == 0)
		error = look_up(h, what);
	if (error == 0)
		error = find_body(h, what, gzip, &body);
	if (error == -ENOENT)
		return http_say(h, r, MHD_HTTP_NOT_FOUND, "path: no such group");
	if (error == 0) {
		if (what->endpoint == METRICS) {
			/* Who asks for a subtree is shown nothing of what is beside it. */
			add_age(&head, what->format, &moment);
			if (!http_target_get(&r->target, "path"))
				add_own(h, &head, what->format);
		} else {
			struct freshet_producer_info info = { 0 };

			freshet_producer_info(h->options.view, &info);
			json_head(&head, moment.pass, clock_ns() - moment.begin_ns,
				  info.overflowed);
		}
		response = body_response(body, &head);
	}
	if (!response) {
		body_unref(body);
		return http_say(h, r, MHD_HTTP_SERVICE_UNAVAILABLE,
				"cannot render the numbers now: %s",
				strerror(error < 0 ? -error : ENOMEM));
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept, Accept-Encoding");
	if (gzip)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	result = http_send(h, r, MHD_HTTP_OK, response, body);
	body_unref(body);
	return result;
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
	struct rendering what = { .endpoint = METRICS, .path = path_parameter(r) };
	int format = http_accept(header(r, MHD_HTTP_HEADER_ACCEPT), offered, 2);

	if (format < 0)
		return http_say(h, r, MHD_HTTP_NOT_ACCEPTABLE,
				"Accept: there are text/plain;version=0.0.4 and "
				"application/openmetrics-text;version=1.0.0");
	what.format = (enum metrics_format)format;
	return send_rendering(h, r, &what, types[format]);
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
	struct rendering what = { .endpoint = GROUPS,
				  .path = path_parameter(r),
				  .depth = JSON_ALL_DEPTHS };
	uint64_t age, now = clock_ns();
	struct freshet_moment last;

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
	if (r->since_ns) {
		if (http_wait(h, r))
			return MHD_YES;
		if (freshet_last_pass(h->options.view, &last) < 0 || last.begin_ns < r->since_ns)
			return http_say(h, r, MHD_HTTP_SERVICE_UNAVAILABLE,
					"max_age: no pass that young within %.1f s",
					(double)(now - r->asked_ns) / 1e9);
	}
	return send_rendering(h, r, &what, "application/json");
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

static enum MHD_Result answer_landing(struct http *h, struct request *r)
{
	struct buf page _cleanup_(buf_free) = BUF_INIT;
	struct MHD_Response *response;

	landing_render(&page, h->options.facts, h->options.nfacts);
	if (page.error)
		return MHD_NO;
	response = MHD_create_response_from_buffer(page.len, page.data, MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/html; charset=utf-8");
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

		for (unsigned j = 0; j < 3 && endpoints[e].parameters[j]; j++)
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
				"not found; there are /, /metrics, /api/v1/groups and /healthz");
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
	case HEALTHZ:
		return answer_healthz(h, r);
	default:
		return answer_landing(h, r);
	}
}
