/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server: /, /metrics, /api/v1/groups, /healthz, over libmicrohttpd.
 *
 * One thread of its own does all of it and reads the segment like any other client. Whoever makes
 * passes calls http_published() after each; requests with max_age that need a younger pass are
 * suspended until then and cost no thread. Nothing here waits for a pass or for a client.
 */
#ifndef FRESHET_HTTP_H
#define FRESHET_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include <freshet/freshet.h>

#include "base/buf.h"
#include "view/openmetrics.h"

struct http_fact {
	const char *name, *value;
};

struct http_options {
	int fd; /* listening; the server's once it has started */
	const struct freshet_view
		*view; /* has a pass; must live until http_stop() or http_view() */
	uint64_t interval_ns;
	const char *prefix;            /* of the groups' metrics: "cgroup" */
	const struct http_fact *facts; /* for the landing page; live until http_stop() */
	size_t nfacts;
	/* A request waits for a pass that begins at or after since_ns. From the server's thread. */
	void (*want)(void *context, uint64_t since_ns);
	/* Adds whole families of the caller's own metrics. From the server's thread. */
	void (*metrics)(void *context, struct buf *out, enum metrics_format format);
	void *context;
};

struct http;

int http_start(const struct http_options *options, struct http **ret);
void http_stop(struct http *h);

/* A pass has been published: answers those who waited for it. One thread at a time. */
void http_published(struct http *h);

/* Answers from another segment from now on; nothing uses the old view when this returns. From the
 * thread that calls http_published(). */
void http_view(struct http *h, const struct freshet_view *view);

/* Why /healthz is to fail however fresh the passes are; "": nothing ails. Any thread. */
void http_ailing(struct http *h, const char *why);

/* Once a second or so: gives up on requests that waited too long, and on slow clients. As
 * http_published(). */
void http_tick(struct http *h);

/* How old the last pass may be, ns, before /healthz fails. */
uint64_t http_stale_ns(uint64_t interval_ns);

/* HTML of the landing page. */
void landing_render(struct buf *out, const struct http_fact *facts, size_t nfacts);

#endif
