/* SPDX-License-Identifier: MIT */
/*
 * Implements http.h: the server, its connections, and the requests that wait for a pass.
 *
 * A waiting request is in the list `waiting` exactly while it is suspended; both happen under the
 * lock, and http_published() looks at the last pass under it too, so that none is forgotten. Lock
 * order: http.view_lock, http.lock, then MHD's own.
 */
#include "view/http.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "view/http_request.h"

#define CONNECTION_MEMORY (16u * 1024) /* bounds a request's head, and what a client costs us */

uint64_t http_stale_ns(uint64_t interval_ns)
{
	return interval_ns > 2 * NSEC_PER_SEC / 3 ? 3 * interval_ns : 2 * NSEC_PER_SEC;
}

static struct conn *conn_of(const struct request *r)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void set_state(struct http *h, const struct request *r, enum conn_state state,
		      const struct bodies *bodies)
{
	struct conn *c = conn_of(r);

	if (c)
		conns_state(&h->conns, c, state, bodies, clock_ns());
}

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info;
	struct http *h = context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		if (info)
			*socket_context = conns_add(&h->conns, info->connect_fd, clock_ns());
	} else if (*socket_context) {
		conns_remove(&h->conns, *socket_context);
		*socket_context = NULL;
	}
}

/* The request line is there. What this returns is the request's context from now on. */
static void *on_target(void *context, const char *target, struct MHD_Connection *connection)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	/* A proxy's form of the target: what counts is behind the host. */
	if (strncmp(target, "http://", 7) == 0) {
		target = strchr(target + 7, '/');
		target = target ? target : "/";
	}
	r->connection = connection;
	r->text = strdup(target);
	if (!r->text) {
		free(r);
		return NULL;
	}
	r->parsed = http_target_parse(r->text, &r->target);
	return r;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_size, void **request_context)
{
	struct request *r = *request_context;
	struct http *h = context;
	enum MHD_Result result;
	bool get = strcmp(method, MHD_HTTP_METHOD_GET) == 0 ||
		   strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;

	if (!r)
		return MHD_NO; /* no memory: this connection ends, the server does not */
	/* MHD shows a request after its head and again when it is whole. An answer given at once
	 * closes the connection, which is right for those that bring a body only. */
	if (!r->begun && get) {
		r->begun = true;
		return MHD_YES;
	}
	if (*upload_size) {
		*upload_size = 0;
		return MHD_YES;
	}
	pthread_mutex_lock(&h->view_lock);
	result = http_answer(h, r, method);
	pthread_mutex_unlock(&h->view_lock);
	return result;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **request_context,
			 enum MHD_RequestTerminationCode code)
{
	struct request *r = *request_context;
	struct http *h = context;

	if (!r)
		return;
	set_state(h, r, CONN_READING, NULL);
	free(r->text);
	free(r);
	*request_context = NULL;
}

enum MHD_Result http_send(struct http *h, struct request *r, unsigned status,
			  struct MHD_Response *response, const struct bodies *bodies)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	set_state(h, r, CONN_ANSWERING, bodies);
	result = MHD_queue_response(r->connection, status, response);
	MHD_destroy_response(response);
	return result;
}

enum MHD_Result http_say(struct http *h, struct request *r, unsigned status, const char *format,
			 ...)
{
	struct MHD_Response *response;
	char text[512];
	va_list ap;
	int len;

	va_start(ap, format);
	len = vsnprintf(text, sizeof(text) - 1, format, ap);
	va_end(ap);
	if (len < 0)
		return MHD_NO;
	strcat(text, "\n");
	response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				"text/plain; charset=utf-8");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	return http_send(h, r, status, response, NULL);
}

static bool satisfied(const struct http *h, const struct request *r)
{
	struct freshet_moment moment;

	return freshet_last_pass(h->options.view, &moment) == 0 && moment.begin_ns >= r->since_ns;
}

/* How long a pass is waited for. Who has left meanwhile is seen only when he is answered. */
static uint64_t patience(struct http *h)
{
	uint64_t limit = http_stale_ns(h->options.interval_ns);

	return limit > CROWDED_NS && conns_crowded(&h->conns) ? CROWDED_NS : limit;
}

/*
 * A client may close its sending half once it has asked. libmicrohttpd (0.9.75) takes an end of file
 * that it reads for the client's leaving, whatever is to be sent, and a connection suspended in the
 * same turn that read the request is read again when it is resumed. So the handler passes one turn
 * without an answer first: the request then counts as read, and nothing is read until it is answered.
 */
bool http_wait(struct http *h, struct request *r)
{
	bool suspended = false;

	pthread_mutex_lock(&h->lock);
	if (!h->stopping && !satisfied(h, r) && clock_ns() - r->asked_ns < patience(h)) {
		if (!r->read) {
			r->read = true;
			pthread_mutex_unlock(&h->lock);
			return true;
		}
		set_state(h, r, CONN_WAITING, NULL);
		r->next = h->waiting;
		h->waiting = r;
		MHD_suspend_connection(r->connection);
		suspended = true;
	}
	pthread_mutex_unlock(&h->lock);
	if (suspended)
		h->options.want(h->options.context, r->since_ns);
	return suspended;
}

/* Lets go of those who have what they wait for, or have waited too long, or all. */
static void resume(struct http *h, bool all)
{
	uint64_t now = clock_ns(), limit = patience(h);

	for (struct request **at = &h->waiting, *r; (r = *at);) {
		if (!all && !satisfied(h, r) && now - r->asked_ns < limit) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		r->next = NULL;
		MHD_resume_connection(r->connection);
	}
}

void http_published(struct http *h)
{
	pthread_mutex_lock(&h->lock);
	resume(h, false);
	pthread_mutex_unlock(&h->lock);
}

void http_view(struct http *h, const struct freshet_view *view)
{
	pthread_mutex_lock(&h->view_lock);
	h->options.view = view;
	tree_view(h->host, view);
	pthread_mutex_unlock(&h->view_lock);
}

void http_ailing(struct http *h, const char *why)
{
	pthread_mutex_lock(&h->lock);
	snprintf(h->ailing, sizeof(h->ailing), "%s", why);
	pthread_mutex_unlock(&h->lock);
}

void http_tick(struct http *h)
{
	http_published(h);
	conns_sweep(&h->conns, clock_ns());
}

int http_start(const struct http_options *options, struct http **ret)
{
	struct http *h = calloc(1, sizeof(*h));
	int error;

	if (!h)
		return -ENOMEM;
	h->options = *options;
	conns_init(&h->conns);
	pthread_mutex_init(&h->lock, NULL);
	pthread_mutex_init(&h->view_lock, NULL);
	error = http_begin(h);
	if (error < 0)
		goto fail;
	h->mhd = MHD_start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request,
		h, MHD_OPTION_LISTEN_SOCKET, options->fd, MHD_OPTION_CONNECTION_LIMIT, CONNS_MAX,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, h, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_END);
	if (!h->mhd) {
		error = errno ? -errno : -EIO;
		goto fail;
	}
	*ret = h;
	return 0;
fail:
	http_end(h);
	pthread_mutex_destroy(&h->view_lock);
	pthread_mutex_destroy(&h->lock);
	conns_destroy(&h->conns);
	free(h);
	return error;
}

void http_stop(struct http *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	h->stopping = true;
	resume(h, true);
	pthread_mutex_unlock(&h->lock);
	MHD_stop_daemon(h->mhd);
	http_end(h);
	pthread_mutex_destroy(&h->view_lock);
	pthread_mutex_destroy(&h->lock);
	conns_destroy(&h->conns);
	free(h);
}
