/* SPDX-License-Identifier: MIT */
/* Runs a bench in a child, so that its cgroups go away however it ends. */
#ifndef FRESHET_BENCH_SUPERVISE_H
#define FRESHET_BENCH_SUPERVISE_H

/*
 * Makes the folder of cgroups.h, runs body() in a child, waits for it, removes the folder. SIGINT,
 * SIGTERM and SIGHUP end the child and then, after the removal, this process. Returns what body()
 * returned, which must be an exit code; 1 if the child was killed.
 */
int supervise(int (*body)(void));

#endif
