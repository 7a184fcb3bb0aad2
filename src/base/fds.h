/* SPDX-License-Identifier: MIT */
/* Descriptors that are not standard input, output or error, where those are closed: else somebody's
 * message would go into the file. */
#ifndef FRESHET_FDS_H
#define FRESHET_FDS_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Takes fd, or a failed open's -1; gives one from 3 on, close-on-exec, or -1 and errno. */
static inline int fd_beyond_stdio(int fd)
{
	int beyond, error;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	beyond = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	error = errno;
	close(fd);
	errno = error;
	return beyond;
}

#endif
