/* SPDX-License-Identifier: MIT */
/* Both metrics formats, letter by letter, on a small tree. */
#include "view/openmetrics.h"

#include <errno.h>
#include <string.h>

#include "tap.h"
#include "unit/view_tree.h"

static const struct metrics_schema schema = {
	.prefix = "cgroup", .label = "cgroup", .stats = stats, .nstats = NSTATS
};

static const struct freshet_histogram histogram = HISTOGRAM;

static const struct metrics_schema program = { .prefix = "freshet_x",
					       .label = "group",
					       .stats = stats,
					       .nstats = NSTATS,
					       .histograms = &histogram,
					       .nhistograms = 1 };

static const char *rendered(struct buf *b, enum metrics_format format, size_t at)
{
	buf_clear(b);
	metrics_groups(b, format, &schema, entries, at);
	metrics_end(b, format);
	buf_char(b, '\0');
	return b->error || !b->data ? "error" : b->data;
}

static void same(const char *got, const char *wanted)
{
	EXPECT(strcmp(got, wanted) == 0, "\n# got:\n%s# wanted:\n%s", got, wanted);
}

#define FFFD "\xef\xbf\xbd"

TEST(text_format)
{
	struct buf b = BUF_INIT;

	same(rendered(&b, METRICS_TEXT, 0),
	     "# HELP cgroup_cpu_usage_seconds_total Time \"used\", \\\\ and\\nmore.\n"
	     "# TYPE cgroup_cpu_usage_seconds_total counter\n"
	     "cgroup_cpu_usage_seconds_total{cgroup=\"/\"} 5\n"
	     "cgroup_cpu_usage_seconds_total{cgroup=\"/a\"} 1.5\n"
	     "cgroup_cpu_usage_seconds_total{cgroup=\"/a/\\\"\\\\\\n\"} 0.000000001\n"
	     "cgroup_cpu_usage_seconds_total{cgroup=\"/a/" FFFD "\",id=\"12\"} 0.000002\n"
	     "cgroup_cpu_usage_seconds_total{cgroup=\"/a/" FFFD "/x\",id=\"13\"} 0.000003\n"
	     "cgroup_cpu_usage_seconds_total{cgroup=\"/a/" FFFD "\",id=\"14\"} 0.000004\n"
	     "# HELP cgroup_cpu_periods_total Periods.\n"
	     "# TYPE cgroup_cpu_periods_total counter\n"
	     "cgroup_cpu_periods_total{cgroup=\"/a\"} 7\n"
	     "# HELP cgroup_memory_current_bytes Bytes.\n"
	     "# TYPE cgroup_memory_current_bytes gauge\n"
	     "cgroup_memory_current_bytes{cgroup=\"/a\"} 4096\n"
	     "# HELP cgroup_memory_trend Goes both ways.\n"
	     "# TYPE cgroup_memory_trend gauge\n"
	     "cgroup_memory_trend{cgroup=\"/a\"} -3\n");
	buf_free(&b);
}

TEST(openmetrics)
{
	struct buf b = BUF_INIT;

	same(rendered(&b, METRICS_OPENMETRICS, 1),
	     "# HELP cgroup_cpu_usage_seconds Time \\\"used\\\", \\\\ and\\nmore.\n"
	     "# TYPE cgroup_cpu_usage_seconds counter\n"
	     "# UNIT cgroup_cpu_usage_seconds seconds\n"
	     "cgroup_cpu_usage_seconds_total{cgroup=\"/a\"} 1.5\n"
	     "cgroup_cpu_usage_seconds_total{cgroup=\"/a/\\\"\\\\\\n\"} 0.000000001\n"
	     "cgroup_cpu_usage_seconds_total{cgroup=\"/a/" FFFD "\",id=\"12\"} 0.000002\n"
	     "cgroup_cpu_usage_seconds_total{cgroup=\"/a/" FFFD "/x\",id=\"13\"} 0.000003\n"
	     "cgroup_cpu_usage_seconds_total{cgroup=\"/a/" FFFD "\",id=\"14\"} 0.000004\n"
	     "# HELP cgroup_cpu_periods Periods.\n"
	     "# TYPE cgroup_cpu_periods counter\n"
	     "cgroup_cpu_periods_total{cgroup=\"/a\"} 7\n"
	     "# HELP cgroup_memory_current_bytes Bytes.\n"
	     "# TYPE cgroup_memory_current_bytes gauge\n"
	     "# UNIT cgroup_memory_current_bytes bytes\n"
	     "cgroup_memory_current_bytes{cgroup=\"/a\"} 4096\n"
	     "# HELP cgroup_memory_trend Goes both ways.\n"
	     "# TYPE cgroup_memory_trend gauge\n"
	     "cgroup_memory_trend{cgroup=\"/a\"} -3\n"
	     "# EOF\n");
	buf_free(&b);
}

