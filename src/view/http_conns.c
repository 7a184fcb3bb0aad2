/* SPDX-License-Identifier: MIT */
/* Implements http_conns.h. */
#include "view/http_conns.h"

#include <stdlib.h>
#include <sys/socket.h>

/* Idle connections are kept over a usual scrape interval of a minute. */
static const uint64_t limits[] = {
	[CONN_NEW] = 20 * NSEC_PER_SEC,
	[CONN_READING] = 120 * NSEC_PER_SEC,
	[CONN_WAITING] = UINT64_MAX, /* is ended by whom it waits for */
	[CONN_ANSWERING] = 30 * NSEC_PER_SEC,
};

void conns_init(struct conns *t)
{
	*t = (struct conns){ .first = NULL };
	pthread_mutex_init(&t->lock, NULL);
}

void conns_destroy(struct conns *t)
{
	pthread_mutex_destroy(&t->lock);
}

struct conn *conns_add(struct conns *t, int fd, uint64_t now_ns)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fd = fd;
	c->since_ns = now_ns;
	pthread_mutex_lock(&t->lock);
	c->next = t->first;
	c->at = &t->first;
	if (c->next)
		c->next->at = &c->next;
	t->first = c;
	t->count++;
	pthread_mutex_unlock(&t->lock);
	return c;
}

void conns_remove(struct conns *t, struct conn *c)
{
	pthread_mutex_lock(&t->lock);
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	t->count--;
	pthread_mutex_unlock(&t->lock);
	free(c);
}

void conns_state(struct conns *t, struct conn *c, enum conn_state state,
		 const struct bodies *bodies, uint64_t now_ns)
{
	pthread_mutex_lock(&t->lock);
	c->state = state;
	c->bodies = bodies;
	c->since_ns = now_ns;
	pthread_mutex_unlock(&t->lock);
}

static bool crowded(const struct conns *t)
{
	return t->count > CONNS_MAX / 2;
}

bool conns_crowded(struct conns *t)
{
	bool yes;

	pthread_mutex_lock(&t->lock);
	yes = crowded(t);
	pthread_mutex_unlock(&t->lock);
	return yes;
}

void conns_sweep(struct conns *t, uint64_t now_ns)
{
	pthread_mutex_lock(&t->lock);
	for (struct conn *c = t->first; c; c = c->next) {
		uint64_t limit = limits[c->state];

		if (crowded(t) && c->state != CONN_WAITING)
			limit = CROWDED_NS;
		if (now_ns > c->since_ns && now_ns - c->since_ns > limit)
			shutdown(c->fd, SHUT_RDWR);
	}
	pthread_mutex_unlock(&t->lock);
}

void conns_drop_old(struct conns *t)
{
	pthread_mutex_lock(&t->lock);
	for (struct conn *c = t->first; c; c = c->next)
		if (c->bodies && bodies_old(c->bodies))
			shutdown(c->fd, SHUT_RDWR);
	pthread_mutex_unlock(&t->lock);
}
