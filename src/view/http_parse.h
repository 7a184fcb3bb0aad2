/* SPDX-License-Identifier: MIT */
/* What a request says: its target, Accept, Accept-Encoding. Pure. */
#ifndef FRESHET_HTTP_PARSE_H
#define FRESHET_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_MAX_PARAMETERS 8u

struct http_target {
	const char *path;
	unsigned count;
	struct {
		const char *name, *value;
	} parameter[HTTP_MAX_PARAMETERS];
};

/*
 * Takes "/path?a=b&c=d" apart, in place: percent escapes are undone, and "+" in the query is a
 * blank. The result's strings are text's. -EILSEQ: an escape that is none, or of NUL; -E2BIG: too
 * many parameters. On failure text is no longer what it was.
 */
int http_target_parse(char *text, struct http_target *ret);

/* A parameter's value, or NULL. */
const char *http_target_get(const struct http_target *t, const char *name);

/* A form in which an answer is to be had. */
struct http_media {
	const char *type; /* "text/plain" */
	const char
		*version; /* what a "version" parameter must be if there is one; NULL: anything */
};

/*
 * Which of the offered forms an Accept header likes best: the highest q, then the one named more
 * precisely, then the one offered first. Ranges that make no sense are passed over; no header (NULL
 * or blank) accepts all. -ENOENT: none is acceptable.
 */
int http_accept(const char *header, const struct http_media *offered, unsigned count);

/* Whether an Accept-Encoding header likes gzip at least as well as plain. */
bool http_accept_gzip(const char *header);

#endif
