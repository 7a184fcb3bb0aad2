/* SPDX-License-Identifier: MIT */
/*
 * Asking the producer for a younger pass (refresh.h): the one function of the reader that waits.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <freshet/freshet.h>

#include "base/clock.h"
#include "core/refresh.h"
#include "core/view.h"

/* Waits for events on fd (-1: only waits) until the deadline. 0, -ETIMEDOUT, -errno. */
static int wait_for(int fd, short events, uint64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = events };

	for (;;) {
		uint64_t now = clock_ns(), left = now < deadline ? deadline - now : 0;
		struct timespec ts = { .tv_sec = (time_t)(left / NSEC_PER_SEC),
				       .tv_nsec = (long)(left % NSEC_PER_SEC) };
		int n = ppoll(&p, 1, &ts, NULL);

		if (n > 0)
			return 0;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

/* The socket beside the segment. */
static int socket_address(const struct freshet_view *v, struct sockaddr_un *ret)
{
	const char *name = v->fixed.socket, *slash;

	if (!v->path || !name[0])
		return -EOPNOTSUPP;
	if (strchr(name, '/'))
		return -EIO;
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	slash = strrchr(v->path, '/'); /* the path is absolute */
	if ((size_t)snprintf(ret->sun_path, sizeof(ret->sun_path), "%.*s/%s",
			     (int)(slash - v->path), v->path, name) >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	return 0;
}

/* What a failed call on the socket means to the caller. */
static int refused(int error)
{
	switch (error) {
	case ENOENT: /* the producer took the socket with it */
	case EPIPE:
	case ECONNRESET:
	case EPROTOTYPE: /* not its socket */
	case EPROTONOSUPPORT:
		return -ECONNREFUSED;
	default:
		return -error;
	}
}

static int connect_until(int fd, const struct sockaddr_un *address, uint64_t deadline)
{
	while (connect(fd, (const struct sockaddr *)address, sizeof(*address))) {
		uint64_t now = clock_ns();

		/* A full queue: poll() cannot tell when that is over, so look every millisecond. */
		if (errno != EAGAIN && errno != EINTR)
			return refused(errno);
		if (now >= deadline)
			return -ETIMEDOUT;
		wait_for(-1, 0, now + NSEC_PER_MSEC < deadline ? now + NSEC_PER_MSEC : deadline);
	}
	return 0;
}

static int ask(int fd, uint64_t max_age_ns, uint64_t deadline)
{
	uint64_t now = clock_ns();
	struct refresh_request request = {
		.magic = REFRESH_MAGIC,
		.version = REFRESH_VERSION,
		.max_age_ns = max_age_ns,
		.timeout_ns = now < deadline ? deadline - now : 0,
	};
	struct refresh_reply reply;
	ssize_t n;
	int r;

	/* The first packet of a connection always finds room. */
	if (send(fd, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request))
		return refused(errno);
	do {
		r = wait_for(fd, POLLIN, deadline);
		if (r)
			return r;
		n = recv(fd, &reply, sizeof(reply), MSG_TRUNC);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	if (n < 0)
		return refused(errno);
	if (n == 0)
		return -ECONNREFUSED;
	if (n != sizeof(reply) || reply.result > 0 || reply.result < -4095)
		return -EIO;
	return reply.result;
}

/* 1 when a pass that began at `oldest` or later is published. */
static int young_enough(const struct freshet_view *v, uint64_t oldest)
{
	struct freshet_moment m;
	int r = freshet_last_pass(v, &m);

	return r ? r : m.begin_ns >= oldest;
}

int freshet_refresh(const struct freshet_view *v, uint64_t max_age_ns, uint64_t timeout_ns)
{
	uint64_t now = clock_ns();
	uint64_t oldest = max_age_ns < now ? now - max_age_ns : 0;
	uint64_t deadline = timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
	struct sockaddr_un address;
	int fd, r;

	r = socket_address(v, &address);
	if (r)
		return r;
	r = young_enough(v, oldest);
	if (r)
		return r < 0 ? r : 0;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	r = connect_until(fd, &address, deadline);
	if (r == 0)
		r = ask(fd, max_age_ns, deadline);
	close(fd);
	if (r)
		return r;

	/* The one who answered may keep a newer segment than the one that is mapped. */
	r = young_enough(v, oldest);
	if (r < 0)
		return r;
	return r ? 0 : -ECONNREFUSED;
}
