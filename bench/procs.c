/* SPDX-License-Identifier: MIT */
/* Implements procs.h. */
#include "procs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define THREAD_STACK (256 * 1024)
#define TOUCH_NS     (100 * NSEC_PER_USEC)

/* The CPUs this process was started with, before it was pinned. */
static cpu_set_t *allowed(void)
{
	static cpu_set_t set;

	if (CPU_COUNT(&set) == 0 && sched_getaffinity(0, sizeof(set), &set) < 0)
		CPU_SET(0, &set);
	return &set;
}

int procs_first_cpu(void)
{
	int cpu = 0;

	while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, allowed()))
		cpu++;
	return cpu;
}

int procs_last_cpu(void)
{
	int cpu = CPU_SETSIZE - 1;

	while (cpu > 0 && !CPU_ISSET(cpu, allowed()))
		cpu--;
	return cpu;
}

unsigned procs_cpus(void)
{
	return (unsigned)CPU_COUNT(allowed());
}

int procs_nth_cpu(unsigned n)
{
	int cpu = procs_first_cpu();

	for (n %= procs_cpus(); n; n--)
		do
			cpu++;
		while (!CPU_ISSET(cpu, allowed()));
	return cpu;
}

void procs_pin(pid_t pid, int cpu)
{
	cpu_set_t set;

	allowed(); /* remembers them */
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(pid, sizeof(set), &set) < 0)
		fprintf(stderr, "freshet-bench: cannot run on CPU %d: %s\n", cpu, strerror(errno));
}

void procs_unpin(void)
{
	sched_setaffinity(0, sizeof(cpu_set_t), allowed());
}

int procs_thread(pthread_t *ret, int cpu, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	cpu_set_t set;
	int err;

	allowed(); /* remembers them */
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	err = pthread_create(ret, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return -err;
}

void procs_realtime(int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	sched_setscheduler(0, (priority ? SCHED_FIFO : SCHED_OTHER) | SCHED_RESET_ON_FORK, &param);
}

static void die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

pid_t procs_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		die_with(parent);
	return pid;
}

pid_t procs_fork_into(const char *cgroup)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	int dir = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t parent = getpid();
	long pid;

	if (dir < 0)
		return -1;
	args.cgroup = (uint64_t)dir;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	close(dir);
	if (pid == 0)
		die_with(parent);
	return (pid_t)pid;
}

void procs_kill_all(const pid_t *pids, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
	for (unsigned i = 0; i < count; i++)
		while (pids[i] > 0 && waitpid(pids[i], NULL, 0) < 0 && errno == EINTR)
			;
}

void procs_kill(pid_t pid)
{
	procs_kill_all(&pid, 1);
}

void procs_sleep(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

void procs_beside(const char *name, char *path, size_t size)
{
	char self[4096], *slash;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[len < 0 ? 0 : len] = 0;
	slash = strrchr(self, '/');
	snprintf(path, size, "%.*s/%s", (int)(slash ? slash - self : 0), self, name);
}

pid_t procs_burn(const char *cgroup, int cpu)
{
	pid_t pid = procs_fork_into(cgroup);

	if (pid == 0) {
		procs_pin(0, cpu);
		for (volatile unsigned x = 0;; x = x + 1)
			;
	}
	if (pid < 0)
		fprintf(stderr, "freshet-bench: no process in %s: %s\n", cgroup, strerror(errno));
	return pid;
}

static int touch(const char *cgroup)
{
	pid_t pid = procs_fork_into(cgroup);

	if (pid == 0) {
		uint64_t end = clock_ns() + TOUCH_NS;

		while (clock_ns() < end)
			;
		_exit(0);
	}
	if (pid < 0)
		return -errno;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

static void serve_touches(int s, const struct cgroups *c)
{
	uint32_t step;

	while (read(s, &step, sizeof(step)) == sizeof(step)) {
		int err = 0;

		for (uint32_t i = 0; i < c->count && !err; i += step)
			err = touch(c->path[i]);
		if (write(s, &err, sizeof(err)) != sizeof(err))
			break;
	}
}

int toucher_start(struct toucher *t, const struct cgroups *c)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		fprintf(stderr, "freshet-bench: socketpair: %s\n", strerror(errno));
		return -1;
	}
	t->pid = procs_fork();
	if (t->pid == 0) {
		close(pair[0]);
		procs_pin(0, procs_last_cpu());
		serve_touches(pair[1], c);
		_exit(0);
	}
	close(pair[1]);
	t->socket = pair[0];
	if (t->pid < 0) {
		fprintf(stderr, "freshet-bench: fork: %s\n", strerror(errno));
		close(pair[0]);
		return -1;
	}
	return 0;
}

int toucher_touch(struct toucher *t, uint32_t step)
{
	int err = -EPIPE;

	if (send(t->socket, &step, sizeof(step), MSG_NOSIGNAL) != sizeof(step) ||
	    read(t->socket, &err, sizeof(err)) != sizeof(err) || err) {
		fprintf(stderr, "freshet-bench: no process in a cgroup: %s\n", strerror(-err));
		return -1;
	}
	return 0;
}

void toucher_stop(struct toucher *t)
{
	if (t->pid <= 0)
		return;
	close(t->socket);
	procs_kill(t->pid);
	t->pid = 0;
}
