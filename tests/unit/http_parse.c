/* SPDX-License-Identifier: MIT */
/* Targets and negotiation headers of requests, real ones and malformed ones. */
#include "view/http_parse.h"

#include <errno.h>
#include <string.h>

#include "tap.h"

TEST(targets)
{
	char text[] = "/api/v1/gro%75ps?path=%2Fa%20b%2fc+d%2B&depth=1&&max_age&=x&e=f=g";
	struct http_target t;

	REQUIRE(http_target_parse(text, &t) == 0);
	EXPECT(strcmp(t.path, "/api/v1/groups") == 0, "%s", t.path);
	EXPECT_EQ(t.count, 5);
	EXPECT(strcmp(http_target_get(&t, "path"), "/a b/c d+") == 0);
	EXPECT(strcmp(http_target_get(&t, "depth"), "1") == 0);
	EXPECT(strcmp(http_target_get(&t, "max_age"), "") == 0);
	EXPECT(strcmp(http_target_get(&t, ""), "x") == 0);
	EXPECT(strcmp(http_target_get(&t, "e"), "f=g") == 0);
	EXPECT(!http_target_get(&t, "dept"));
}

TEST(bad_targets)
{
	static const struct {
		const char *text;
		int error;
	} cases[] = {
		{ "/%", -EILSEQ },     { "/%4", -EILSEQ },
		{ "/%zz", -EILSEQ },   { "/%00", -EILSEQ },
		{ "/?a=%", -EILSEQ },  { "/?%=a", -EILSEQ },
		{ "/?a=%4", -EILSEQ }, { "/?a=b&c=%g0", -EILSEQ },
		{ "/?a=%0", -EILSEQ }, { "/?1&2&3&4&5&6&7&8&9", -E2BIG },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct http_target t;
		char text[64];

		strcpy(text, cases[i].text);
		EXPECT(http_target_parse(text, &t) == cases[i].error, "%s", cases[i].text);
	}
}

static const struct http_media offered[] = {
	{ "text/plain", "0.0.4" },
	{ "application/openmetrics-text", "1.0.0" },
};

enum { PLAIN, OPENMETRICS };

TEST(accept)
{
	static const struct {
		const char *header;
		int wanted;
	} cases[] = {
		{ NULL, PLAIN },
		{ "", PLAIN },
		{ " , ", PLAIN },
		{ "*/*", PLAIN },
		{ "text/*", PLAIN },
		{ "TEXT/Plain", PLAIN },
		{ "application/*", OPENMETRICS },
		{ "application/openmetrics-text", OPENMETRICS },
		{ "application/openmetrics-text;version=1.0.0", OPENMETRICS },
		{ "application/openmetrics-text; version=\"1.0.0\"; charset=utf-8", OPENMETRICS },
		{ "application/openmetrics-text;version=0.0.1", -ENOENT },
		{ "application/openmetrics-text, */*", OPENMETRICS },
		{ "application/openmetrics-text;q=0.5, text/plain", PLAIN },
		{ "application/openmetrics-text;q=0, */*", PLAIN },
		{ "text/plain;q=0, */*;q=0.1", OPENMETRICS },
		{ "text/plain;q=0", -ENOENT },
		{ "*/*;q=0", -ENOENT },
		{ "image/png", -ENOENT },
		{ "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
		  PLAIN },
		/* Prometheus 2.42, 2.50 and 3 */
		{ "application/openmetrics-text;version=1.0.0,"
		  "application/openmetrics-text;version=0.0.1;q=0.75,"
		  "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		  OPENMETRICS },
		{ "application/openmetrics-text;version=1.0.0;q=0.5,"
		  "application/openmetrics-text;version=0.0.1;q=0.4,"
		  "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		  OPENMETRICS },
		{ "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
		  "application/openmetrics-text;version=0.0.1;q=0.5,"
		  "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
		  "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		  OPENMETRICS },
		/* ranges that make no sense are passed over */
		{ "text/plain;q=2, application/openmetrics-text;q=0.1", OPENMETRICS },
		{ "text/plain;q=1.001, */*;q=0.3", PLAIN },
		{ "text/plain;q=x", -ENOENT },
		{ "text/plain;q=", -ENOENT },
		{ "text/plain;q=0.12345", -ENOENT },
		{ ";;;,text/plain", PLAIN },
		{ "a=\"unclosed, text/plain", -ENOENT },
		{ "a;b=\"x, text/plain\\\", y\", application/openmetrics-text", OPENMETRICS },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int got = http_accept(cases[i].header, offered, 2);

		EXPECT(got == cases[i].wanted, "\"%s\": %d, not %d",
		       cases[i].header ? cases[i].header : "(none)", got, cases[i].wanted);
	}
}

TEST(accept_gzip)
{
	static const struct {
		const char *header;
		bool wanted;
	} cases[] = {
		{ NULL, false },
		{ "", false },
		{ "gzip", true },
		{ "x-gzip", true },
		{ "GZIP", true },
		{ "deflate, gzip;q=0.5", true },
		{ "gzip;q=0", false },
		{ "gzip;q=0.000", false },
		{ "gzip;q=0.3, identity;q=0.7", false },
		{ "gzip;q=0.7, identity;q=0.3", true },
		{ "identity", false },
		{ "*", true },
		{ "*;q=0", false },
		{ "gzip;q=0, *", false },
		{ "br", false },
		{ "gzip;q=9", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		EXPECT(http_accept_gzip(cases[i].header) == cases[i].wanted, "\"%s\"",
		       cases[i].header ? cases[i].header : "(none)");
}

TAP_MAIN
