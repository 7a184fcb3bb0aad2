/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server: /, /metrics, /api/v1/groups, /api/v1/segments, /healthz, over libmicrohttpd. It
 * shows one segment of its own, the host's, and beside it those of programs.
 *
 * One thread of its own does all of it and reads the segment like any other client. Whoever makes
 * passes calls http_published() after each; requests with max_age that need a younger pass are
 * suspended until then and cost no thread. Nothing here waits for a pass or for a client.
 */
#ifndef FRESHET_HTTP_H
#define FRESHET_HTTP_H

#include <errno.h>
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
	const char *name;              /* of the segment, in requests: "host" */
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

#define HTTP_PROGRAMS_MAX 64u

/* What its metrics' names begin with is that of another's. */
#define HTTP_PREFIX_TAKEN (-EADDRINUSE)
/* There are HTTP_PROGRAMS_MAX. */
#define HTTP_FULL (-ENOSPC)

/*
 * Shows a program's segment, too, until it is dropped: name is unique among them. Takes the view
 * over on success. without (at least 256 bytes): which of its metrics are left out because their
 * names are taken or none; "": none is. HTTP_PREFIX_TAKEN; HTTP_FULL; -EIO, -E2BIG,
 * -EAGAIN, -ENOMEM it cannot be copied; -ENODEV its producer has ended. From the thread that calls
 * http_published().
 */
int http_program_add(struct http *h, const char *name, struct freshet_view *view, char *without,
		     size_t without_size);

/* Shows it no more, and detaches the view. */
void http_program_drop(struct http *h, const char *name);

/* -EIO, -E2BIG: it could not be copied when last somebody asked for it; else 0. */
int http_program_error(struct http *h, const char *name);

/* Why /healthz is to fail however fresh the passes are; "": nothing ails. Any thread. */
void http_ailing(struct http *h, const char *why);

/* Once a second or so: gives up on requests that waited too long, and on slow clients. As
 * http_published(). */
void http_tick(struct http *h);

/* How old the last pass may be, ns, before /healthz fails. */
uint64_t http_stale_ns(uint64_t interval_ns);

/* HTML of the landing page; programs' segments: the name, and what is said of it. */
void landing_render(struct buf *out, const struct http_fact *facts, size_t nfacts,
		    const struct http_fact *programs, size_t nprograms);

#endif
