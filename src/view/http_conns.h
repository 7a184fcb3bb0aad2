/* SPDX-License-Identifier: MIT */
/*
 * The connections of the HTTP server, so that a slow one costs the others nothing: each may take
 * only so long to say what it wants, and so long to take the answer, and less when many are open.
 * MHD's own timeout would do for silent clients only; one that sends a byte a second outlives it.
 *
 * The table's lock is its own. A socket is shut down under it, and the connection's entry goes
 * before MHD closes the socket, so no other file's descriptor can be hit.
 */
#ifndef FRESHET_HTTP_CONNS_H
#define FRESHET_HTTP_CONNS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "view/http_body.h"

#define CONNS_MAX 1024u /* open at once; further ones wait in the listen queue */

enum conn_state {
	CONN_NEW,       /* its first request is coming in */
	CONN_READING,   /* it is kept alive, idle, or a further request is coming in */
	CONN_WAITING,   /* suspended: we make it wait */
	CONN_ANSWERING, /* the answer is going out */
};

struct conn {
	int fd;
	enum conn_state state;
	uint64_t since_ns;           /* it came into that state */
	const struct bodies *bodies; /* of the answer going out; belong to it */
	struct conn *next, **at;
};

struct conns {
	pthread_mutex_t lock;
	struct conn *first;
	unsigned count;
};

void conns_init(struct conns *t);
void conns_destroy(struct conns *t);

/* NULL: no memory. */
struct conn *conns_add(struct conns *t, int fd, uint64_t now_ns);
void conns_remove(struct conns *t, struct conn *c);

void conns_state(struct conns *t, struct conn *c, enum conn_state state,
		 const struct bodies *bodies, uint64_t now_ns);

/* More than half of the table is in use: nobody may take longer than CROWDED_NS for anything. */
#define CROWDED_NS (5 * NSEC_PER_SEC)
bool conns_crowded(struct conns *t);

/* Shuts down those that have had their time. Any thread. */
void conns_sweep(struct conns *t, uint64_t now_ns);

/* Shuts down those that still take in a body of a former pass. MHD's thread. */
void conns_drop_old(struct conns *t);

#endif
