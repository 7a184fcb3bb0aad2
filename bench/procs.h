/* SPDX-License-Identifier: MIT */
/* Processes and threads beside the one that measures: on which CPU, in which cgroup, and that they
 * end. */
#ifndef FRESHET_BENCH_PROCS_H
#define FRESHET_BENCH_PROCS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cgroups.h"

/* The first and the last CPU we may run on. The bench measures on the first. */
int procs_first_cpu(void);
int procs_last_cpu(void);
unsigned procs_cpus(void);          /* that we may run on */
int procs_nth_cpu(unsigned n);      /* number n of those we may run on, from 0, and round again */
void procs_pin(pid_t pid, int cpu); /* pid 0: the caller */
void procs_unpin(void);             /* the caller may run everywhere again */

/* pthread_create() on that CPU: a thread that pinned itself might have to wait first for its maker,
 * should that run on the same CPU in real time. 0 or -errno. */
int procs_thread(pthread_t *ret, int cpu, void *(*run)(void *), void *arg);

/*
 * Runs the caller before ordinary processes (priority 1 or 2), or as one of them (0), so that what
 * else runs here disturbs caches at most. Its children are ordinary. Without the privilege nothing
 * happens.
 */
void procs_realtime(int priority);

/* fork(); the child is killed when the caller ends. */
pid_t procs_fork(void);

/* The same, into a cgroup: much cheaper than moving there, which waits for all CPUs. -1, errno. */
pid_t procs_fork_into(const char *cgroup);

/* SIGKILL, and waits. */
void procs_kill(pid_t pid);

/* All at once: one that is killed must get a CPU to end, which those that still work would have. */
void procs_kill_all(const pid_t *pids, unsigned count);

void procs_sleep(uint64_t ns);

/* The path of a program that lies beside this one. */
void procs_beside(const char *name, char *path, size_t size);

/* Uses a whole CPU, inside the cgroup. -1 after a message. */
pid_t procs_burn(const char *cgroup, int cpu);

/* A process that makes cgroups' counters move, on another CPU. */
struct toucher {
	pid_t pid;
	int socket;
};

/* c must not change while it runs. 0, or -1 after a message. */
int toucher_start(struct toucher *t, const struct cgroups *c);

/* Every step-th cgroup gets a process that uses some CPU time in it and ends. 0, or -1 after a
 * message. */
int toucher_touch(struct toucher *t, uint32_t step);

void toucher_stop(struct toucher *t);

#endif
