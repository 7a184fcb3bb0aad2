/* SPDX-License-Identifier: MIT */
/*
 * The refresh protocol: how a reader asks a producer for a younger pass.
 *
 * The producer listens on a Unix socket of type SOCK_SEQPACKET whose file name, without a
 * directory, stands in the segment's header; the socket lies beside the segment file. One packet is
 * one struct, in the machine's byte order (both ends are on one machine). A connection carries any
 * number of requests, one at a time: the client waits for the reply before it asks again.
 *
 * The server answers with result 0 when a pass that began no earlier than (receipt of the request -
 * max_age_ns) is published, which can be at once; with -ETIMEDOUT when that was not so within
 * timeout_ns; with -EINVAL for a packet of another magic, version or length, after which it closes
 * the connection. The client gives up by itself after its timeout, too, and simply closes.
 */
#ifndef FRESHET_REFRESH_H
#define FRESHET_REFRESH_H

#include <stdint.h>

#define REFRESH_MAGIC   0x46524652u /* "FRFR" */
#define REFRESH_VERSION 1u

struct refresh_request {
	uint32_t magic;
	uint32_t version;
	uint64_t max_age_ns; /* the pass may have begun this long before the request came */
	uint64_t timeout_ns; /* how long the client will wait */
};

struct refresh_reply {
	int32_t result; /* 0 or a negative errno */
	uint32_t pad0;  /* 0 */
	uint64_t pass;  /* when result is 0: the number of the last published pass */
};

_Static_assert(sizeof(struct refresh_request) == 24, "the request's layout is fixed");
_Static_assert(sizeof(struct refresh_reply) == 16, "the reply's layout is fixed");

#endif
