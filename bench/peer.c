/* SPDX-License-Identifier: MIT */
/* Implements peer.h. */
#include "peer.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "procs.h"

int peer_start(struct peer *p, const char *name)
{
	char path[4300];
	int pair[2];

	signal(SIGPIPE, SIG_IGN); /* when it ends early */
	memset(p, 0, sizeof(*p));
	procs_beside(name, path, sizeof(path));
	if (access(path, X_OK) < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	p->pid = procs_fork();
	if (p->pid == 0) {
		dup2(pair[1], STDIN_FILENO);
		dup2(pair[1], STDOUT_FILENO);
		execl(path, name, (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	p->to = fdopen(pair[0], "w");
	p->from = fdopen(dup(pair[0]), "r");
	if (p->pid > 0 && p->to && p->from)
		return 0;
	if (!p->to)
		close(pair[0]);
	peer_stop(p);
	return -ENOMEM;
}

int peer_measure(struct peer *p, unsigned threads, unsigned cells, uint64_t ns, double *ret)
{
	if (fprintf(p->to, "%u %u %" PRIu64 "\n", threads, cells, ns) < 0 || fflush(p->to) ||
	    fscanf(p->from, "%lf", ret) != 1)
		return -EPIPE;
	return 0;
}

void peer_stop(struct peer *p)
{
	procs_kill(p->pid);
	if (p->to)
		fclose(p->to);
	if (p->from)
		fclose(p->from);
	memset(p, 0, sizeof(*p));
}
