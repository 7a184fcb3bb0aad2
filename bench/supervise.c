/* SPDX-License-Identifier: MIT */
/*
 * Implements supervise.h. The parent takes signals with sigwaitinfo(), so that it cleans up in plain
 * code and not in a handler. Processes that the child started end with it (procs.h) or are killed
 * with their cgroup.
 */
#include "supervise.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroups.h"
#include "procs.h"

/* Waits until the child has ended or a signal asks us to. Returns that signal, or 0. */
static int wait_for(pid_t child, const sigset_t *signals, int *status)
{
	for (;;) {
		int sig = sigwaitinfo(signals, NULL);

		if (sig == SIGCHLD && waitpid(child, status, WNOHANG) == child)
			return 0;
		if (sig < 0 || sig == SIGCHLD)
			continue;
		kill(child, SIGKILL);
		while (waitpid(child, status, 0) < 0 && errno == EINTR)
			;
		return sig;
	}
}

int supervise(int (*body)(void), bool cgroups)
{
	sigset_t signals, before;
	int status = 0, sig;
	pid_t child;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &before);
	if (cgroups_begin(cgroups) < 0) {
		cgroups_end();
		return 1;
	}
	child = procs_fork();
	if (child == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		_exit(body());
	}
	if (child < 0) {
		fprintf(stderr, "freshet-bench: fork: %s\n", strerror(errno));
		cgroups_end();
		return 1;
	}
	sig = wait_for(child, &signals, &status);
	cgroups_end();
	if (sig) {
		signal(sig, SIG_DFL);
		sigprocmask(SIG_UNBLOCK, &signals, NULL);
		raise(sig);
	}
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "freshet-bench: ended by signal %d\n", WTERMSIG(status));
		return 1;
	}
	return WEXITSTATUS(status);
}
