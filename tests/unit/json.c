/* SPDX-License-Identifier: MIT */
/* JSON of groups, letter by letter, on a small tree. */
#include "view/json.h"

#include <string.h>

#include "tap.h"
#include "unit/view_tree.h"

#define FFFD "\xef\xbf\xbd"

static const struct json_schema schema = { .stats = stats, .nstats = NSTATS };

static const struct freshet_histogram histogram = HISTOGRAM;

static void same(struct buf *b, const char *wanted)
{
	buf_char(b, '\0');
	EXPECT(!b->error && strcmp(b->data, wanted) == 0, "\n# got:\n%s# wanted:\n%s", b->data,
	       wanted);
	buf_clear(b);
}

TEST(tree)
{
	struct buf b = BUF_INIT;

	json_head(&b, NULL, 7, 1234567, 0);
	json_groups(&b, &schema, entries, 0, JSON_ALL_DEPTHS);
	same(&b,
	     "{\"pass\":7,\"age_us\":1234,\"groups\":[\n"
	     "{\"path\":\"/\",\"id\":1,\"cpu\":{\"usage_usec\":5000000}},\n"
	     "{\"path\":\"/a\",\"id\":10,\"parent\":1,\"cpu\":{\"usage_usec\":1500000,"
	     "\"nr_periods\":7},\"memory\":{\"memory.current\":4096,\"trend\":-3}},\n"
	     "{\"path\":\"/a/\\\"\\\\\\u000a\",\"id\":11,\"parent\":10,"
	     "\"cpu\":{\"usage_usec\":0}},\n"
	     "{\"path\":\"/a/" FFFD "\",\"id\":12,\"parent\":10,\"cpu\":{\"usage_usec\":2}},\n"
	     "{\"path\":\"/a/" FFFD "/x\",\"id\":13,\"parent\":12,\"cpu\":{\"usage_usec\":3}},\n"
	     "{\"path\":\"/a/" FFFD "\",\"id\":14,\"parent\":10,\"cpu\":{\"usage_usec\":4}},\n"
	     "{\"path\":\"/b\",\"id\":20,\"parent\":1}\n"
	     "]}\n");
	buf_free(&b);
}

TEST(head_says_what_is_left_out)
{
	struct buf b = BUF_INIT;

	json_head(&b, NULL, 7, 1234567, 290);
	same(&b, "{\"pass\":7,\"age_us\":1234,\"left_out\":290,");
	buf_free(&b);
}

TEST(histograms)
{
	const struct json_schema program = { stats, NSTATS, &histogram, 1 };
	struct buf b = BUF_INIT;

	json_head(&b, "x\"", 7, 1234567, 0);
	same(&b, "{\"segment\":\"x\\\"\",\"pass\":7,\"age_us\":1234,");
	/* in the family's object, in microseconds, as the key says; empty buckets are left out */
	json_groups(&b, &program, program_entries, 1, 0);
	same(&b, "\"groups\":[\n"
		 "{\"path\":\"/a\",\"id\":2,\"cpu\":{\"usage_usec\":0,\"delay_usec\":{\"count\":7,"
		 "\"sum\":3.058,\"p50\":0.031,\"p90\":null,\"p99\":null,\"max\":null,\"buckets\":["
		 "[0.007,1],[0.011,2],[0.031,1],[null,3]]}}}\n"
		 "]}\n");
	json_group(&b, &program, "/", 1, 0, unobserved, 0);
	same(&b,
	     "{\"path\":\"/\",\"id\":1,\"age_us\":0,\"cpu\":{\"delay_usec\":{\"count\":0,\"sum\":0,"
	     "\"p50\":0,\"p90\":0,\"p99\":0,\"max\":0,\"buckets\":[]}}}\n");
	buf_free(&b);
}

TEST(depth)
{
	struct buf b = BUF_INIT;

	json_groups(&b, &schema, entries, 0, 1);
	same(&b, "\"groups\":[\n"
		 "{\"path\":\"/\",\"id\":1,\"cpu\":{\"usage_usec\":5000000}},\n"
		 "{\"path\":\"/a\",\"id\":10,\"parent\":1,\"cpu\":{\"usage_usec\":1500000,"
		 "\"nr_periods\":7},\"memory\":{\"memory.current\":4096,\"trend\":-3}},\n"
		 "{\"path\":\"/b\",\"id\":20,\"parent\":1}\n"
		 "]}\n");
	json_groups(&b, &schema, entries, 3, 0);
	same(&b, "\"groups\":[\n"
		 "{\"path\":\"/a/" FFFD "\",\"id\":12,\"cpu\":{\"usage_usec\":2}}\n"
		 "]}\n");
	buf_free(&b);
}

/* Paths of a deep tree would add up to the square of its depth. */
TEST(paths_that_are_too_long_are_left_out)
{
	struct freshet_entry chain[CHAIN + 2];
	struct buf b = BUF_INIT;

	chain_make(chain);
	json_groups(&b, &schema, chain, 0, JSON_ALL_DEPTHS);
	buf_char(&b, '\0');
	REQUIRE(!b.error);
	EXPECT_EQ(times_in(b.data, b.len, "{\"path\":", 8), 1 + FITS + 1);
	EXPECT(strstr(b.data, "{\"path\":\"/b\",\"id\":34,\"parent\":1,"), "%s", b.data);
	buf_clear(&b);
	/* a subtree: what is above counts */
	json_groups(&b, &schema, chain, FITS, JSON_ALL_DEPTHS);
	EXPECT_EQ(times_in(b.data, b.len, "{\"path\":", 8), 1);
	buf_free(&b);
}

TEST(one_group)
{
	struct buf b = BUF_INIT;

	json_group(&b, &schema, "/a/\x01\xff", 10, 2000, values[1], BIT(USAGE) | BIT(CURRENT));
	same(&b, "{\"path\":\"/a/\\u0001" FFFD "\",\"id\":10,\"age_us\":2,"
		 "\"cpu\":{\"usage_usec\":1500000},\"memory\":{\"memory.current\":4096}}\n");
	buf_free(&b);
}

TAP_MAIN
