/* SPDX-License-Identifier: MIT */
/* What the HTTP server keeps of its renderings is bounded, by number and by size. */
#include "view/http_body.h"

#include <stdio.h>
#include <stdlib.h>

#include "tap.h"

/* Puts n bodies of len bytes; gives how many the cache still has, which must be the newest. */
static unsigned kept(unsigned n, size_t len)
{
	struct body_cache cache = { 0 };
	unsigned count = 0;
	size_t live = 0;
	char key[16];

	body_cache_pass(&cache, 1);
	for (unsigned i = 0; i < n; i++) {
		struct buf text = { .data = calloc(1, len), .len = len, .capacity = len };
		struct body *b = text.data ? body_new(&text, &live) : NULL;

		if (!b)
			abort();
		snprintf(key, sizeof(key), "%u", i);
		body_cache_put(&cache, key, b);
		body_unref(b);
	}
	for (unsigned i = n; i-- > 0;) {
		snprintf(key, sizeof(key), "%u", i);
		if (!body_cache_get(&cache, key))
			break;
		count++;
	}
	EXPECT_EQ(live, count * len);
	body_cache_clear(&cache);
	EXPECT_EQ(live, 0);
	return count;
}

TEST(the_oldest_are_given_up)
{
	EXPECT_EQ(kept(10, 100), 10);
	EXPECT_EQ(kept(BODY_CACHE_ENTRIES + 10, 100), BODY_CACHE_ENTRIES);
	EXPECT_EQ(kept(40, BODY_CACHE_BYTES / 8), 8);
	EXPECT_EQ(kept(40, BODY_CACHE_BYTES / 2), BODY_CACHE_BODIES);
	EXPECT_EQ(kept(3, 2 * BODY_CACHE_BYTES), 3);
}

TAP_MAIN
