/* SPDX-License-Identifier: MIT */
/* A growing byte buffer for renderers. A failed allocation, or what goes beyond `max`, is remembered in
 * `error` and later calls do nothing, so that a renderer checks once, at its end. */
#ifndef FRESHET_BUF_H
#define FRESHET_BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;      /* not NUL-terminated */
	size_t len;
	size_t capacity;
	size_t max;      /* len may become so much; 0: any */
	int error;       /* 0, -ENOMEM or -E2BIG */
};

#define BUF_INIT { 0 }

void buf_free(struct buf *b);
void buf_clear(struct buf *b); /* keeps the memory */
void buf_add(struct buf *b, const void *data, size_t len);
void buf_str(struct buf *b, const char *s);
void buf_char(struct buf *b, char c);
void buf_u64(struct buf *b, uint64_t v);
void buf_i64(struct buf *b, int64_t v);
/* ns as decimal seconds, exact, without trailing zeros: 1500000000 -> "1.5" */
void buf_seconds(struct buf *b, uint64_t ns);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
