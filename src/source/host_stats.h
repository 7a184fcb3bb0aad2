/* SPDX-License-Identifier: MIT */
/*
 * The columns of the host's segment: every number of a cgroup that Freshet publishes, declared once.
 * Metric names, HELP texts, JSON keys and the manual come from this list.
 *
 * X(id, family, name, key, kind, unit, set, help)
 */
#ifndef FRESHET_HOST_STATS_H
#define FRESHET_HOST_STATS_H

#include <freshet/freshet.h>

/* clang-format off */
#define HOST_STATS(X)                                                                              \
	X(USAGE, "cpu", "usage", "usage_usec", FRESHET_COUNTER, FRESHET_NANOSECONDS, 0,            \
	  "CPU time used by the cgroup and its descendants, removed ones included.")               \
	X(USER, "cpu", "user", "user_usec", FRESHET_COUNTER, FRESHET_NANOSECONDS, 0,               \
	  "CPU time spent in user mode.")                                                          \
	X(SYSTEM, "cpu", "system", "system_usec", FRESHET_COUNTER, FRESHET_NANOSECONDS, 0,         \
	  "CPU time spent in the kernel.")                                                         \
	X(NICE, "cpu", "nice", "nice_usec", FRESHET_COUNTER, FRESHET_NANOSECONDS, 0,               \
	  "CPU time spent in user mode by processes with a positive nice value.")                  \
	X(FORCE_IDLE, "cpu", "force_idle", "core_sched.force_idle_usec", FRESHET_COUNTER,          \
	  FRESHET_NANOSECONDS, 0, "Time that core scheduling kept SMT siblings idle.")             \
	X(PERIODS, "cpu", "periods", "nr_periods", FRESHET_COUNTER, FRESHET_COUNT, 1,              \
	  "Bandwidth enforcement periods of the cgroup itself.")                                   \
	X(THROTTLED_PERIODS, "cpu", "throttled_periods", "nr_throttled", FRESHET_COUNTER,          \
	  FRESHET_COUNT, 1, "Periods in which the cgroup was throttled.")                          \
	X(THROTTLED, "cpu", "throttled", "throttled_usec", FRESHET_COUNTER, FRESHET_NANOSECONDS,   \
	  1, "Time the cgroup was throttled, summed over CPUs.")                                   \
	X(BURSTS, "cpu", "bursts", "nr_bursts", FRESHET_COUNTER, FRESHET_COUNT, 1,                 \
	  "Periods in which the cgroup used its burst allowance.")                                 \
	X(BURST, "cpu", "burst", "burst_usec", FRESHET_COUNTER, FRESHET_NANOSECONDS, 1,            \
	  "CPU time used above the quota, out of the burst allowance.")
/* clang-format on */

enum host_stat {
#define X(id, ...) HOST_##id,
	HOST_STATS(X)
#undef X
	HOST_NSTATS
};

extern const struct freshet_stat host_stats[HOST_NSTATS];

#endif
