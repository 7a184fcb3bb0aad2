/* SPDX-License-Identifier: MIT */
/* No two families of one answer have a name in common, whatever programs call their numbers. */
#include "view/claims.h"

#include <string.h>

#include "tap.h"

TEST(clashes)
{
	static const struct {
		const char *there;
		enum metrics_type type;
		const char *new;
		enum metrics_type new_type;
		bool clash;
	} cases[] = {
		{ "a", METRICS_COUNTER, "a", METRICS_COUNTER, true },
		{ "a", METRICS_COUNTER, "a_total", METRICS_GAUGE, true },
		{ "a_total", METRICS_GAUGE, "a", METRICS_COUNTER, true },
		{ "a", METRICS_GAUGE, "a_total", METRICS_GAUGE, false },
		{ "a", METRICS_GAUGE, "a", METRICS_HISTOGRAM, true },
		{ "a", METRICS_HISTOGRAM, "a_count", METRICS_GAUGE, true },
		{ "a", METRICS_HISTOGRAM, "a_bucket", METRICS_GAUGE, true },
		{ "a_sum", METRICS_GAUGE, "a", METRICS_HISTOGRAM, true },
		{ "a", METRICS_HISTOGRAM, "a_max", METRICS_GAUGE, false },
		{ "a", METRICS_INFO, "a_info", METRICS_GAUGE, true },
		{ "ab", METRICS_COUNTER, "a", METRICS_COUNTER, false },
		{ "a", METRICS_COUNTER, "ab", METRICS_COUNTER, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct claims c = { 0 };

		EXPECT_EQ(claims_add(&c, cases[i].there, cases[i].type), 0);
		EXPECT(claims_clash(&c, cases[i].new, cases[i].new_type) == cases[i].clash,
		       "%zu: %s beside %s", i, cases[i].new, cases[i].there);
		claims_free(&c);
	}
}

TEST(text)
{
	static const char text[] = "# HELP x # TYPE y gauge\n# TYPE x counter\nx_total 1\n"
				   "# TYPE h histogram\n# EOF\n";
	struct claims c = { 0 };

	EXPECT_EQ(claims_add_text(&c, text, strlen(text)), 0);
	EXPECT(claims_clash(&c, "x_total", METRICS_GAUGE));
	EXPECT(claims_clash(&c, "h_count", METRICS_GAUGE));
	EXPECT(!claims_clash(&c, "y", METRICS_GAUGE));
	claims_free(&c);
}

TEST(prefixes)
{
	static const char *const cases[][2] = {
		{ "shop", "freshet_shop" },
		{ "shop.2-b_c", "freshet_shop_2_b_c" },
		{ "9", "freshet_9" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char prefix[FRESHET_NAME_MAX + 16];

		claims_prefix(cases[i][0], prefix, sizeof(prefix));
		EXPECT(!strcmp(prefix, cases[i][1]), "%s", prefix);
	}
}

/* A segment "last" cannot pass its numbers off as ours, "a" not as those of "a_b"; names that are no
 * names of metrics would break the whole answer. */
TEST(schemas)
{
	static char endless[FRESHET_NAME_MAX + 2];
	static const struct freshet_stat stats[] = {
		{ "pass", "age", "", "", FRESHET_GAUGE, FRESHET_NANOSECONDS, 0 },
		{ "b", "c", "", "", FRESHET_COUNTER, FRESHET_COUNT, 0 },
		{ "b_c", "total", "", "", FRESHET_GAUGE, FRESHET_COUNT, 0 },
		{ "evil\n", "x", "", "", FRESHET_COUNTER, FRESHET_COUNT, 0 },
		{ "", "x", "", "", FRESHET_COUNTER, FRESHET_COUNT, 0 },
		{ "x", "{y}", "", "", FRESHET_COUNTER, FRESHET_COUNT, 0 },
		{ "x", endless, "", "", FRESHET_COUNTER, FRESHET_COUNT, 0 },
	};
	static const struct freshet_stat other[] = {
		{ "c", "d", "", "", FRESHET_COUNTER, FRESHET_COUNT, 0 },
	};
	static const struct freshet_histogram histograms[] = {
		{ .family = "b", .name = "c" },
		{ .family = "b_c", .name = "d" },
	};
	struct metrics_schema last = { .prefix = "freshet_last",
				       .stats = stats,
				       .nstats = 7,
				       .histograms = histograms,
				       .nhistograms = 2 };
	struct metrics_schema longer = { .prefix = "freshet_last_b", .stats = other, .nstats = 1 };
	struct claims own = { 0 }, first = { 0 }, second = { 0 };
	const struct claims *others[] = { &own, &first };

	memset(endless, 'x', sizeof(endless) - 1);
	claims_add(&own, "freshet_last_pass_age_seconds", METRICS_GAUGE);
	EXPECT_EQ(claims_schema(&first, others, 1, &last), 0);
	EXPECT_EQ(last.without, 0x7d);
	EXPECT_EQ(last.without_histograms, 1);
	/* freshet_last + b_c + d = freshet_last_b + c + d */
	EXPECT_EQ(claims_schema(&second, others, 2, &longer), 0);
	EXPECT_EQ(longer.without, 1);
	claims_free(&second);
	EXPECT_EQ(claims_schema(&second, others, 1, &longer), 0);
	EXPECT_EQ(longer.without, 0);
	claims_free(&own);
	claims_free(&first);
	claims_free(&second);
}

TAP_MAIN
