/* SPDX-License-Identifier: MIT */
/*
 * Implements place.h. A removed file has no name any more and cannot be linked anew, so there will
 * be another segment. Until it can be made passes go into one without a name: HTTP goes on, and only
 * /healthz tells.
 */
#include "daemon/place.h"

#include <stdio.h>
#include <string.h>

#include "base/where.h"
#include "daemon/loop.h"
#include "daemon/notify.h"
#include "daemon/say.h"

int place_directory(struct place *p)
{
	int r = p->named ? where_make_directory(p->path) : 0;

	if (r > 0)
		p->made = true;
	return r < 0 ? r : 0;
}

void place_socket(struct daemon *d)
{
	int r = refresh_open(d->place.path, d->epoll_fd, &d->refresh);

	if (r < 0)
		say("freshet serve: no requests for younger passes: %s.sock: %s", d->place.path,
		    strerror(-r));
}

static void close_socket(struct daemon *d)
{
	refresh_close(d->refresh);
	d->refresh = NULL;
}

static void make_segment(struct daemon *d)
{
	struct place *p = &d->place;
	char why[sizeof(p->why)];
	bool again = p->lost;
	int r, directory;

	if (!again)
		close_socket(d);
	directory = place_directory(p);
	r = collector_place(d->collector, &p->options, why, sizeof(why));
	if (r < 0 && directory < 0)
		snprintf(why, sizeof(why), "its directory: %s", strerror(-directory));
	if (r == 0 || !again)
		d->moved = true;
	p->lost = r < 0;
	if (r == 0) {
		p->why[0] = '\0';
		place_socket(d);
		say("freshet serve: segment %s was removed, and is made anew", p->path);
		notify("STATUS=The segment was removed, and is made anew");
	} else if (strcmp(why, p->why) != 0) {
		strcpy(p->why, why);
		say("freshet serve: segment %s was removed, and cannot be made anew: %s; trying "
		    "again",
		    p->path, why);
		notify("STATUS=The segment was removed, and cannot be made anew");
	}
	http_ailing(d->http, p->why);
	if (d->moved)
		loop_pass(d, 0);
}

void place_check(struct daemon *d)
{
	if (d->place.lost || !collector_placed(d->collector, d->place.path)) {
		make_segment(d);
	} else if (d->refresh && !refresh_placed(d->refresh)) {
		say("freshet serve: %s.sock was removed, and is made anew", d->place.path);
		close_socket(d);
		place_socket(d);
	}
}

void place_leave(struct place *p)
{
	if (p->made)
		where_remove_directory(p->path);
}
