/* SPDX-License-Identifier: MIT */
/* What a program may ask for: schemas and options that freshet_open() takes, and those it refuses. */
#include "tap.h"

#include <errno.h>
#include <string.h>

#include <freshet/freshet.h>

#define MANY 80u

static struct freshet_stat stats[MANY];
static struct freshet_histogram histograms[FRESHET_MAX_HISTOGRAMS + 1];
static char names[MANY][8];
static struct freshet_schema schema;
static struct freshet_options options;

/* A good schema of so many stats and histograms. */
static void reset(unsigned nstats, unsigned nhistograms)
{
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "n%u", i);
		stats[i] =
			(struct freshet_stat){ "f",           names[i], NULL, NULL, FRESHET_COUNTER,
					       FRESHET_COUNT, 0 };
	}
	for (unsigned i = 0; i <= FRESHET_MAX_HISTOGRAMS; i++)
		histograms[i] = (struct freshet_histogram){
			.family = "h", .name = names[i], .precision = 2, .highest = 10
		};
	schema = (struct freshet_schema){ sizeof(schema), stats, nstats, histograms, nhistograms };
	options = (struct freshet_options){ .size = sizeof(options), .max_groups = 4 };
}

static int open_it(void)
{
	struct freshet_tree *tree = NULL;
	int r = freshet_open(NULL, &schema, &options, &tree);

	EXPECT(r == 0 || !tree, "a tree in spite of %d", r);
	freshet_close(tree);
	return r;
}

TEST(sizes)
{
	struct freshet_tree *tree;
	/* As later headers have them. */
	struct {
		struct freshet_schema now;
		uint64_t later;
	} longer = { 0 };
	struct {
		struct freshet_options now;
		uint64_t later;
	} more = { 0 };

	reset(1, 0);
	EXPECT_EQ(open_it(), 0);
	longer.now = schema;
	longer.now.size = sizeof(longer);
	more.now = options;
	more.now.size = sizeof(more);
	EXPECT_EQ(freshet_open(NULL, &longer.now, &more.now, &tree), 0);
	freshet_close(tree);
	longer.later = 1;
	EXPECT_EQ(freshet_open(NULL, &longer.now, &more.now, &tree), -EINVAL);
	longer.later = 0;
	more.later = 1ull << 63;
	EXPECT_EQ(freshet_open(NULL, &longer.now, &more.now, &tree), -EINVAL);
	options.flags = 1;
	EXPECT_EQ(open_it(), -EINVAL);
	reset(1, 0);
	EXPECT_EQ(freshet_open(NULL, NULL, &options, &tree), -EINVAL);
	schema.size--;
	EXPECT_EQ(open_it(), -EINVAL);
	reset(1, 0);
	options.size--;
	EXPECT_EQ(open_it(), -EINVAL);
	reset(0, 0);
	EXPECT_EQ(open_it(), -EINVAL);
	reset(FRESHET_MAX_STATS, FRESHET_MAX_HISTOGRAMS);
	EXPECT_EQ(open_it(), 0);
	reset(FRESHET_MAX_STATS + 1, 0);
	EXPECT_EQ(open_it(), -EINVAL);
	reset(1, FRESHET_MAX_HISTOGRAMS + 1);
	EXPECT_EQ(open_it(), -EINVAL);
	reset(1, 1);
	schema.histograms = NULL;
	EXPECT_EQ(open_it(), -EINVAL);
	schema.nhistograms = 0;
	EXPECT_EQ(open_it(), 0);
	schema.stats = NULL;
	EXPECT_EQ(open_it(), -EINVAL);
}

TEST(names)
{
	static const char *const bad[] = { NULL,  "",    "A",  "aB",  "1a",        "_a",
					   "a-b", "a b", "a.", "a/b", "a\xc3\xbc", "a\n" };
	static const char *const good[] = { "a", "a1", "a_", "a_b_3", "zz9" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		reset(3, 2);
		stats[1].family = bad[i];
		EXPECT(open_it() == -EINVAL, "family %s", bad[i]);
		reset(3, 2);
		stats[2].name = bad[i];
		EXPECT(open_it() == -EINVAL, "name %s", bad[i]);
		reset(3, 2);
		histograms[0].family = bad[i];
		EXPECT(open_it() == -EINVAL, "histogram's family %s", bad[i]);
		reset(3, 2);
		histograms[1].name = bad[i];
		EXPECT(open_it() == -EINVAL, "histogram's name %s", bad[i]);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		reset(3, 2);
		stats[1].name = stats[2].family = histograms[0].name = good[i];
		EXPECT(open_it() == 0, "%s", good[i]);
	}
}

