/* SPDX-License-Identifier: MIT */
/* Numbers and names as a terminal shows them. */
#include "view/format.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "tap.h"
#include "view/safe.h"

TEST(durations_and_counts)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} durations[] = { { 0, "0ns" },
			  { 999, "999ns" },
			  { 1000, "1.00us" },
			  { 9994, "9.99us" },
			  { 9996, "10.0us" },
			  { 99960, "100us" },
			  { 999499, "999us" },
			  { 999501, "1.00ms" },
			  { 17300000, "17.3ms" },
			  { 1000000000, "1.00s" },
			  { 9999000000000, "9999s" },
			  { 18000000000000, "5h" },
			  { UINT64_MAX - 1, "5124096h" },
			  { UINT64_MAX, "inf" } };
	static const struct {
		double value;
		const char *text;
	} counts[] = { { NAN, "-" },
		       { 0, "0" },
		       { 0.5, "0.5" },
		       { -3, "-3" },
		       { 9999, "9999" },
		       { 9999.4, "9999.4" },
		       { 10000, "10.0k" },
		       { -12345, "-12.3k" },
		       { 999600, "1.00M" },
		       { 4.56e9, "4.56G" },
		       { 18446744073709551615.0, "18.4E" } };
	char buf[32];

	for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
		format_duration(durations[i].ns, buf, sizeof(buf));
		EXPECT(!strcmp(buf, durations[i].text), "%s, wanted %s", buf, durations[i].text);
	}
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		format_count(counts[i].value, buf, sizeof(buf));
		EXPECT(!strcmp(buf, counts[i].text), "%s, wanted %s", buf, counts[i].text);
	}
}

TEST(keys_say_their_unit)
{
	EXPECT_EQ(format_divisor("usage_usec", FRESHET_NANOSECONDS), 1000);
	EXPECT_EQ(format_divisor("core_sched.force_idle_usec", FRESHET_NANOSECONDS), 1000);
	EXPECT_EQ(format_divisor("usage_usec", FRESHET_COUNT), 1);
	EXPECT_EQ(format_divisor("latency", FRESHET_NANOSECONDS), 1);
	EXPECT_EQ(format_divisor("ns", FRESHET_NANOSECONDS), 1);
}

TEST(numbers_as_text)
{
	static const struct {
		double percent;
		const char *text;
	} percents[] = { { NAN, "-" },        { 0, "0.0" },         { 0.04, "0.0" },
			 { 99.96, "100.0" },  { 9999.9, "9999.9" }, { 9999.96, "10000" },
			 { 819200, "819200" } };
	static const struct {
		uint64_t ns;
		const char *text;
	} times[] = { { 0, "0.00" },
		      { 59999999999, "59.99" },
		      { 60000000000, "1:00.00" },
		      { 3599990000000, "59:59.99" },
		      { 3600000000000, "1:00:00" },
		      { 359999000000000, "99:59:59" },
		      { 360000000000000, "4d04h" },
		      { UINT64_MAX, "213503d23h" } };
	char buf[32];

	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		format_percent(percents[i].percent, buf, sizeof(buf));
		EXPECT(!strcmp(buf, percents[i].text), "%s, wanted %s", buf, percents[i].text);
	}
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		format_time(times[i].ns, buf, sizeof(buf));
		EXPECT(!strcmp(buf, times[i].text), "%s, wanted %s", buf, times[i].text);
	}
}

TEST(numbers_under_their_own_keys)
{
	static const struct freshet_stat lag = { "a", "lag",         "lag_usec",
						 "",  FRESHET_GAUGE, FRESHET_NANOSECONDS,
						 0 };
	static const struct freshet_stat held = { "a",           "held",        "held", "",
						  FRESHET_GAUGE, FRESHET_BYTES, 0 };
	struct buf b = BUF_INIT;

	format_stat(&b, &lag, (uint64_t)-1500999);
	buf_char(&b, ' ');
	format_stat(&b, &lag, 1500999);
	buf_char(&b, ' ');
	format_stat(&b, &held, (uint64_t)-1500);
	buf_char(&b, ' ');
	format_exact(&b, 1500020, 1000);
	buf_char(&b, ' ');
	format_exact(&b, 1500000, 1000);
	buf_char(&b, '\0');
	REQUIRE(!b.error);
	EXPECT(!strcmp(b.data, "-1500 1500 -1500 1500.020 1500"), "%s", b.data);
	buf_free(&b);
}

TEST(names_are_safe_on_a_terminal)
{
	static const char *const names[][3] = {
		/* name, as UTF-8, as ASCII */
		{ "plain.slice", "plain.slice", "plain.slice" },
		{ "a\\x2db \"c\"", "a\\x2db \"c\"", "a\\x2db \"c\"" },
		{ "t\tn\x1b[31m", "t\\x09n\\x1b[31m", "t\\x09n\\x1b[31m" },
		{ "\x7f", "\\x7f", "\\x7f" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f", "gr\\xc3\\xbc\\xc3\\x9f" },
		{ "\xe2\x82\xac\xf0\x9f\x98\x80", "\xe2\x82\xac\xf0\x9f\x98\x80",
		  "\\xe2\\x82\\xac\\xf0\\x9f\\x98\\x80" },
		{ "\xff\xc3(", "\\xff\\xc3(", "\\xff\\xc3(" },
		{ "\xc2\x9b"
		  "31m",
		  "\\xc2\\x9b31m", "\\xc2\\x9b31m" }, /* C1: CSI */
		{ "\xe2\x80\xae"
		  "x",
		  "\\xe2\\x80\\xaex", "\\xe2\\x80\\xaex" }, /* override */
		{ "\xc0\xaf\xed\xa0\x80", "\\xc0\\xaf\\xed\\xa0\\x80",
		  "\\xc0\\xaf\\xed\\xa0\\x80" },
		{ "\xf0\x9f\x98", "\\xf0\\x9f\\x98", "\\xf0\\x9f\\x98" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (int ascii = 0; ascii < 2; ascii++) {
			struct buf b = BUF_INIT;

			safe_name(&b, names[i][0], ascii);
			buf_char(&b, '\0');
			EXPECT(!strcmp(b.data, names[i][1 + ascii]), "%s, wanted %s", b.data,
			       names[i][1 + ascii]);
			buf_free(&b);
		}
	}
}

TAP_MAIN
