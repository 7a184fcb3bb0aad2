/* SPDX-License-Identifier: MIT */
/* How many CPUs this machine can ever have. */
#ifndef FRESHET_CPUS_H
#define FRESHET_CPUS_H

/* One more than the highest CPU number possible: at least 1. */
unsigned cpus_possible(void);

#endif
