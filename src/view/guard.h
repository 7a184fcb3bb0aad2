/* SPDX-License-Identifier: MIT */
/*
 * Reading segments of other processes without being killed by them: who truncates a file sends all
 * who have it mapped a SIGBUS. Between guard_begin() and guard_end() of the same thread the missing
 * page, and all behind it in that mapping, is replaced by zeroes, which no check of the reader takes for
 * a tree, and guard_end() tells. All at once: pages here and there would take a mapping each, of which
 * a process may have some 65,000 (vm.max_map_count).
 *
 * The program's handler of SIGBUS calls guard_fault(). Any thread; begin and end do not nest.
 */
#ifndef FRESHET_GUARD_H
#define FRESHET_GUARD_H

#include <signal.h>
#include <stdbool.h>

#include <freshet/freshet.h>

/* Faults in the view's mapping only. NULL: one that is just being attached, which reads some hundred
 * pages at most; faults anywhere, and each page by itself. */
void guard_begin(const struct freshet_view *view);

/* Whether something was missing: what was read since guard_begin() means nothing. */
bool guard_end(void);

/* True: the fault was one of a guarded read, which goes on. A signal that somebody sent is none, nor is
 * broken memory. Safe in signal handlers. */
bool guard_fault(const siginfo_t *info);

#endif
