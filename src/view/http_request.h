/* SPDX-License-Identifier: MIT */
/* Between http.c (the server, its connections, who waits) and http_answer.c (what is answered). */
#ifndef FRESHET_HTTP_REQUEST_H
#define FRESHET_HTTP_REQUEST_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>

#include "view/http.h"
#include "view/http_body.h"
#include "view/http_conns.h"
#include "view/http_parse.h"
#include "view/http_tree.h"

enum endpoint { LANDING, METRICS, GROUPS, SEGMENTS, HEALTHZ, NOWHERE, NENDPOINTS };

/* For metrics: "metrics", ... */
extern const char *const http_endpoint_names[NENDPOINTS];

struct http {
	struct http_options options;
	struct MHD_Daemon *mhd;
	struct conns conns;

	/* Held while a request is answered: of options.view and the trees. Comes before `lock`. */
	pthread_mutex_t view_lock;
	struct tree *host;
	struct tree *programs; /* as they came */
	struct tree *retired;  /* dropped, but for their bodies */
	struct claims own;     /* names of the daemon's own metrics */

	pthread_mutex_t lock; /* of what follows, up to the blank line */
	struct request *waiting;
	bool stopping;
	char ailing[512];

	/* The server's thread alone uses the rest. */
	size_t live_bytes; /* of all bodies, those that only slow clients still hold included */
	uint64_t rendered_bytes;
	uint64_t requests[NENDPOINTS];
};

struct request {
	struct MHD_Connection *connection;
	char *text; /* the target as it came, taken apart in place */
	struct http_target target;
	int parsed;           /* 0 or what http_target_parse() gave */
	bool begun;           /* MHD has shown it to us before */
	bool read;            /* MHD knows that it is whole, see http_wait() */
	uint64_t since_ns;    /* wants a pass begun then or later; 0: any will do */
	uint64_t asked_ns;    /* when it came, if it may have to wait; else 0 */
	struct request *next; /* in http.waiting */
};

/* Answers a request that is complete; or gives MHD_YES without an answer after http_wait(). */
enum MHD_Result http_answer(struct http *h, struct request *r, const char *method);

/* Suspends the request unless the pass it wants is there, or has been waited for long enough. True:
 * it is not to be answered now; it will be shown again. */
bool http_wait(struct http *h, struct request *r);

/* Queues a response and gives up the caller's reference; its bodies may be NULL. */
enum MHD_Result http_send(struct http *h, struct request *r, unsigned status,
			  struct MHD_Response *response, const struct bodies *bodies);

/* Makes the host's tree and what it needs, and the end of it all. 0 or -ENOMEM. */
int http_begin(struct http *h);
void http_end(struct http *h);

/* Whole families about the server and what it shows. */
void http_own_metrics(struct http *h, struct buf *out, enum metrics_format format);

/* The age of the host's last pass, as a family. */
void http_age_metric(struct http *h, struct buf *out, enum metrics_format format);

/* The segment of that name, NULL: the host's; or NULL: there is none. */
struct tree *http_tree(struct http *h, const char *name);

/* tree_catch_up(), within what all programs may take. */
int http_catch_up(struct http *h, struct tree *t);

/* Bytes that a text of the tree may take in an answer with those bodies; 0: any. May empty caches. */
size_t http_text_room(struct http *h, const struct tree *t, const struct bodies *answer);

/* Frees what is retired. The server's thread, or behind it. */
void http_reap(struct http *h);

/* {"segments":[...]}, and the landing page. */
void http_segments_json(struct http *h, struct buf *out);
void http_landing(struct http *h, struct buf *out);

/* A line of text. */
enum MHD_Result http_say(struct http *h, struct request *r, unsigned status, const char *format,
			 ...) __attribute__((format(printf, 4, 5)));

#endif
