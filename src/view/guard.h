/* SPDX-License-Identifier: MIT */
/*
 * Reading segments of other processes without being killed by them: who truncates a file sends all
 * who have it mapped a SIGBUS. Between guard_begin() and guard_end() of the same thread the missing
 * page is replaced by one of zeroes, which no check of the reader takes for a tree, and guard_end()
 * tells.
 *
 * The program's handler of SIGBUS calls guard_fault(). Any thread; begin and end do not nest.
 *
 * Limit: pages that do not lie side by side take a mapping each, of which a process may have some
 * 65,000 (vm.max_map_count); then the fault stays one. A segment laid out for that ends the program.
 */
#ifndef FRESHET_GUARD_H
#define FRESHET_GUARD_H

#include <signal.h>
#include <stdbool.h>

void guard_begin(void);

/* Whether something was missing: what was read since guard_begin() means nothing. */
bool guard_end(void);

/* True: the fault was one of a guarded read, which goes on. A signal that somebody sent is none, nor is
 * broken memory. Safe in signal handlers. */
bool guard_fault(const siginfo_t *info);

#endif