/* A subtree below a name that is no UTF-8 is told apart like the name itself. */
TEST(subtree_keeps_full_path)
{
	struct buf b = BUF_INIT;
	const char *text = rendered(&b, METRICS_TEXT, 4);

	EXPECT(strstr(text, "{cgroup=\"/a/" FFFD "/x\",id=\"13\"} 0.000003\n"), "%s", text);
	EXPECT(!strstr(text, "id=\"12\""), "%s", text);
	buf_free(&b);
}

/* Labels of a deep tree would add up to the square of its depth. */
TEST(paths_that_are_too_long_are_left_out)
{
	static const char sample[] = "cgroup_cpu_usage_seconds_total{";
	struct freshet_entry chain[CHAIN + 2];
	struct buf b = BUF_INIT;

	chain_make(chain);
	metrics_groups(&b, METRICS_TEXT, &schema, chain, 0);
	buf_char(&b, '\0');
	REQUIRE(!b.error);
	EXPECT_EQ(times_in(b.data, b.len, sample, strlen(sample)), 1 + FITS + 1);
	EXPECT(strstr(b.data, "{cgroup=\"/b\"} 5\n"), "%s", b.data);
	buf_clear(&b);
	/* a subtree: what is above counts */
	metrics_groups(&b, METRICS_TEXT, &schema, chain, FITS);
	EXPECT_EQ(times_in(b.data, b.len, sample, strlen(sample)), 1);
	buf_free(&b);
}

/* Neither the text nor its labels grow beyond what they may. */
TEST(length_is_bounded)
{
	struct buf b = BUF_INIT;
	size_t whole;

	metrics_groups(&b, METRICS_TEXT, &schema, entries, 0);
	whole = b.len;
	for (size_t max = 1; max <= whole; max++) {
		buf_free(&b);
		b.max = max;
		metrics_groups(&b, METRICS_TEXT, &schema, entries, 0);
		EXPECT_EQ(b.error, max < whole ? -E2BIG : 0);
		EXPECT(b.len <= max, "%zu of %zu", b.len, max);
	}
	buf_free(&b);
}

/* A group without numbers leaves no family behind. */
TEST(absent_is_absent)
{
	struct buf b = BUF_INIT;

	same(rendered(&b, METRICS_TEXT, 6), "");
	same(rendered(&b, METRICS_OPENMETRICS, 6), "# EOF\n");
	buf_free(&b);
}

#define DELAY "freshet_x_cpu_delay_seconds"

