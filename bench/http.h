/* SPDX-License-Identifier: MIT */
/* As much of an HTTP client as a scraper is: one connection, one request at a time. */
#ifndef FRESHET_BENCH_HTTP_H
#define FRESHET_BENCH_HTTP_H

#include <stdbool.h>
#include <stddef.h>

struct http {
	int socket;
	char *body; /* of the last answer; room for `capacity` bytes */
	size_t capacity;
};

struct http_answer {
	size_t bytes; /* of the body */
	double ms;    /* from the request to the body's last byte */
	bool gzip;    /* Content-Encoding */
};

/* Connects to 127.0.0.1. 0, or -1 after a message. */
int http_open(struct http *h, int port);
void http_close(struct http *h);

/* GET on the kept connection; anything but a complete 200 is an error. 0, or -1 after a message. */
int http_get(struct http *h, const char *target, bool gzip, struct http_answer *ret);

#endif
