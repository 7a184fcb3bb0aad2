/* SPDX-License-Identifier: MIT */
/*
 * The daemon at work: passes by the clock and on demand, until a signal ends it.
 *
 * Threads: the main thread runs the loop and alone uses the collector; the HTTP server's thread
 * reads the view, and reaches the loop through `demand` and the wake-up descriptor.
 */
#ifndef FRESHET_LOOP_H
#define FRESHET_LOOP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <freshet/freshet.h>

#include "daemon/demand.h"
#include "daemon/own.h"
#include "daemon/place.h"
#include "daemon/programs.h"
#include "daemon/refresh.h"
#include "source/collector.h"
#include "view/http.h"

/* What a serve calls itself in its segment. */
#define SERVE_PRODUCER "freshet serve"

/* For say(): how many, and how many there is room for. */
#define LEFT_OUT \
	"%u groups are left out: there is room for %u (--max-groups), or their paths are too long"

struct daemon {
	uint64_t interval_ns;
	struct collector *collector;
	struct freshet_view *view; /* of the collector's segment; after the first pass */
	struct http *http;
	struct refresh_server *refresh; /* NULL: none */
	struct programs *programs;
	struct own own;
	struct place place;
	bool moved;        /* the segment is another than the view's */
	uint32_t left_out; /* groups of the last pass that found no room */
	uint64_t cpu_ns;   /* CPU time of the loop's thread up to the last pass */
	int failing;       /* -errno of the last pass */

	pthread_mutex_t lock; /* of demand */
	struct demand demand;

	int epoll_fd, signal_fd, wake_fd;
	int pass_fd;   /* timer of scheduled passes */
	int demand_fd; /* timer of the next pass on demand */
	int tick_fd;   /* timer of everything that must happen every second or so */
};

/* Blocks the signals that end the loop, for this thread and those it starts. Descriptors only. */
int loop_init(struct daemon *d);
void loop_destroy(struct daemon *d);

/* Until SIGTERM, SIGINT or SIGHUP: 0; or -errno when waiting itself fails. */
int loop_run(struct daemon *d);

/* One pass, published and made known to all who wait. 0 or -errno, also in d->failing. */
int loop_pass(struct daemon *d, int on_demand);

/* For struct http_options: somebody wants a pass. Any thread. */
void loop_want(void *daemon, uint64_t since_ns);

#endif
