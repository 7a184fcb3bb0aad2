/* SPDX-License-Identifier: MIT */
/*
 * Renderings that many answers share.
 *
 * An answer is a head, which is new with every answer (ages, the daemon's own metrics), bodies, each
 * rendered once a pass and shared by reference, and a tail. With gzip head and tail are stored blocks
 * around the bodies' compressed data, and all their checksums are combined: nothing is compressed
 * twice.
 *
 * One thread, MHD's: references are plain counts.
 */
#ifndef FRESHET_HTTP_BODY_H
#define FRESHET_HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct MHD_Response;

struct body {
	char *data; /* plain, or raw deflate data that ends at a byte and does not end the stream */
	size_t len;
	uint32_t raw_len; /* before compression, modulo 2^32, as gzip wants it */
	uint32_t raw_crc;
	unsigned refs;
	bool gzip;
	bool cached;  /* the cache holds a reference: it belongs to the latest pass */
	size_t *live; /* sum of the data of all bodies, to be kept up to date */
};

#define BODY_CACHE_ENTRIES 32u
#define BODY_CACHE_BYTES   (16u << 20)
#define BODY_CACHE_BODIES  4u

/* The bodies of one pass by key. They take at most BODY_CACHE_BYTES, or BODY_CACHE_BODIES times what the
 * newest takes: whoever asks for one part of a large tree after the other shall not fill our memory. */
struct body_cache {
	uint64_t pass;
	unsigned next; /* entry to be given up first */
	struct {
		char *key;
		struct body *body;
	} entry[BODY_CACHE_ENTRIES];
};

/* Takes the buffer's memory over (it is empty then). NULL: no memory; the buffer stays. */
struct body *body_new(struct buf *from, size_t *live);

/* The same, compressed. NULL: no memory. */
struct body *body_deflate(const struct body *plain);

struct body *body_ref(struct body *b);
void body_unref(struct body *b);

/* Forgets everything if the cache is of another pass. */
void body_cache_pass(struct body_cache *c, uint64_t pass);

/* The body (a reference of the cache's, valid until the next call of a function here), or NULL. */
struct body *body_cache_get(const struct body_cache *c, const char *key);

/* Keeps a reference, unless there is no memory for the key; the oldest are given up for it. */
void body_cache_put(struct body_cache *c, const char *key, struct body *b);

void body_cache_clear(struct body_cache *c);

/* What its bodies take, bytes. */
size_t body_cache_bytes(const struct body_cache *c);

#define BODIES_MAX 72u

/* The bodies of one answer, all compressed or none. */
struct bodies {
	unsigned count;
	bool gzip;
	struct body *body[BODIES_MAX];
};

void bodies_unref(struct bodies *b);

/* Whether some of them belong to a former pass. */
bool bodies_old(const struct bodies *b);

/* An answer: head and tail, at most 65,535 bytes each, and between them the bodies, whose references
 * it takes over: it keeps them until MHD has sent it or given up. *kept are they, as long as the
 * answer lives. NULL: no memory; the references stay the caller's. */
struct MHD_Response *bodies_response(struct bodies *b, const struct buf *head, const char *tail,
				     const struct bodies **kept);

#endif
