/* SPDX-License-Identifier: MIT */
/* The designs, by file. */
#ifndef FRESHET_BENCH_DESIGNS_ALL_H
#define FRESHET_BENCH_DESIGNS_ALL_H

#include "designs/design.h"

extern const struct bench_design design_global_lock, design_global_lock_nosync;
extern const struct bench_design design_lock_break, design_lock_break_8;
extern const struct bench_design design_subsystem_lock, design_subsystem_lock_nofence;
extern const struct bench_design design_atomic;
extern const struct bench_design design_seqlock, design_seqlock_fresh;
extern const struct bench_design design_freshet, design_freshet_fallback;

#endif
