/* SPDX-License-Identifier: MIT */
/* The options of `freshet serve`: what is taken, what is refused, and in which words. */
#include "daemon/config.h"

#include <errno.h>
#include <string.h>

#include "source/collector.h"
#include "tap.h"

static int parse(struct config *c, const char *text, char *why)
{
	config_defaults(c);
	why[0] = '\0';
	return config_parse(c, "f.conf", text, strlen(text), why, 512);
}

TEST(whole_file)
{
	struct config c;
	char why[512];

	EXPECT(parse(&c,
		     "# comment\n\n  interval = 250ms\r\nsource=files\n\troot =  /a b/c=d \n"
		     "listen = [::1]:0\nsegment=other\nsegment-dirs = /a:/b c\nmax-groups = "
		     "12\nmax-cpu = 0",
		     why) == 0,
	       "%s", why);
	EXPECT_EQ(c.interval_ns, 250000000);
	EXPECT_EQ(c.source, COLLECT_FILES);
	EXPECT(strcmp(c.root, "/a b/c=d") == 0, "%s", c.root);
	EXPECT(strcmp(c.listen, "[::1]:0") == 0, "%s", c.listen);
	EXPECT(strcmp(c.segment, "other") == 0, "%s", c.segment);
	EXPECT(strcmp(c.segment_dirs, "/a:/b c") == 0, "%s", c.segment_dirs);
	EXPECT_EQ(c.max_groups, 12);
	EXPECT_EQ(c.max_cpu, 0);
}

TEST(defaults)
{
	struct config c;
	char why[512];

	EXPECT(parse(&c, "", why) == 0);
	EXPECT_EQ(c.interval_ns, 1000000000);
	EXPECT_EQ(c.source, COLLECT_AUTO);
	EXPECT(strcmp(c.listen, "127.0.0.1:9753") == 0);
	EXPECT(strcmp(c.segment, "host") == 0);
	EXPECT(strcmp(c.segment_dirs, "") == 0);
	EXPECT_EQ(c.max_groups, 65536);
	EXPECT_EQ(c.max_cpu, 10);
}

#define SIXTEEN "/1:/2:/3:/4:/5:/6:/7:/8:/9:/10:/11:/12:/13:/14:/15:/16"

TEST(directories)
{
	static const char *const good[] = { "/", "/a", "/a:/b", SIXTEEN };
	static const char *const bad[] = {
		"", "a", ":/a", "/a:", "/a::/b", "/a:b", SIXTEEN ":/17"
	};
	struct config c;
	char why[512];

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		config_defaults(&c);
		EXPECT(config_set(&c, "segment-dirs", good[i], why, sizeof(why)) == 0, "%s", why);
		EXPECT(strcmp(c.segment_dirs, good[i]) == 0);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		config_defaults(&c);
		EXPECT(config_set(&c, "segment-dirs", bad[i], why, sizeof(why)) == -EINVAL, "%s",
		       bad[i]);
		EXPECT(strstr(why, "directories"), "%s", why);
	}
}

TEST(addresses)
{
	static const char *const good[] = { "127.0.0.1:9753", "0.0.0.0:0", "localhost:65535",
					    "[::1]:80", "[::]:0" };
	static const char *const bad[] = {
		"",
		"nonsense",
		"127.0.0.1",
		"127.0.0.1:",
		":80",
		"127.0.0.1:65536",
		"1.2.3:80",
		"[::1:80",
		"::1:80",
		"[]:80",
		"[1.2.3.4]:80",
		"1.1.1.1:80x",
		"1.1.1.1:-1",
		"[",
		"[:80",
		"]:80",
		"[::1]",
		"host:80",
	};
	struct config c;
	char why[256];

	config_defaults(&c);
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		EXPECT(config_set(&c, "listen", good[i], why, sizeof(why)) == 0, "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		EXPECT(config_set(&c, "listen", bad[i], why, sizeof(why)) == -EINVAL, "%s", bad[i]);
}

TEST(segments)
{
	static const char *const good[] = { "host", "a.b_c-9", "/tmp/x y", "./here" };
	static const char *const bad[] = { "", ".", "..", ".a", "a b", "a\n", "\xff" };
	struct config c;
	char why[256];

	config_defaults(&c);
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		EXPECT(config_set(&c, "segment", good[i], why, sizeof(why)) == 0, "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		EXPECT(config_set(&c, "segment", bad[i], why, sizeof(why)) == -EINVAL, "%s",
		       bad[i]);
}

TEST(errors_name_the_place_and_the_remedy)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "interval = fast",
		  "f.conf:1: interval: \"fast\" is not a time from 1ms to 1h, such as 1s" },
		{ "\n#\ninterval = 0s",
		  "f.conf:3: interval: \"0s\" is not a time from 1ms to 1h, such as 1s" },
		{ "interval = 2h",
		  "f.conf:1: interval: \"2h\" is not a time from 1ms to 1h, such as 1s" },
		{ "source = magic", "f.conf:1: source: \"magic\" is not auto, bpf or files" },
		{ "max-groups = 0",
		  "f.conf:1: max-groups: \"0\" is not a number from 1 to 16777216" },
		{ "max-groups = 16777217",
		  "f.conf:1: max-groups: \"16777217\" is not a number from 1 to 16777216" },
		{ "max-groups = 99999999999999999999",
		  "f.conf:1: max-groups: \"99999999999999999999\" is not a number from 1 to "
		  "16777216" },
		{ "max-cpu = -1",
		  "f.conf:1: max-cpu: \"-1\" is not whole percents of one CPU, from 0 to 100" },
		{ "max-cpu = 5%",
		  "f.conf:1: max-cpu: \"5%\" is not whole percents of one CPU, from 0 to 100" },
		{ "root =", "f.conf:1: root: \"\" is not a cgroup's directory" },
		{ "interval 1s", "f.conf:1: \"interval 1s\": write it as option = value" },
		{ " = 1s", "f.conf:1: there is no option's name before \"=\"" },
		{ "intervall = 1s",
		  "f.conf:1: intervall: no such option; known are root, source, interval, listen, "
		  "segment, segment-dirs, max-groups, max-cpu" },
	};
	struct config c;
	char why[512];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		EXPECT(parse(&c, cases[i].text, why) == -EINVAL, "%s", cases[i].text);
		EXPECT(strcmp(why, cases[i].why) == 0, "\n# got:    %s\n# wanted: %s", why,
		       cases[i].why);
	}
}

TEST(lines_that_are_no_text)
{
	static char longest[CONFIG_VALUE_MAX + 200];
	struct config c;
	char why[512];

	config_defaults(&c);
	EXPECT(config_parse(&c, "f", "a\0b", 3, why, sizeof(why)) == -EINVAL);
	EXPECT(strcmp(why, "f:1: the line is not text") == 0, "%s", why);
	memset(longest, 'x', sizeof(longest));
	EXPECT(config_parse(&c, "f", longest, sizeof(longest), why, sizeof(why)) == -EINVAL);
	EXPECT(strcmp(why, "f:1: the line is too long") == 0, "%s", why);
}

TEST(unreadable_file)
{
	struct config c;
	char why[512];

	config_defaults(&c);
	EXPECT(config_read(&c, "/nonexistent/f.conf", why, sizeof(why)) == -ENOENT);
	EXPECT(strcmp(why, "/nonexistent/f.conf: No such file or directory") == 0, "%s", why);
}

TAP_MAIN
