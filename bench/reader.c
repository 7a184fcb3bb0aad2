/* SPDX-License-Identifier: MIT */
/*
 * Implements reader.h. The reader answers through shared memory, since it may make no system call:
 * it sets `done` and spins until it is killed.
 */
#include "reader.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <freshet/freshet.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "procs.h"
#include "source/host_stats.h"

#define READS_A_SAMPLE 100000

struct shared {
	int done;  /* 1: the samples are complete. Stored with release by the reader; pairs with
		    * the acquire in reader_measure() */
	int error; /* 0 or -errno, valid with done */
	uint64_t passes; /* different ones that the reads met */
	struct stats ns;
};

/* The columns of the CPU set stand at the beginning. */
static unsigned cpu_columns(void)
{
	unsigned n = 0;

	while (n < HOST_NSTATS && host_stats[n].set == host_stats[0].set)
		n++;
	return n;
}

static int forbid_system_calls(void)
{
	struct sock_filter kill_all[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS) };
	struct sock_fprog program = { .len = 1, .filter = kill_all };
	const struct rlimit no_core = { 0, 0 };

	setrlimit(RLIMIT_CORE, &no_core);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
		return -errno;
	return 0;
}

static int read_samples(const struct freshet_view *view, struct freshet_group group, size_t samples,
			struct shared *s)
{
	uint64_t value[HOST_NSTATS], present = 0, pass = 0;
	const unsigned count = cpu_columns();
	int err = 0;

	while (s->ns.count < samples && !err) {
		struct freshet_moment moment;
		uint64_t begin = clock_ns();

		for (int i = 0; i < READS_A_SAMPLE && !err; i++)
			err = freshet_read_total(view, group, 0, count, value, &present, NULL);
		stats_add(&s->ns, (double)(clock_ns() - begin) / READS_A_SAMPLE);
		if (!err && !(present & 1))
			err = -ENODATA;
		if (!err)
			err = freshet_last_pass(view, &moment);
		if (!err && moment.pass != pass) {
			pass = moment.pass;
			s->passes++;
		}
	}
	return err;
}

/* In the reader. */
static void read_and_spin(const char *segment, const char *path, size_t samples, struct shared *s)
{
	struct freshet_view *view = NULL;
	struct freshet_group group;

	s->error = freshet_attach(segment, &view);
	if (!s->error)
		s->error = freshet_find(view, path, &group);
	if (!s->error)
		s->error = forbid_system_calls();
	if (!s->error)
		s->error = read_samples(view, group, samples, s);
	store_release(&s->done, 1);
	for (;;) /* to return would be a system call */
		;
}

int reader_measure(const char *segment, const char *path, int cpu, size_t samples,
		   int (*publish)(void *arg), void *arg, struct stats *ns)
{
	struct shared *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err = 0, status;
	pid_t pid;

	if (s == MAP_FAILED)
		return -errno;
	pid = procs_fork();
	if (pid == 0) {
		procs_pin(0, cpu);
		procs_realtime(1);
		read_and_spin(segment, path, samples, s);
	}
	if (pid < 0)
		err = -errno;
	procs_realtime(2); /* before the reader, should there be one CPU only */
	while (!err && !load_acquire(&s->done)) { /* pairs with read_and_spin() */
		if (waitpid(pid, &status, WNOHANG) == pid) {
			err = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS ? -EPERM : -ECHILD;
			pid = -1;
			break;
		}
		err = publish(arg);
		procs_sleep(100 * NSEC_PER_MSEC);
	}
	procs_realtime(0);
	procs_kill(pid);
	if (!err)
		err = s->error;
	if (!err && s->passes < 2)
		err = -ETIME; /* it was not read while it was published */
	if (!err)
		*ns = s->ns;
	munmap(s, sizeof(*s));
	return err;
}
