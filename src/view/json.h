/* SPDX-License-Identifier: MIT */
/*
 * Groups as JSON (RFC 8259). Pure: from entries into a buffer; errors are in out->error.
 *
 * A group's stats stand in one object per family, under the source's own keys and in the units
 * those keys name: times in microseconds where the key ends in "usec", else in nanoseconds. What a
 * group does not have is left out. A histogram is {"count":3,"sum":70,"p50":15,"p90":31,"p99":31,
 * "max":31,"buckets":[[15,2],[31,1]]}: each bucket that is not empty by the largest value it counts,
 * null for the last one, which counts all larger ones. Names are bytes,
 * JSON is UTF-8: bytes that are none become U+FFFD; "id" tells groups apart in any case.
 */
#ifndef FRESHET_JSON_H
#define FRESHET_JSON_H

#include <stddef.h>
#include <stdint.h>

#include <freshet/freshet.h>

#include "base/buf.h"

#define JSON_ALL_DEPTHS UINT32_MAX

struct json_schema {
	const struct freshet_stat *stats;
	size_t nstats;
	const struct freshet_histogram *histograms;
	size_t nhistograms;
};

/*
 * A tree is two parts, because the first is new with every answer and the second only with every
 * pass: {"pass":7,"age_us":1200, and "groups":[...]}, the latter with a newline at its end.
 * left_out: groups of the pass that found no room in the segment; unless 0 the head has
 * "left_out":N too. segment NULL: not named.
 */
void json_head(struct buf *out, const char *segment, uint64_t pass, uint64_t age_ns,
	       uint64_t left_out);

/*
 * "groups" of the subtree at `at`, in pre-order, down to depth levels below it. entries is the
 * whole snapshot. Each group is {"path","id","parent","cpu":{...}}; "parent" is the id of the group
 * above and is missing in the first, so that a subtree says nothing about what is around it. Groups
 * whose path does not fit into FRESHET_PATH_MAX are left out.
 */
void json_groups(struct buf *out, const struct json_schema *schema,
		 const struct freshet_entry *entries, size_t at, uint32_t depth);

/* One group on a line of its own: {"path","id","age_us","cpu":{...}}. */
void json_group(struct buf *out, const struct json_schema *schema, const char *path, uint64_t id,
		uint64_t age_ns, const uint64_t *values, uint64_t present);

/* A string with its quotes. */
void json_string(struct buf *out, const char *s);

#endif
