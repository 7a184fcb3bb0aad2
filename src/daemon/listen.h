/* SPDX-License-Identifier: MIT */
/* The TCP socket of the daemon. */
#ifndef FRESHET_LISTEN_H
#define FRESHET_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

/* Whether text is "ADDRESS:PORT": an IPv4 address, an IPv6 address in brackets, or localhost. */
bool listen_valid(const char *text);

/*
 * Listens on such an address; port 0 is any free one. Gives the descriptor, and into `where` (at
 * least 64 bytes) the address with the real port. -errno, and `why` (at least 256 bytes) says what
 * is wrong.
 */
int listen_on(const char *address, char *where, size_t where_size, char *why, size_t why_size);

#endif
