/* SPDX-License-Identifier: MIT */
/* Durations as people write them: "4ms", "1s", "1.5s", "2m". */
#ifndef FRESHET_DURATION_H
#define FRESHET_DURATION_H

#include <stdint.h>

/*
 * A decimal number and a unit (ns, us, ms, s, m, h) into nanoseconds; "0" needs no unit. What is
 * finer than a nanosecond is cut off. -EINVAL: not a duration; -ERANGE: above 292 years.
 */
int duration_parse(const char *text, uint64_t *ret_ns);

#endif
