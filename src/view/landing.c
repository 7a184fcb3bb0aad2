/* SPDX-License-Identifier: MIT */
/* The page at "/": what this is and where the numbers are. No script, nothing loaded from elsewhere. */
#include "view/http.h"
#include "view/safe.h"

static const char before[] =
	"<!DOCTYPE html>\n"
	"<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Freshet</title>\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<style>\n"
	":root{color-scheme:light dark}\n"
	"body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem}\n"
	"table{border-collapse:collapse;width:100%}\n"
	"th,td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;"
	"border-bottom:1px solid #8884}\n"
	"th{font-weight:600;white-space:nowrap}\n"
	"td{overflow-wrap:anywhere}\n"
	"code{font-size:.95em}\n"
	"</style></head><body>\n"
	"<h1>Freshet</h1>\n"
	"<p>Every cgroup's numbers on this host, fresh and without the kernel's rstat lock.</p>\n"
	"<h2>Numbers</h2>\n<table>\n"
	"<tr><th><a href=\"/metrics\">/metrics</a><td>all groups for Prometheus: text 0.0.4, or "
	"OpenMetrics 1.0 by <code>Accept</code>; gzip. <code>?path=/a</code> is one subtree\n"
	"<tr><th><a href=\"/api/v1/groups?depth=1\">/api/v1/groups</a><td>JSON. "
	"<code>?path=/a</code> is one subtree, <code>&amp;depth=1</code> how far down, "
	"<code>&amp;max_age=100ms</code> how old the numbers may be\n"
	"<tr><th><a href=\"/api/v1/segments\">/api/v1/segments</a><td>JSON: the segments shown, "
	"this host's and those of programs. <code>?segment=NAME</code> in the two above is one of "
	"them\n"
	"<tr><th><a href=\"/healthz\">/healthz</a><td>200 while passes are made, 503 when the last "
	"is too old\n"
	"</table>\n";

static const char programs_before[] = "<h2>Programs</h2>\n<table>\n";
static const char host_before[] = "<h2>This host</h2>\n<table>\n";

static const char after[] = "</table>\n</body></html>\n";

static void add_escaped(struct buf *out, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '&':
			buf_str(out, "&amp;");
			break;
		case '<':
			buf_str(out, "&lt;");
			break;
		case '>':
			buf_str(out, "&gt;");
			break;
		default:
			buf_char(out, *s);
		}
	}
}

/* What a program says of itself may hold any byte. */
static void add_foreign(struct buf *out, const char *s)
{
	struct buf safe = BUF_INIT;

	safe_name(&safe, s, false);
	buf_char(&safe, '\0');
	if (safe.error)
		out->error = safe.error;
	else
		add_escaped(out, safe.data);
	buf_free(&safe);
}

void landing_render(struct buf *out, const struct http_fact *facts, size_t nfacts,
		    const struct http_fact *programs, size_t nprograms)
{
	buf_str(out, before);
	if (nprograms)
		buf_str(out, programs_before);
	for (size_t i = 0; i < nprograms; i++) {
		/* names of segments need no escape: base/where.h */
		buf_printf(out, "<tr><th><a href=\"/metrics?segment=%s\">%s</a><td>",
			   programs[i].name, programs[i].name);
		add_foreign(out, programs[i].value);
		buf_printf(out, " (<a href=\"/api/v1/groups?segment=%s&amp;depth=1\">JSON</a>)\n",
			   programs[i].name);
	}
	if (nprograms)
		buf_str(out, "</table>\n");
	buf_str(out, host_before);
	for (size_t i = 0; i < nfacts; i++) {
		buf_str(out, "<tr><th>");
		add_escaped(out, facts[i].name);
		buf_str(out, "<td>");
		add_escaped(out, facts[i].value);
		buf_char(out, '\n');
	}
	buf_str(out, after);
}
