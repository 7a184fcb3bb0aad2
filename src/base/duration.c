/* SPDX-License-Identifier: MIT */
/* Implements duration.h, in integers: "0.1s" is exactly 100,000,000 ns. */
#include "base/duration.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "ns", 1 },	     { "us", 1000 },	      { "ms", 1000000 },
	{ "s", 1000000000 }, { "m", 60000000000ull }, { "h", 3600000000000ull },
};

int duration_parse(const char *text, uint64_t *ret_ns)
{
	uint64_t whole = 0, fraction = 0, divisor = 1, unit = 0, ns;
	const char *p = text;
	int digits = 0;

	for (; *p >= '0' && *p <= '9'; p++, digits++)
		if (__builtin_mul_overflow(whole, 10u, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole))
			return -ERANGE;
	if (*p == '.') {
		/* 12 decimals of an hour are below a nanosecond; further ones change nothing. */
		for (p++; *p >= '0' && *p <= '9'; p++, digits++)
			if (divisor < 1000000000000ull) {
				fraction = fraction * 10 + (uint64_t)(*p - '0');
				divisor *= 10;
			}
	}
	if (!digits)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (strcmp(p, units[i].name) == 0)
			unit = units[i].ns;
	if (!unit) {
		if (*p || whole || fraction)
			return -EINVAL;
		unit = 1;
	}
	if (__builtin_mul_overflow(whole, unit, &ns))
		return -ERANGE;
	/* Units are at most 36 * 10^11; without common tens the product is below 36 * 10^12. */
	for (; divisor > 1 && unit % 10 == 0; unit /= 10)
		divisor /= 10;
	if (__builtin_add_overflow(ns, fraction * unit / divisor, &ns) || ns > INT64_MAX)
		return -ERANGE;
	*ret_ns = ns;
	return 0;
}