TEST(families_that_json_has_already)
{
	static const char *const taken[] = { "path", "id", "parent", "age_us" };

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		reset(3, 2);
		stats[1].family = taken[i];
		EXPECT(open_it() == -EINVAL, "family %s", taken[i]);
		reset(3, 2);
		histograms[1].family = taken[i];
		EXPECT(open_it() == -EINVAL, "histogram's family %s", taken[i]);
		reset(3, 2);
		stats[1].name = taken[i];
		EXPECT(open_it() == 0, "name %s", taken[i]);
	}
}

TEST(each_key_once)
{
	reset(3, 2);
	stats[0].family = stats[1].family = "w";
	stats[0].key = stats[1].key = "a";
	EXPECT_EQ(open_it(), -EINVAL);
	stats[1].key = "b";
	EXPECT_EQ(open_it(), 0);
	stats[1].key = stats[0].name; /* stats[0] has another key than its name */
	EXPECT_EQ(open_it(), 0);
	stats[0].key = NULL;
	EXPECT_EQ(open_it(), -EINVAL);
	reset(3, 2);
	histograms[0].family = stats[0].family;
	histograms[0].key = stats[0].name;
	EXPECT_EQ(open_it(), -EINVAL);
	histograms[0].key = "";
	EXPECT_EQ(open_it(), -EINVAL);
	histograms[0].key = NULL;
	stats[1].key = "";
	EXPECT_EQ(open_it(), -EINVAL);
}

TEST(each_name_once)
{
	reset(3, 2);
	stats[2].name = stats[0].name;
	EXPECT_EQ(open_it(), -EINVAL);
	stats[2].family = "g";
	EXPECT_EQ(open_it(), 0);
	reset(3, 2);
	histograms[1].name = histograms[0].name;
	EXPECT_EQ(open_it(), -EINVAL);
	reset(3, 2);
	histograms[1].family = "f"; /* its name is stats[1]'s, too */
	EXPECT_EQ(open_it(), -EINVAL);
}

TEST(kinds_and_units)
{
	reset(2, 0);
	stats[1].kind = FRESHET_GAUGE;
	stats[1].unit = FRESHET_BYTES;
	EXPECT_EQ(open_it(), 0);
	stats[1].kind = 0;
	EXPECT_EQ(open_it(), -EINVAL);
	stats[1].kind = 3;
	EXPECT_EQ(open_it(), -EINVAL);
	reset(2, 1);
	stats[1].unit = 3;
	EXPECT_EQ(open_it(), -EINVAL);
	reset(2, 1);
	histograms[0].unit = 3;
	EXPECT_EQ(open_it(), -EINVAL);
}

static int open_with_sets(const char *sets)
{
	reset((unsigned)strlen(sets), 0);
	for (unsigned i = 0; sets[i]; i++)
		stats[i].set = (unsigned)(sets[i] - '0');
	return open_it();
}

TEST(sets)
{
	EXPECT_EQ(open_with_sets("11"), 0);
	EXPECT_EQ(open_with_sets("1"), 0);
	EXPECT_EQ(open_with_sets("0110220"), 0);
	EXPECT_EQ(open_with_sets("332211"), 0);
	EXPECT_EQ(open_with_sets("1111111111111111"), 0);
	EXPECT_EQ(open_with_sets("11111111111111112222222222222222"), 0);
	EXPECT_EQ(open_with_sets("11111111111111111"), -EINVAL); /* seventeen */
	EXPECT_EQ(open_with_sets("101"), -EINVAL);
	EXPECT_EQ(open_with_sets("1122011"), -EINVAL);
	EXPECT_EQ(open_with_sets("121"), -EINVAL);
	reset(2, 0);
	stats[0].set = stats[1].set = UINT32_MAX;
	EXPECT_EQ(open_it(), 0);
}