TEST(histograms)
{
	struct buf b = BUF_INIT;
	struct metrics_schema without = program;

	EXPECT_EQ(freshet_buckets(1, 2, 5), histogram.buckets);
	metrics_groups(&b, METRICS_OPENMETRICS, &program, program_entries, 0);
	buf_char(&b, '\0');
	REQUIRE(!b.error);
	same(strstr(b.data, "# HELP " DELAY " "),
	     "# HELP " DELAY " Waits.\n"
	     "# TYPE " DELAY " histogram\n"
	     "# UNIT " DELAY " seconds\n" DELAY "_bucket{group=\"/\",le=\"0.000000003\"} 0\n" DELAY
	     "_bucket{group=\"/\",le=\"0.000000007\"} 1\n" DELAY
	     "_bucket{group=\"/\",le=\"0.000000011\"} 3\n" DELAY
	     "_bucket{group=\"/\",le=\"0.000000015\"} 3\n" DELAY
	     "_bucket{group=\"/\",le=\"0.000000023\"} 3\n" DELAY
	     "_bucket{group=\"/\",le=\"0.000000031\"} 4\n" DELAY
	     "_bucket{group=\"/\",le=\"+Inf\"} 7\n" DELAY "_count{group=\"/\"} 7\n" DELAY
	     "_sum{group=\"/\"} 0.000003058\n" DELAY
	     "_bucket{group=\"/a\",le=\"0.000000003\"} 0\n" DELAY
	     "_bucket{group=\"/a\",le=\"0.000000007\"} 1\n" DELAY
	     "_bucket{group=\"/a\",le=\"0.000000011\"} 3\n" DELAY
	     "_bucket{group=\"/a\",le=\"0.000000015\"} 3\n" DELAY
	     "_bucket{group=\"/a\",le=\"0.000000023\"} 3\n" DELAY
	     "_bucket{group=\"/a\",le=\"0.000000031\"} 4\n" DELAY
	     "_bucket{group=\"/a\",le=\"+Inf\"} 7\n" DELAY "_count{group=\"/a\"} 7\n" DELAY
	     "_sum{group=\"/a\"} 0.000003058\n" DELAY "_bucket{group=\"/" FFFD
	     "\",id=\"3\",le=\"0.000000003\"} 0\n" DELAY "_bucket{group=\"/" FFFD
	     "\",id=\"3\",le=\"0.000000007\"} 0\n" DELAY "_bucket{group=\"/" FFFD
	     "\",id=\"3\",le=\"0.000000011\"} 0\n" DELAY "_bucket{group=\"/" FFFD
	     "\",id=\"3\",le=\"0.000000015\"} 0\n" DELAY "_bucket{group=\"/" FFFD
	     "\",id=\"3\",le=\"0.000000023\"} 0\n" DELAY "_bucket{group=\"/" FFFD
	     "\",id=\"3\",le=\"0.000000031\"} 0\n" DELAY "_bucket{group=\"/" FFFD
	     "\",id=\"3\",le=\"+Inf\"} 0\n" DELAY "_count{group=\"/" FFFD "\",id=\"3\"} 0\n" DELAY
	     "_sum{group=\"/" FFFD "\",id=\"3\"} 0\n");
	buf_clear(&b);

	without.without = BIT(USAGE);
	without.without_histograms = 1;
	metrics_groups(&b, METRICS_TEXT, &without, program_entries, 0);
	EXPECT_EQ(b.len, 0);
	buf_free(&b);
}

/* A bound of a count is a float, too, or the same series would have two names. */
TEST(bounds_have_a_point)
{
	struct freshet_histogram count = histogram;
	struct metrics_schema counts = program;
	struct buf b = BUF_INIT;

	count.unit = FRESHET_COUNT;
	counts.histograms = &count;
	metrics_groups(&b, METRICS_TEXT, &counts, program_entries, 0);
	buf_char(&b, '\0');
	EXPECT(strstr(b.data, "freshet_x_cpu_delay_bucket{group=\"/\",le=\"31.0\"} 4\n"), "%s",
	       b.data);
	EXPECT(strstr(b.data, "freshet_x_cpu_delay_sum{group=\"/\"} 3058\n"), "%s", b.data);
	buf_free(&b);
}

TEST(help_that_is_no_utf8)
{
	struct buf b = BUF_INIT;

	metrics_family(&b, METRICS_TEXT, "x", METRICS_GAUGE, NULL, "a\xff\n");
	buf_char(&b, '\0');
	same(b.data, "# HELP x a" FFFD "\\n\n# TYPE x gauge\n");
	buf_free(&b);
}

TEST(bytes_that_are_no_utf8)
{
	static const struct {
		const char *bytes, *label;
	} cases[] = {
		{ "\xc3\xa9", "\xc3\xa9" },
		{ "\xf0\x9f\x8c\x8a", "\xf0\x9f\x8c\x8a" },
		{ "\xc0\xaf", FFFD FFFD },                   /* overlong */
		{ "\xe0\x80\xaf", FFFD FFFD FFFD },          /* overlong */
		{ "\xed\xa0\x80", FFFD FFFD FFFD },          /* surrogate */
		{ "\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD }, /* above U+10FFFF */
		{ "\xe2\x82", FFFD FFFD },                   /* cut short */
		{ "a\x80z", "a" FFFD "z" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf b = BUF_INIT;
		bool exact = true;

		metrics_escape(&b, cases[i].bytes, &exact);
		buf_char(&b, '\0');
		same(b.data, cases[i].label);
		EXPECT_EQ(exact, strcmp(cases[i].bytes, cases[i].label) == 0);
		buf_free(&b);
	}
}

TAP_MAIN
