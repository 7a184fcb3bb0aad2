/* SPDX-License-Identifier: MIT */
/* The table behind host_stats.h. */
#include "source/host_stats.h"

const struct freshet_stat host_stats[HOST_NSTATS] = {
#define X(id, family_, name_, key_, kind_, unit_, set_, help_) \
	[HOST_##id] = { .family = (family_),                   \
			.name = (name_),                       \
			.key = (key_),                         \
			.help = (help_),                       \
			.kind = (kind_),                       \
			.unit = (unit_),                       \
			.set = (set_) },
	HOST_STATS(X)
#undef X
};
