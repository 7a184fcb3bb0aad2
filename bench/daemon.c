/* SPDX-License-Identifier: MIT */
/* Implements daemon.h. */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cgroups.h"
#include "procs.h"

#define START_NS (20 * NSEC_PER_SEC)
#define STOP_NS  (5 * NSEC_PER_SEC)

static void program(char *ret, size_t size)
{
	const char *given = getenv("FRESHET");

	if (given && *given)
		snprintf(ret, size, "%s", given);
	else
		procs_beside("freshet", ret, size);
}

static void run(const char *root, const char *interval, const char *segment, const char *log)
{
	int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char path[4096];

	program(path, sizeof(path));
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	execl(path, path, "serve", "--root", root, "--interval", interval, "--listen",
	      "127.0.0.1:0", "--segment", segment, "--source", "bpf", (char *)NULL);
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	_exit(127);
}

/* The port, once the daemon has said "http://ADDRESS:PORT/"; else 0. text: what it said. */
static int find_port(const char *log, char *text, size_t size)
{
	int fd = open(log, O_RDONLY | O_CLOEXEC), port = 0;
	ssize_t len = fd < 0 ? 0 : read(fd, text, size - 1);
	char *at;

	if (fd >= 0)
		close(fd);
	text[len < 0 ? 0 : len] = 0;
	at = strstr(text, "http://127.0.0.1:");
	if (!at || sscanf(at, "http://127.0.0.1:%d/", &port) != 1)
		return 0;
	return strchr(at, '\n') ? port : 0;
}

int daemon_start(struct daemon *d, const char *root, const char *interval)
{
	uint64_t end = clock_ns() + START_NS;
	char log[96], said[4096] = "";
	int err;

	*d = (struct daemon){ 0 };
	snprintf(d->segment, sizeof(d->segment), "%s/serve", cgroups_temporary());
	snprintf(log, sizeof(log), "%s/serve.log", cgroups_temporary());
	unlink(log);
	d->pid = procs_fork();
	if (d->pid == 0)
		run(root, interval, d->segment, log);
	while (d->pid > 0 && clock_ns() < end) {
		d->port = find_port(log, said, sizeof(said));
		if (d->port || waitpid(d->pid, NULL, WNOHANG) == d->pid)
			break;
		procs_sleep(5 * NSEC_PER_MSEC);
	}
	if (!d->port) {
		fprintf(stderr, "freshet-bench: 'freshet serve' does not start: %s\n",
			*said ? said : "it says nothing");
		procs_kill(d->pid);
		return -1;
	}
	err = clock_getcpuclockid(d->pid, &d->clock);
	if (err) {
		fprintf(stderr, "freshet-bench: CPU time of 'freshet serve': %s\n", strerror(err));
		daemon_stop(d);
		return -1;
	}
	return 0;
}

void daemon_stop(struct daemon *d)
{
	uint64_t end = clock_ns() + STOP_NS;

	if (d->pid <= 0)
		return;
	kill(d->pid, SIGTERM);
	while (waitpid(d->pid, NULL, WNOHANG) == 0) {
		if (clock_ns() > end) {
			procs_kill(d->pid);
			break;
		}
		procs_sleep(5 * NSEC_PER_MSEC);
	}
	d->pid = 0;
}

static double cpu_ns(const struct daemon *d)
{
	struct timespec ts;

	if (clock_gettime(d->clock, &ts) < 0)
		return -1;
	return (double)ts.tv_sec * NSEC_PER_SEC + (double)ts.tv_nsec;
}

double daemon_cpu_pct(const struct daemon *d, double seconds)
{
	double before = cpu_ns(d), after;
	uint64_t begin = clock_ns();

	procs_sleep((uint64_t)(seconds * NSEC_PER_SEC));
	after = cpu_ns(d);
	if (before < 0 || after < 0)
		return -1;
	return (after - before) / (double)(clock_ns() - begin) * 100;
}

long daemon_rss_kb(const struct daemon *d)
{
	char path[64], line[256];
	long kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)d->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}
