/* SPDX-License-Identifier: MIT */
/* How many CPUs this machine has, and can ever have. */
#ifndef FRESHET_CPUS_H
#define FRESHET_CPUS_H

/* One more than the highest CPU number possible: at least 1. */
unsigned cpus_possible(void);

/* How many there are at the moment: at least 1. */
unsigned cpus_online(void);

#endif