TEST(histogram_bounds)
{
	static const struct {
		unsigned char precision, lowest, highest;
		int result;
	} cases[] = {
		{ 0, 0, 1, 0 },         { 0, 0, 0, -EINVAL },   { 0, 1, 0, -EINVAL },
		{ 0, 62, 63, 0 },       { 0, 63, 63, -EINVAL }, { 0, 0, 63, 0 },
		{ 0, 0, 64, -EINVAL },  { 6, 0, 63, 0 },        { 6, 56, 63, 0 },
		{ 6, 57, 63, -EINVAL }, { 7, 0, 63, -EINVAL },  { 255, 0, 63, -EINVAL },
		{ 3, 10, 14, 0 },       { 3, 10, 13, -EINVAL }, { 0, 255, 0, -EINVAL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		reset(1, 1);
		histograms[0].precision = cases[i].precision;
		histograms[0].lowest = cases[i].lowest;
		histograms[0].highest = cases[i].highest;
		EXPECT(open_it() == cases[i].result, "precision %u, %u to %u", cases[i].precision,
		       cases[i].lowest, cases[i].highest);
	}
}

/* 3713 buckets and a sum; 321 and a sum; 60 stats: FRESHET_MAX_WORDS. */
TEST(words)
{
	reset(60, 2);
	histograms[0].precision = 6;
	histograms[0].highest = 63;
	histograms[1].precision = 3;
	histograms[1].highest = 42;
	EXPECT_EQ(freshet_buckets(6, 0, 63) + 1 + freshet_buckets(3, 0, 42) + 1 + 60,
		  FRESHET_MAX_WORDS);
	EXPECT_EQ(open_it(), 0);
	schema.nstats++;
	EXPECT_EQ(open_it(), -EINVAL);
	schema.nstats = 1;
	histograms[1].highest = 63;
	histograms[1].precision = 6;
	EXPECT_EQ(open_it(), -EINVAL);
}

TEST(the_options)
{
	char producer[65];

	memset(producer, 'p', sizeof(producer));
	producer[64] = '\0';
	reset(1, 0);
	options.producer = producer;
	EXPECT_EQ(open_it(), -EINVAL);
	options.producer = producer + 1;
	EXPECT_EQ(open_it(), 0);
	reset(1, 0);
	options.backend = 3;
	EXPECT_EQ(open_it(), -EINVAL);
	reset(1, 0);
	options.fallback_slots = 1025;
	EXPECT_EQ(open_it(), -EINVAL);
	options.fallback_slots = 1;
	EXPECT_EQ(open_it(), 0);
	reset(1, 0);
	options.max_groups = (1u << 24) + 1;
	EXPECT_EQ(open_it(), -EINVAL);
	options.max_groups = 1;
	EXPECT_EQ(open_it(), 0);
}

/* The caller's strings may go; what is missing is filled in; the view tells it all. */
TEST(is_copied_into_the_segment)
{
	const struct freshet_histogram *h;
	const struct freshet_stat *s;
	struct freshet_tree *tree;
	size_t n;

	reset(4, 2);
	stats[0].help = "What it is.";
	stats[1] = (struct freshet_stat){ "g",     names[1],      "key_usec",
					  "Help.", FRESHET_GAUGE, FRESHET_NANOSECONDS,
					  9 };
	stats[2].set = 9;
	histograms[1].unit = FRESHET_BYTES;
	histograms[1].lowest = 5;
	REQUIRE(freshet_open(NULL, &schema, &options, &tree) == 0);
	memset(names, 'x', sizeof(names));
	memset(stats, 0, sizeof(stats));
	memset(histograms, 0, sizeof(histograms));

	s = freshet_stats(freshet_view_of(tree), &n);
	EXPECT_EQ(n, 4);
	EXPECT(!strcmp(s[0].family, "f") && !strcmp(s[0].name, "n0") && !strcmp(s[0].key, "n0") &&
	       !strcmp(s[0].help, "What it is."));
	EXPECT(!strcmp(s[1].family, "g") && !strcmp(s[1].name, "n1") &&
	       !strcmp(s[1].key, "key_usec") && !strcmp(s[1].help, "Help."));
	EXPECT(!strcmp(s[3].help, ""));
	EXPECT_EQ(s[1].kind, FRESHET_GAUGE);
	EXPECT_EQ(s[1].unit, FRESHET_NANOSECONDS);
	EXPECT(s[1].set == s[2].set && s[0].set != s[1].set && s[3].set != s[2].set &&
	       s[0].set != s[3].set);
	EXPECT_EQ(freshet_stat_index(freshet_view_of(tree), "g", "key_usec"), 1);

	h = freshet_histograms(freshet_view_of(tree), &n);
	EXPECT_EQ(n, 2);
	EXPECT(!strcmp(h[1].family, "h") && !strcmp(h[1].name, "n1") && !strcmp(h[1].key, "n1"));
	EXPECT_EQ(h[1].unit, FRESHET_BYTES);
	EXPECT_EQ(h[1].precision, 2);
	EXPECT_EQ(h[1].lowest, 5);
	EXPECT_EQ(h[1].highest, 10);
	EXPECT_EQ(h[0].buckets, freshet_buckets(2, 0, 10));
	EXPECT_EQ(h[1].buckets, freshet_buckets(2, 5, 10));
	EXPECT_EQ(h[0].word, 4);
	EXPECT_EQ(h[1].word, 4 + h[0].buckets + 1);
	freshet_close(tree);
}

TAP_MAIN
