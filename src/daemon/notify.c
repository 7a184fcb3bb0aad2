/* SPDX-License-Identifier: MIT */
/* Implements notify.h: one datagram a message. */
#include "daemon/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

int notify(const char *format, ...)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	char text[1024];
	size_t path_len;
	va_list ap;
	int fd _cleanup_(cleanup_close) = -1;
	int len;

	if (!path || (*path != '/' && *path != '@'))
		return 0;
	path_len = strlen(path);
	if (path_len >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	memcpy(to.sun_path, path, path_len);
	if (*path == '@') /* an abstract socket: its name begins with NUL */
		to.sun_path[0] = '\0';

	va_start(ap, format);
	len = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= sizeof(text))
		return -EMSGSIZE;

	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, text, (size_t)len, MSG_NOSIGNAL, (struct sockaddr *)&to,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path_len)) < 0)
		return -errno;
	return 0;
}

uint64_t notify_watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!usec || (pid && strtoll(pid, NULL, 10) != getpid()))
		return 0;
	return strtoull(usec, NULL, 10) * NSEC_PER_USEC / 2;
}
