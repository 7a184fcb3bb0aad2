/* SPDX-License-Identifier: MIT */
/* Implements format.h. */
#include "view/format.h"

#include <math.h>
#include <stdio.h>

void format_percent(double percent, char *buf, size_t size)
{
	if (isnan(percent))
		snprintf(buf, size, "-");
	else
		snprintf(buf, size, percent < 9999.95 ? "%.1f" : "%.0f", percent);
}

void format_time(uint64_t ns, char *buf, size_t size)
{
	uint64_t centi = ns / 10000000, s = centi / 100;

	if (s < 60)
		snprintf(buf, size, "%u.%02u", (unsigned)s, (unsigned)(centi % 100));
	else if (s < 3600)
		snprintf(buf, size, "%u:%02u.%02u", (unsigned)(s / 60), (unsigned)(s % 60),
			 (unsigned)(centi % 100));
	else if (s < 100 * 3600)
		snprintf(buf, size, "%u:%02u:%02u", (unsigned)(s / 3600), (unsigned)(s / 60 % 60),
			 (unsigned)(s % 60));
	else
		snprintf(buf, size, "%llud%02uh", (unsigned long long)(s / 86400),
			 (unsigned)(s / 3600 % 24));
}
