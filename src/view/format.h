/* SPDX-License-Identifier: MIT */
/* Numbers as people read them in a table. */
#ifndef FRESHET_FORMAT_H
#define FRESHET_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/* Text of a rate ("-", "0.0", "99.9", "12800") and of a CPU time ("0.00", "1:02.03", "1:02:03",
 * "3d04h"), for columns at most 7 and 8 bytes wide. size at least 16. */
void format_percent(double percent, char *buf, size_t size);
void format_time(uint64_t ns, char *buf, size_t size);

#endif
