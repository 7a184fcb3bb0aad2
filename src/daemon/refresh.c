/* SPDX-License-Identifier: MIT */
/*
 * Implements refresh.h. A client is either reading (its packet is awaited) or waiting (for a pass);
 * while it waits nothing is read from it. When the table is full the client that has been silent
 * longest makes room for a new one; when all of them wait, the new one is turned away.
 */
#include "daemon/refresh.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/refresh.h"

#define CLIENTS_MAX 64u

struct client {
	int fd; /* -1: a free place */
	bool waiting;
	uint64_t since_ns;    /* waiting: for a pass begun then or later; reading: for so long */
	uint64_t deadline_ns; /* of waiting */
};

struct refresh_server {
	int fd, epoll_fd;
	bool deaf; /* out of descriptors: no clients are taken in until the next tick */
	struct sockaddr_un address;
	dev_t dev; /* of the socket's file */
	ino_t ino;
	struct client client[CLIENTS_MAX];
};

int refresh_socket_name(const char *segment, char *buf, size_t size)
{
	const char *slash = strrchr(segment, '/');
	int len = snprintf(buf, size, "%s.sock", slash ? slash + 1 : segment);

	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

static int watch(const struct refresh_server *s, int op, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = (void *)s };

	return epoll_ctl(s->epoll_fd, op, fd, &e) < 0 ? -errno : 0;
}

int refresh_open(const char *segment, int epoll_fd, struct refresh_server **ret)
{
	struct refresh_server *s = calloc(1, sizeof(*s));
	struct stat st;
	mode_t mask;
	int r;

	if (!s)
		return -ENOMEM;
	for (unsigned i = 0; i < CLIENTS_MAX; i++)
		s->client[i].fd = -1;
	s->epoll_fd = epoll_fd;
	s->address.sun_family = AF_UNIX;
	r = snprintf(s->address.sun_path, sizeof(s->address.sun_path), "%s.sock", segment);
	s->fd = -1;
	if (r < 0 || (size_t)r >= sizeof(s->address.sun_path)) {
		free(s);
		return -ENAMETOOLONG;
	}
	s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0) {
		r = -errno;
		free(s);
		return r;
	}
	unlink(s->address.sun_path);
	mask = umask(0117); /* owner and group may ask, as they may read the segment */
	r = bind(s->fd, (struct sockaddr *)&s->address, sizeof(s->address)) < 0 ? -errno : 0;
	umask(mask);
	if (r == 0 && lstat(s->address.sun_path, &st) < 0)
		r = -errno;
	if (r == 0) {
		s->dev = st.st_dev;
		s->ino = st.st_ino;
		r = listen(s->fd, CLIENTS_MAX) < 0 ? -errno
						   : watch(s, EPOLL_CTL_ADD, s->fd, EPOLLIN);
	}
	if (r < 0) {
		refresh_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

static void client_close(struct client *c)
{
	close(c->fd);
	c->fd = -1;
}

bool refresh_placed(const struct refresh_server *s)
{
	struct stat st;

	return lstat(s->address.sun_path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}

void refresh_close(struct refresh_server *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < CLIENTS_MAX; i++)
		if (s->client[i].fd >= 0)
			client_close(&s->client[i]);
	close(s->fd);
	if (refresh_placed(s))
		unlink(s->address.sun_path);
	free(s);
}

static void reply(struct refresh_server *s, struct client *c, int result, uint64_t pass)
{
	struct refresh_reply packet = { .result = result, .pass = result ? 0 : pass };

	/* One that does not take its reply in is of no use to itself. */
	if (send(c->fd, &packet, sizeof(packet), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(packet) ||
	    result == -EINVAL || (c->waiting && watch(s, EPOLL_CTL_MOD, c->fd, EPOLLIN) < 0)) {
		client_close(c);
		return;
	}
	c->waiting = false;
}

/* Reads a client's packet. */
static void take_request(struct refresh_server *s, struct client *c, uint64_t now_ns,
			 uint64_t last_begin_ns, uint64_t pass)
{
	struct refresh_request request;
	ssize_t n = recv(c->fd, &request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_close(c);
		return;
	}
	if (n != sizeof(request) || request.magic != REFRESH_MAGIC ||
	    request.version != REFRESH_VERSION) {
		reply(s, c, -EINVAL, 0);
		return;
	}
	c->since_ns = request.max_age_ns < now_ns ? now_ns - request.max_age_ns : 1;
	if (last_begin_ns >= c->since_ns) {
		reply(s, c, 0, pass);
		c->since_ns = now_ns;
		return;
	}
	c->deadline_ns =
		request.timeout_ns < UINT64_MAX - now_ns ? now_ns + request.timeout_ns : UINT64_MAX;
	if (watch(s, EPOLL_CTL_MOD, c->fd, 0) < 0)
		client_close(c);
	else
		c->waiting = true;
}

static void take_requests(struct refresh_server *s, uint64_t now_ns, uint64_t last_begin_ns,
			  uint64_t pass)
{
	for (unsigned i = 0; i < CLIENTS_MAX; i++)
		if (s->client[i].fd >= 0 && !s->client[i].waiting)
			take_request(s, &s->client[i], now_ns, last_begin_ns, pass);
}

/* A free place, or the one that has been silent longest, or NULL. */
static struct client *find_place(struct refresh_server *s)
{
	struct client *place = NULL;

	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		struct client *c = &s->client[i];

		if (c->fd < 0)
			return c;
		if (!c->waiting && (!place || c->since_ns < place->since_ns))
			place = c;
	}
	return place;
}

static void take_in(struct refresh_server *s, uint64_t now_ns, uint64_t last_begin_ns,
		    uint64_t pass)
{
	/* So many at once; the listening socket stays ready for the rest. */
	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct client *place;

		if (fd < 0) {
			/* One that stays in the queue would wake us for ever. */
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
				s->deaf = watch(s, EPOLL_CTL_MOD, s->fd, 0) == 0;
			return;
		}
		place = find_place(s);
		if (place && place->fd >= 0) {
			/* Silent is only who has not asked by now. */
			take_requests(s, now_ns, last_begin_ns, pass);
			place = find_place(s);
		}
		if (!place || watch(s, EPOLL_CTL_ADD, fd, EPOLLIN) < 0) {
			close(fd);
			continue;
		}
		if (place->fd >= 0)
			client_close(place);
		*place = (struct client){ .fd = fd, .since_ns = now_ns };
	}
}

