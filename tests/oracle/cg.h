/* SPDX-License-Identifier: MIT */
/*
 * Real cgroups for tests: one folder of the test's own below the cgroup2 mount, processes that burn
 * CPU time in them, and the kernel's own cpu.stat to compare with. Everything made is removed at
 * exit. No test runs where cgroup2 is missing or cannot be written to.
 */
#ifndef FRESHET_TEST_CG_H
#define FRESHET_TEST_CG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "source/host_stats.h"

#define CG_PATH 4600

/* The test's folder, made on first call; NULL with *why set where that is impossible. */
const char *cg_home(const char **why);

/* The cgroup2 mount point. */
const char *cg_mount(void);

/* path is relative to the folder, "" the folder itself. All give 0 or -errno. */
int cg_make(const char *path);
int cg_remove(const char *path);
int cg_remove_wait(const char *path); /* again while it is busy: its last process may still exit */
void cg_full(const char *path, char *ret); /* absolute; CG_PATH bytes */
int cg_write(const char *path, const char *file, const char *text);

uint64_t cg_id(const char *path); /* inode number; 0: no such cgroup */

struct cg_stat {
	uint64_t usage, user, system, nice; /* us */
	uint64_t periods, throttled, throttled_usec;
	int has_nice, has_throttle;
};
/* cpu.stat, opened, read and closed, as agents do. */
int cg_read(const char *path, struct cg_stat *ret);
int cg_read_file(const char *absolute, struct cg_stat *ret);

/* A process in the cgroup that burns CPU time until killed; its pid. */
enum cg_burn { CG_USER, CG_SYSTEM, CG_MIXED, CG_NICE };
pid_t cg_burn(const char *path, enum cg_burn how);
/* Kills and reaps. */
void cg_kill(pid_t pid);
/* A process that joins the cgroup, burns us microseconds of CPU time, and ends; not waited for. */
pid_t cg_burn_for(const char *path, unsigned us);

/* Waits until cpu.stat of path says the same twice, 20 ms apart, and has no dying descendants. */
void cg_rest(const char *path);

#endif
