/* SPDX-License-Identifier: MIT */
/* The list of designs. */
#include <string.h>

#include "designs/all.h"

const struct bench_design *const bench_designs[] = {
	&design_global_lock,
	&design_global_lock_nosync,
	&design_lock_break,
	&design_lock_break_8,
	&design_subsystem_lock,
	&design_subsystem_lock_nofence,
	&design_atomic,
	&design_seqlock,
	&design_seqlock_fresh,
	&design_freshet,
	&design_freshet_fallback,
	NULL,
};

const struct bench_design *bench_design_find(const char *name)
{
	for (unsigned i = 0; bench_designs[i]; i++)
		if (!strcmp(bench_designs[i]->name, name))
			return bench_designs[i];
	return NULL;
}