/* A waiting client is watched for nothing but its going away. */
static bool gone(const struct client *c)
{
	struct pollfd p = { .fd = c->fd };

	return poll(&p, 1, 0) > 0;
}

uint64_t refresh_ready(struct refresh_server *s, uint64_t now_ns, uint64_t last_begin_ns,
		       uint64_t pass)
{
	uint64_t wanted = 0;

	take_in(s, now_ns, last_begin_ns, pass);
	take_requests(s, now_ns, last_begin_ns, pass);
	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		struct client *c = &s->client[i];

		if (c->fd >= 0 && c->waiting && gone(c))
			client_close(c);
		if (c->fd >= 0 && c->waiting && c->since_ns > wanted)
			wanted = c->since_ns;
	}
	return wanted;
}

void refresh_published(struct refresh_server *s, uint64_t begin_ns, uint64_t pass)
{
	for (unsigned i = 0; i < CLIENTS_MAX; i++)
		if (s->client[i].fd >= 0 && s->client[i].waiting &&
		    s->client[i].since_ns <= begin_ns)
			reply(s, &s->client[i], 0, pass);
}

void refresh_tick(struct refresh_server *s, uint64_t now_ns)
{
	if (s->deaf)
		s->deaf = watch(s, EPOLL_CTL_MOD, s->fd, EPOLLIN) < 0;
	for (unsigned i = 0; i < CLIENTS_MAX; i++)
		if (s->client[i].fd >= 0 && s->client[i].waiting &&
		    s->client[i].deadline_ns <= now_ns)
			reply(s, &s->client[i], -ETIMEDOUT, 0);
}
