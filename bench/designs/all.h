/* SPDX-License-Identifier: MIT */
/* The designs, by file. */
#ifndef FRESHET_BENCH_DESIGNS_ALL_H
#define FRESHET_BENCH_DESIGNS_ALL_H

#include "designs/design.h"

extern const struct bench_design design_global_lock, design_global_lock_nosync;
extern const struct bench_design design_freshet, design_freshet_fallback;

#endif
