/* SPDX-License-Identifier: MIT */
/* Implements http_body.h: RFC 1951 (deflate), RFC 1952 (gzip). */
#include "view/http_body.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define GZIP_HEADER   10u
#define STORED_HEADER 5u
#define GZIP_TRAILER  8u

static struct body *body_make(char *data, size_t len, size_t *live)
{
	struct body *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->data = data;
	b->len = len;
	b->refs = 1;
	b->live = live;
	*live += len;
	return b;
}

struct body *body_new(struct buf *from, size_t *live)
{
	struct body *b = from->error ? NULL : body_make(from->data, from->len, live);

	if (!b)
		return NULL;
	*from = (struct buf)BUF_INIT;
	b->raw_len = (uint32_t)b->len;
	return b;
}

struct body *body_deflate(const struct body *plain)
{
	z_stream z = { 0 };
	struct body *b;
	char *data, *less;
	size_t size;

	/* The fastest level: a scrape waits for this, and it already shrinks metrics 10 times. */
	if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return NULL;
	size = deflateBound(&z, plain->len) + 64; /* and the mark of the flush */
	data = size <= UINT32_MAX ? malloc(size) : NULL;
	if (!data) {
		deflateEnd(&z);
		return NULL;
	}
	z.next_in = (Bytef *)plain->data;
	z.avail_in = (uInt)plain->len;
	z.next_out = (Bytef *)data;
	z.avail_out = (uInt)size;
	deflate(&z, Z_SYNC_FLUSH); /* there is room for everything: others may follow */
	size -= z.avail_out;
	deflateEnd(&z);
	less = realloc(data, size);
	if (less)
		data = less;
	b = body_make(data, size, plain->live);
	if (!b) {
		free(data);
		return NULL;
	}
	b->gzip = true;
	b->raw_len = plain->raw_len;
	b->raw_crc = (uint32_t)crc32_z(0, (const Bytef *)plain->data, plain->len);
	return b;
}

struct body *body_ref(struct body *b)
{
	b->refs++;
	return b;
}

void body_unref(struct body *b)
{
	if (!b || --b->refs)
		return;
	*b->live -= b->len;
	free(b->data);
	free(b);
}

static void drop(struct body_cache *c, unsigned i)
{
	if (!c->entry[i].key)
		return;
	free(c->entry[i].key);
	c->entry[i].key = NULL;
	c->entry[i].body->cached = false;
	body_unref(c->entry[i].body);
	c->entry[i].body = NULL;
}

void body_cache_clear(struct body_cache *c)
{
	for (unsigned i = 0; i < BODY_CACHE_ENTRIES; i++)
		drop(c, i);
}

size_t body_cache_bytes(const struct body_cache *c)
{
	size_t sum = 0;

	for (unsigned i = 0; i < BODY_CACHE_ENTRIES; i++)
		sum += c->entry[i].body ? c->entry[i].body->len : 0;
	return sum;
}

void body_cache_pass(struct body_cache *c, uint64_t pass)
{
	if (c->pass != pass)
		body_cache_clear(c);
	c->pass = pass;
}

struct body *body_cache_get(const struct body_cache *c, const char *key)
{
	for (unsigned i = 0; i < BODY_CACHE_ENTRIES; i++)
		if (c->entry[i].key && strcmp(c->entry[i].key, key) == 0)
			return c->entry[i].body;
	return NULL;
}

void body_cache_put(struct body_cache *c, const char *key, struct body *b)
{
	char *copy = strdup(key);
	unsigned i = c->next;
	size_t most = BODY_CACHE_BODIES * b->len, sum;

	if (!copy)
		return;
	if (most < BODY_CACHE_BYTES)
		most = BODY_CACHE_BYTES;
	drop(c, i);
	/* the oldest first */
	sum = b->len + body_cache_bytes(c);
	for (unsigned k = i; sum > most && k < i + BODY_CACHE_ENTRIES; k++) {
		unsigned old = k % BODY_CACHE_ENTRIES;

		sum -= c->entry[old].body ? c->entry[old].body->len : 0;
		drop(c, old);
	}
	c->entry[i].key = copy;
	c->entry[i].body = body_ref(b);
	b->cached = true;
	c->next = (i + 1) % BODY_CACHE_ENTRIES;
}

