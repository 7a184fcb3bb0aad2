/* SPDX-License-Identifier: MIT */
/*
 * The producer's end of the refresh protocol (core/refresh.h): local clients that wait for a pass.
 * One thread; never blocks on a client, and keeps a bounded number of them.
 */
#ifndef FRESHET_REFRESH_SERVER_H
#define FRESHET_REFRESH_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct refresh_server;

/* File name, without directory, of the socket beside a segment. -ENAMETOOLONG. */
int refresh_socket_name(const char *segment, char *buf, size_t size);

/*
 * Listens beside the segment, whose lock the caller holds: a socket that lies there already is a
 * dead producer's and is replaced. Its descriptors join epoll_fd with data.ptr pointing to the
 * server. -ENAMETOOLONG, -errno.
 */
int refresh_open(const char *segment, int epoll_fd, struct refresh_server **ret);

/* Whether the socket still lies where clients look for it. */
bool refresh_placed(const struct refresh_server *s);

/* Removes the socket unless another lies there now. NULL is fine. */
void refresh_close(struct refresh_server *s);

/*
 * Some descriptor is ready. last_begin_ns and pass: of the last pass, for clients whom it already
 * satisfies. Gives the latest time that a pass is wanted to begin at or after; 0: none is.
 */
uint64_t refresh_ready(struct refresh_server *s, uint64_t now_ns, uint64_t last_begin_ns,
		       uint64_t pass);

/* A pass is published: answers those whom it satisfies. */
void refresh_published(struct refresh_server *s, uint64_t begin_ns, uint64_t pass);

/* Once a second or so: answers those whose time is up with -ETIMEDOUT. */
void refresh_tick(struct refresh_server *s, uint64_t now_ns);

#endif
