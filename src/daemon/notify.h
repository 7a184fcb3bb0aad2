/* SPDX-License-Identifier: MIT */
/* The service manager's notification protocol (sd_notify), without its library. */
#ifndef FRESHET_NOTIFY_H
#define FRESHET_NOTIFY_H

#include <stdint.h>

/* Sends "READY=1", "STATUS=...", ... to $NOTIFY_SOCKET; several assignments stand on lines of their
 * own. 0 also when there is no such socket; -errno. Never blocks. */
int notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How often WATCHDOG=1 is due, ns: half of what the manager set for this process; 0: not at all. */
uint64_t notify_watchdog_ns(void);

#endif
