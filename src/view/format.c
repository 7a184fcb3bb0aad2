/* SPDX-License-Identifier: MIT */
/* Implements format.h. */
#include "view/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* To three digits. */
static void add_unit(double value, const char *unit, char *buf, size_t size)
{
	snprintf(buf, size, "%.*f%s",
		 fabs(value) < 9.995   ? 2
		 : fabs(value) < 99.95 ? 1
				       : 0,
		 value, unit);
}

void format_duration(uint64_t ns, char *buf, size_t size)
{
	double value = (double)ns;

	if (ns == UINT64_MAX)
		snprintf(buf, size, "inf");
	else if (ns < 1000)
		snprintf(buf, size, "%uns", (unsigned)ns);
	else if (value < 999.5e3)
		add_unit(value / 1e3, "us", buf, size);
	else if (value < 999.5e6)
		add_unit(value / 1e6, "ms", buf, size);
	else if (value < 9999.5e9)
		add_unit(value / 1e9, "s", buf, size);
	else
		snprintf(buf, size, "%.0fh", value / 3600e9);
}

void format_count(double value, char *buf, size_t size)
{
	static const char units[] = "kMGTPE";
	double magnitude = fabs(value);
	char unit[2] = "";

	if (isnan(value)) {
		snprintf(buf, size, "-");
		return;
	}
	if (magnitude < 9999.5) {
		snprintf(buf, size, magnitude == (double)(uint64_t)magnitude ? "%.0f" : "%.1f",
			 value);
		return;
	}
	for (unsigned i = 0; i < sizeof(units) - 1 && magnitude >= 999.5; i++) {
		magnitude /= 1000;
		unit[0] = units[i];
	}
	add_unit(value < 0 ? -magnitude : magnitude, unit, buf, size);
}

void format_exact(struct buf *out, uint64_t value, unsigned divisor)
{
	buf_u64(out, value / divisor);
	if (value % divisor)
		buf_printf(out, ".%03u", (unsigned)(value % divisor));
}

void format_stat(struct buf *out, const struct freshet_stat *stat, uint64_t value)
{
	if (stat->kind == FRESHET_GAUGE && (int64_t)value < 0) {
		buf_char(out, '-');
		value = 0 - value;
	}
	buf_u64(out, value / format_divisor(stat->key, stat->unit));
}

unsigned format_divisor(const char *key, enum freshet_unit unit)
{
	size_t len = strlen(key);

	return unit == FRESHET_NANOSECONDS && len >= 4 && strcmp(key + len - 4, "usec") == 0 ? 1000
											     : 1;
}
