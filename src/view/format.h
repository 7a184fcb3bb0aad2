/* SPDX-License-Identifier: MIT */
/* Numbers as people read them in a table. */
#ifndef FRESHET_FORMAT_H
#define FRESHET_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include <freshet/freshet.h>

#include "base/buf.h"

/* Text of a rate ("-", "0.0", "99.9", "12800") and of a CPU time ("0.00", "1:02.03", "1:02:03",
 * "3d04h"), for columns at most 7 and 8 bytes wide. size at least 16. */
void format_percent(double percent, char *buf, size_t size);
void format_time(uint64_t ns, char *buf, size_t size);

/* Time for a column at most 7 bytes wide, to three digits: "999ns", "1.25us", "17.3ms", "12s", "2h". */
void format_duration(uint64_t ns, char *buf, size_t size);

/* A number for a column at most 7 bytes wide: "0", "0.5", "123.4", "9999", "12.3k", "4.56G". */
void format_count(double value, char *buf, size_t size);

/*
 * What a number under a source's own key is divided by: keys say the unit of times ("usage_usec"),
 * segments hold them in ns. 1000 for those in microseconds; everything else is shown as it is.
 */
unsigned format_divisor(const char *key, enum freshet_unit unit);

/* A stat's number under its own key: whole, divided as the key says. */
void format_stat(struct buf *out, const struct freshet_stat *stat, uint64_t value);

/* A number divided by 1 or 1000, exact: with up to three decimals. */
void format_exact(struct buf *out, uint64_t value, unsigned divisor);

#endif
