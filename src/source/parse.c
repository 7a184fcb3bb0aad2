/* SPDX-License-Identifier: MIT */
/*
 * Implements parse.h. Nothing is trusted: a line is taken only when it is "key value\n" with a key
 * we know, one blank and a number that fits; every other line is skipped. Of a key that comes twice
 * the first counts. A last line without its newline may have been cut in the middle of the number,
 * so it is skipped as well.
 */
#include "source/parse.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

static const struct {
	const char *text;
	size_t len;
} keys[HOST_NSTATS] = {
#define X(id, family, name, key, ...) [HOST_##id] = { key, sizeof(key) - 1 },
	HOST_STATS(X)
#undef X
};

int parse_u64(const char *text, size_t len, uint64_t *ret)
{
	uint64_t v = 0;
	int r = 0;

	if (!len)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		unsigned digit = (unsigned char)text[i] - (unsigned)'0';

		if (digit > 9)
			return -EINVAL;
		if (v > UINT64_MAX / 10 || v * 10 > UINT64_MAX - digit)
			r = -ERANGE;
		v = v * 10 + digit;
	}
	if (!r)
		*ret = v;
	return r;
}

/* The column of family "cpu" with this key, or HOST_NSTATS. The kernel prints the columns in our
 * order, so the search starts at the one after the last found. */
static unsigned cpu_column(const char *key, size_t len, unsigned start)
{
	for (unsigned n = 0; n < HOST_NSTATS; n++) {
		unsigned i = start + n < HOST_NSTATS ? start + n : start + n - HOST_NSTATS;

		if (len == keys[i].len && !memcmp(key, keys[i].text, len) &&
		    !strcmp(host_stats[i].family, "cpu"))
			return i;
	}
	return HOST_NSTATS;
}

int parse_cpu_stat(const char *text, size_t len, uint64_t value[HOST_NSTATS], uint64_t *present)
{
	uint64_t found = 0, got[HOST_NSTATS];
	const char *newline;
	unsigned next = 0;

	for (; len && (newline = memchr(text, '\n', len)); text = newline + 1) {
		size_t line = (size_t)(newline - text);
		const char *blank = memchr(text, ' ', line);
		uint64_t v, unit;
		unsigned i;

		len -= line + 1;
		if (!blank)
			continue;
		i = cpu_column(text, (size_t)(blank - text), next);
		if (i == HOST_NSTATS || found >> i & 1)
			continue;
		if (parse_u64(blank + 1, (size_t)(newline - blank - 1), &v) < 0)
			continue;
		unit = host_stats[i].unit == FRESHET_NANOSECONDS ? NSEC_PER_USEC : 1;
		if (v > UINT64_MAX / unit)
			continue;
		got[i] = v * unit;
		found |= 1ull << i;
		next = i + 1;
	}
	if (!found)
		return -ENODATA;
	for (unsigned i = 0; i < HOST_NSTATS; i++) {
		if (found >> i & 1)
			value[i] = got[i];
	}
	*present = found;
	return 0;
}

int parse_cpu_list(const char *text, size_t len, uint32_t *cpu, size_t capacity)
{
	uint64_t next = 0; /* the lowest number that may come */
	size_t count = 0;

	if (len && text[len - 1] == '\n')
		len--;
	if (!len)
		return 0;
	for (;;) {
		const char *comma = memchr(text, ',', len);
		size_t part = comma ? (size_t)(comma - text) : len;
		const char *dash = memchr(text, '-', part);
		size_t head = dash ? (size_t)(dash - text) : part;
		uint64_t first, last;

		if (parse_u64(text, head, &first) < 0)
			return -EINVAL;
		last = first;
		if (dash && parse_u64(dash + 1, part - head - 1, &last) < 0)
			return -EINVAL;
		if (first < next || last < first || last > INT32_MAX)
			return -EINVAL;
		if (last - first >= capacity - count)
			return -E2BIG;
		for (next = first; next <= last; next++)
			cpu[count++] = (uint32_t)next;
		if (!comma)
			return (int)count;
		text = comma + 1;
		len -= part + 1;
	}
}