void bodies_unref(struct bodies *b)
{
	for (unsigned i = 0; i < b->count; i++)
		body_unref(b->body[i]);
	b->count = 0;
}

bool bodies_old(const struct bodies *b)
{
	for (unsigned i = 0; i < b->count; i++)
		if (!b->body[i]->cached)
			return true;
	return false;
}

/* What MHD sends before and after the shared data. */
struct envelope {
	struct bodies bodies;
	unsigned char text[]; /* head, then tail, with what gzip wants around them */
};

static void envelope_free(void *p)
{
	struct envelope *e = p;

	bodies_unref(&e->bodies);
	free(e);
}

static unsigned char *little_endian(unsigned char *to, uint32_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*to++ = (unsigned char)(v >> 8 * i);
	return to;
}

/* A stored block; what is behind it. */
static unsigned char *add_stored(unsigned char *to, bool last, const char *data, size_t len)
{
	*to++ = last;
	to = little_endian(to, (uint32_t)len, 2);
	to = little_endian(to, ~(uint32_t)len, 2);
	if (len)
		memcpy(to, data, len);
	return to + len;
}

static void fill(struct envelope *e, const struct buf *head, const char *tail)
{
	static const unsigned char magic[GZIP_HEADER] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 3 };
	size_t tail_len = strlen(tail), len = head->len + tail_len;
	unsigned char *to = e->text;
	uLong crc;

	if (!e->bodies.gzip) {
		if (head->len)
			memcpy(to, head->data, head->len);
		memcpy(to + head->len, tail, tail_len);
		return;
	}
	memcpy(to, magic, sizeof(magic));
	to = add_stored(to + sizeof(magic), false, head->data, head->len);
	to = add_stored(to, true, tail, tail_len);
	crc = head->len ? crc32_z(0, (const Bytef *)head->data, head->len) : crc32_z(0, NULL, 0);
	for (unsigned i = 0; i < e->bodies.count; i++) {
		const struct body *b = e->bodies.body[i];

		crc = crc32_combine(crc, b->raw_crc, (z_off_t)b->raw_len);
		len += b->raw_len;
	}
	crc = crc32_combine(crc, crc32_z(0, (const Bytef *)tail, tail_len), (z_off_t)tail_len);
	to = little_endian(to, (uint32_t)crc, 4);
	little_endian(to, (uint32_t)len, 4);
}

struct MHD_Response *bodies_response(struct bodies *b, const struct buf *head, const char *tail,
				     const struct bodies **kept)
{
	size_t before = b->gzip ? GZIP_HEADER + STORED_HEADER : 0;
	size_t after = b->gzip ? STORED_HEADER + GZIP_TRAILER : 0;
	struct MHD_IoVec iov[BODIES_MAX + 2];
	struct MHD_Response *response;
	unsigned n = 0;
	struct envelope *e;

	if (head->error || head->len > UINT16_MAX)
		return NULL;
	e = malloc(sizeof(*e) + before + head->len + strlen(tail) + after);
	if (!e)
		return NULL;
	e->bodies = *b;
	fill(e, head, tail);
	iov[n++] = (struct MHD_IoVec){ e->text, before + head->len };
	for (unsigned i = 0; i < b->count; i++)
		iov[n++] = (struct MHD_IoVec){ b->body[i]->data, b->body[i]->len };
	iov[n++] = (struct MHD_IoVec){ e->text + before + head->len, after + strlen(tail) };
	response = MHD_create_response_from_iovec(iov, n, envelope_free, e);
	if (!response) {
		free(e);
		return NULL;
	}
	b->count = 0;
	*kept = &e->bodies;
	return response;
}
