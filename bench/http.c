/* SPDX-License-Identifier: MIT */
/* Implements http.h. */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define HEAD_MAX 8192u

int http_open(struct http *h, int port)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct timeval patience = { 10, 0 };
	const int on = 1;

	*h = (struct http){ .socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	if (h->socket < 0 || connect(h->socket, (struct sockaddr *)&to, sizeof(to)) < 0) {
		fprintf(stderr, "freshet-bench: port %d: %s\n", port, strerror(errno));
		http_close(h);
		return -1;
	}
	setsockopt(h->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(h->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return 0;
}

void http_close(struct http *h)
{
	if (h->socket >= 0)
		close(h->socket);
	free(h->body);
	*h = (struct http){ .socket = -1 };
}

static int fail(const char *target, const char *what)
{
	fprintf(stderr, "freshet-bench: GET %s: %s\n", target, what);
	return -1;
}

/* Receives until the head is complete. Bytes in head, the body's first ones included, or -1. */
static ssize_t receive_head(const struct http *h, char head[HEAD_MAX])
{
	size_t have = 0;

	for (;;) {
		ssize_t n = recv(h->socket, head + have, HEAD_MAX - 1 - have, 0);

		if (n <= 0)
			return -1;
		have += (size_t)n;
		head[have] = 0;
		if (strstr(head, "\r\n\r\n"))
			return (ssize_t)have;
	}
}

static int receive_body(struct http *h, size_t have, size_t length)
{
	while (have < length) {
		ssize_t n = recv(h->socket, h->body + have, length - have, 0);

		if (n <= 0)
			return -1;
		have += (size_t)n;
	}
	return 0;
}

static int make_room(struct http *h, size_t length)
{
	char *more;

	if (length <= h->capacity)
		return 0;
	more = realloc(h->body, length);
	if (!more)
		return -1;
	h->body = more;
	h->capacity = length;
	return 0;
}

int http_get(struct http *h, const char *target, bool gzip, struct http_answer *ret)
{
	uint64_t begin = clock_ns();
	char request[512], head[HEAD_MAX];
	const char *field, *body;
	size_t length, have;
	ssize_t got;
	int n;

	n = snprintf(request, sizeof(request),
		     "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/plain\r\n%s\r\n", target,
		     gzip ? "Accept-Encoding: gzip\r\n" : "");
	if (send(h->socket, request, (size_t)n, MSG_NOSIGNAL) != n)
		return fail(target, strerror(errno));
	got = receive_head(h, head);
	if (got < 0)
		return fail(target, "no answer");
	if (strncmp(head, "HTTP/1.1 200 ", 13) != 0)
		return fail(target, "not 200");
	field = strcasestr(head, "\r\nContent-Length:");
	body = strstr(head, "\r\n\r\n") + 4;
	if (!field || field > body)
		return fail(target, "an answer without a length");
	length = strtoull(field + strlen("\r\nContent-Length:"), NULL, 10);
	have = (size_t)(head + got - body);
	if (have > length || make_room(h, length) < 0)
		return fail(target, "an answer of a wrong length");
	memcpy(h->body, body, have);
	if (receive_body(h, have, length) < 0)
		return fail(target, "the answer is cut short");
	ret->ms = (double)(clock_ns() - begin) / NSEC_PER_MSEC;
	ret->bytes = length;
	field = strcasestr(head, "\r\nContent-Encoding: gzip");
	ret->gzip = field && field < body;
	return 0;
}
