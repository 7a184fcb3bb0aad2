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
	size = deflateBound(&z, plain->len);
	data = size <= UINT32_MAX ? malloc(size) : NULL;
	if (!data) {
		deflateEnd(&z);
		return NULL;
	}
	z.next_in = (Bytef *)plain->data;
	z.avail_in = (uInt)plain->len;
	z.next_out = (Bytef *)data;
	z.avail_out = (uInt)size;
	deflate(&z, Z_FINISH); /* within deflateBound() this ends the stream */
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

	if (!copy)
		return;
	drop(c, i);
	c->entry[i].key = copy;
	c->entry[i].body = body_ref(b);
	b->cached = true;
	c->next = (i + 1) % BODY_CACHE_ENTRIES;
}

/* What MHD sends before and after the shared data. */
struct envelope {
	struct body *body;
	unsigned char trailer[GZIP_TRAILER];
	unsigned char head[]; /* with gzip's header and that of the stored block */
};

static void envelope_free(void *p)
{
	struct envelope *e = p;

	body_unref(e->body);
	free(e);
}

static void little_endian(unsigned char *to, uint32_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (unsigned char)(v >> 8 * i);
}

struct MHD_Response *body_response(struct body *b, const struct buf *head)
{
	static const unsigned char magic[GZIP_HEADER] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 3 };
	size_t extra = b->gzip ? GZIP_HEADER + STORED_HEADER : 0;
	struct MHD_Response *response;
	struct MHD_IoVec iov[3];
	struct envelope *e;

	if (head->error || head->len > UINT16_MAX)
		return NULL;
	e = malloc(sizeof(*e) + extra + head->len);
	if (!e)
		return NULL;
	e->body = body_ref(b);
	if (head->len)
		memcpy(e->head + extra, head->data, head->len);
	if (b->gzip) {
		uLong crc = crc32_z(0, e->head + extra, head->len);

		memcpy(e->head, magic, sizeof(magic));
		e->head[GZIP_HEADER] = 0; /* a stored block, not the last */
		little_endian(e->head + GZIP_HEADER + 1, (uint32_t)head->len, 2);
		little_endian(e->head + GZIP_HEADER + 3, ~(uint32_t)head->len, 2);
		crc = crc32_combine(crc, b->raw_crc, (z_off_t)b->raw_len);
		little_endian(e->trailer, (uint32_t)crc, 4);
		little_endian(e->trailer + 4, (uint32_t)head->len + b->raw_len, 4);
	}
	iov[0] = (struct MHD_IoVec){ e->head, extra + head->len };
	iov[1] = (struct MHD_IoVec){ b->data, b->len };
	iov[2] = (struct MHD_IoVec){ e->trailer, sizeof(e->trailer) };
	response = MHD_create_response_from_iovec(iov, b->gzip ? 3 : 2, envelope_free, e);
	if (!response)
		envelope_free(e);
	return response;
}
