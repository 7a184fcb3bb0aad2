/* SPDX-License-Identifier: MIT */
/* Implements listen.h. Numbers only: no name service is asked, none can be waited for. */
#include "daemon/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the kernel keeps for a client that takes nothing in. Left to itself it goes up to 4 MiB. */
#define SEND_BUFFER (512 * 1024)

struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a;
	socklen_t len;
};

static bool parse(const char *text, struct address *ret)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	char host[64], *end;
	unsigned long port;

	if (!len || len >= sizeof(host) || colon[1] < '0' || colon[1] > '9')
		return false;
	port = strtoul(colon + 1, &end, 10);
	if (*end || port > UINT16_MAX)
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	*ret = (struct address){ .len = 0 };
	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		ret->a.v6.sin6_family = AF_INET6;
		ret->a.v6.sin6_port = htons((uint16_t)port);
		ret->len = sizeof(ret->a.v6);
		return inet_pton(AF_INET6, host + 1, &ret->a.v6.sin6_addr) == 1;
	}
	ret->a.v4.sin_family = AF_INET;
	ret->a.v4.sin_port = htons((uint16_t)port);
	ret->len = sizeof(ret->a.v4);
	return inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
			 &ret->a.v4.sin_addr) == 1;
}

static void show(const struct address *a, char *buf, size_t size)
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (a->a.any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a->a.v6.sin6_addr, host, sizeof(host));
		snprintf(buf, size, "[%s]:%u", host, ntohs(a->a.v6.sin6_port));
	} else {
		inet_ntop(AF_INET, &a->a.v4.sin_addr, host, sizeof(host));
		snprintf(buf, size, "%s:%u", host, ntohs(a->a.v4.sin_port));
	}
}

bool listen_valid(const char *text)
{
	struct address address;

	return parse(text, &address);
}

int listen_on(const char *text, char *where, size_t where_size, char *why, size_t why_size)
{
	struct address address;
	int fd, r, on = 1, send_buffer = SEND_BUFFER;

	if (!parse(text, &address)) {
		snprintf(why, why_size, "cannot listen on %.64s: no such address", text);
		return -EINVAL;
	}
	fd = socket(address.a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		goto fail;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof(send_buffer));
	if (bind(fd, &address.a.any, address.len) < 0 || listen(fd, SOMAXCONN) < 0 ||
	    getsockname(fd, &address.a.any, &address.len) < 0)
		goto fail;
	show(&address, where, where_size);
	return fd;
fail:
	r = -errno;
	snprintf(why, why_size, "cannot listen on %.64s: %s%s", text, strerror(errno),
		 errno == EADDRINUSE ? "; choose another address with --listen" : "");
	if (fd >= 0)
		close(fd);
	return r;
}
