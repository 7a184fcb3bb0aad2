/* SPDX-License-Identifier: MIT */
/* Runs a bench in a child, so that its cgroups and files go away however it ends. */
#ifndef FRESHET_BENCH_SUPERVISE_H
#define FRESHET_BENCH_SUPERVISE_H

#include <stdbool.h>

/*
 * Makes the temporary directory of cgroups.h and, with cgroups, the folder, runs body() in a child,
 * waits for it, removes them. SIGINT,
 * SIGTERM and SIGHUP end the child and then, after the removal, this process. Returns what body()
 * returned, which must be an exit code; 1 if the child was killed.
 */
int supervise(int (*body)(void), bool cgroups);

#endif
