/* SPDX-License-Identifier: MIT */
/* Implements http_parse.h: RFC 3986 (escapes), RFC 9110 section 12 (negotiation). */
#include "view/http_parse.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int decode(char *s, bool plus_is_blank)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '%') {
			int high = hex(s[1]), low = high < 0 ? -1 : hex(s[2]);

			if (low < 0 || high + low == 0)
				return -EILSEQ;
			*to++ = (char)(high * 16 + low);
			s += 2;
		} else {
			*to++ = *s == '+' && plus_is_blank ? ' ' : *s;
		}
	}
	*to = '\0';
	return 0;
}

int http_target_parse(char *text, struct http_target *ret)
{
	char *query = strchr(text, '?'), *next;

	*ret = (struct http_target){ .path = text };
	if (query)
		*query++ = '\0';
	if (decode(text, false) < 0)
		return -EILSEQ;
	for (; query; query = next) {
		char *value;

		next = strchr(query, '&');
		if (next)
			*next++ = '\0';
		if (!*query)
			continue;
		if (ret->count == HTTP_MAX_PARAMETERS)
			return -E2BIG;
		value = strchr(query, '=');
		if (value)
			*value++ = '\0';
		else
			value = query + strlen(query);
		if (decode(query, true) < 0 || decode(value, true) < 0)
			return -EILSEQ;
		ret->parameter[ret->count].name = query;
		ret->parameter[ret->count++].value = value;
	}
	return 0;
}

const char *http_target_get(const struct http_target *t, const char *name)
{
	for (unsigned i = 0; i < t->count; i++)
		if (strcmp(t->parameter[i].name, name) == 0)
			return t->parameter[i].value;
	return NULL;
}

/* A piece of a header. */
struct piece {
	const char *s;
	size_t len;
};

static bool is(struct piece p, const char *word)
{
	return p.len == strlen(word) && strncasecmp(p.s, word, p.len) == 0;
}

static struct piece trim(struct piece p)
{
	while (p.len && (*p.s == ' ' || *p.s == '\t')) {
		p.s++;
		p.len--;
	}
	while (p.len && (p.s[p.len - 1] == ' ' || p.s[p.len - 1] == '\t'))
		p.len--;
	return p;
}

/* Cuts the next piece off, up to a separator that is not inside a quoted string. */
static bool next_piece(const char **at, const char *end, char separator, struct piece *ret)
{
	const char *p = *at;
	bool quoted = false;

	if (p > end)
		return false;
	for (; p < end && (quoted || *p != separator); p++) {
		if (*p == '"')
			quoted = !quoted;
		else if (*p == '\\' && quoted && p + 1 < end)
			p++;
	}
	*ret = trim((struct piece){ *at, (size_t)(p - *at) });
	*at = p + 1;
	return true;
}

/* "0", "0.25", "1.000" in thousandths; -1: no such thing. */
static int parse_q(struct piece p)
{
	int q, scale = 100;

	if (!p.len || (p.s[0] != '0' && p.s[0] != '1'))
		return -1;
	q = (p.s[0] - '0') * 1000;
	if (p.len > 1 && p.s[1] != '.')
		return -1;
	if (p.len > 5)
		return -1;
	for (size_t i = 2; i < p.len; i++, scale /= 10) {
		if (p.s[i] < '0' || p.s[i] > '9')
			return -1;
		q += (p.s[i] - '0') * scale;
	}
	return q <= 1000 ? q : -1;
}

/* One element of such a header: what is named, its version parameter and its q. */
struct range {
	struct piece name, version;
	int q;
};

static bool next_range(const char **at, const char *end, struct range *ret)
{
	struct piece element, part;

	while (next_piece(at, end, ',', &element)) {
		const char *from = element.s, *to = element.s + element.len;

		*ret = (struct range){ .q = 1000 };
		if (!next_piece(&from, to, ';', &ret->name) || !ret->name.len)
			continue;
		while (next_piece(&from, to, ';', &part)) {
			const char *equals = memchr(part.s, '=', part.len);
			struct piece name = { part.s, equals ? (size_t)(equals - part.s) : 0 };
			struct piece value = { equals ? equals + 1 : NULL,
					       equals ? part.len - name.len - 1 : 0 };

			if (value.len >= 2 && value.s[0] == '"' && value.s[value.len - 1] == '"') {
				value.s++;
				value.len -= 2;
			}
			if (is(name, "q"))
				ret->q = parse_q(value);
			else if (is(name, "version"))
				ret->version = value;
		}
		if (ret->q >= 0)
			return true;
	}
	return false;
}

/* How precisely a range names a form, from 1; 0: it does not. */
static int precision(const struct range *r, const struct http_media *m)
{
	const char *slash = strchr(m->type, '/');
	size_t major = (size_t)(slash - m->type) + 1;

	if (is(r->name, "*/*"))
		return 1;
	if (r->name.len == major + 1 && r->name.s[major] == '*' &&
	    strncasecmp(r->name.s, m->type, major) == 0)
		return 2;
	if (!is(r->name, m->type))
		return 0;
	if (!r->version.len || !m->version)
		return 3;
	return is(r->version, m->version) ? 4 : 0;
}

int http_accept(const char *header, const struct http_media *offered, unsigned count)
{
	int best = -ENOENT, best_q = 0, best_precision = 0;
	const char *end;

	if (!header || !header[strspn(header, " \t,")])
		return 0;
	end = header + strlen(header);
	for (unsigned i = 0; i < count; i++) {
		int found = 0, q = 0;
		const char *at = header;
		struct range range;

		/* The most precise range that names a form decides on it (RFC 9110, 12.5.1). */
		while (next_range(&at, end, &range)) {
			int p = precision(&range, &offered[i]);

			if (p > found || (p && p == found && range.q > q)) {
				found = p;
				q = range.q;
			}
		}
		if (q > best_q || (q && q == best_q && found > best_precision)) {
			best = (int)i;
			best_q = q;
			best_precision = found;
		}
	}
	return best;
}

bool http_accept_gzip(const char *header)
{
	int gzip = -1, identity = -1, any = -1;
	const char *at = header, *end;
	struct range range;

	if (!header)
		return false;
	end = header + strlen(header);
	while (next_range(&at, end, &range)) {
		if (is(range.name, "gzip") || is(range.name, "x-gzip"))
			gzip = range.q;
		else if (is(range.name, "identity"))
			identity = range.q;
		else if (is(range.name, "*"))
			any = range.q;
	}
	if (gzip < 0)
		gzip = any;
	/* Plain is always acceptable unless refused, but only preferred when it is named. */
	return gzip > 0 && gzip >= identity;
}
