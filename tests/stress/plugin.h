/* SPDX-License-Identifier: MIT */
/* What plugin.c gives to plugins.c. */
#ifndef STRESS_PLUGIN_H
#define STRESS_PLUGIN_H

#include <freshet/freshet.h>

struct plugin {
	int (*start)(enum freshet_backend backend);
	int (*update)(unsigned n); /* any thread; 0 or what an update gave */
	uint64_t (*stop)(void);    /* how many there were; 0 if the numbers disagree */
};

extern const struct plugin plugin;

#endif
