/* SPDX-License-Identifier: MIT */
/* Implements guard.h. */
#include "view/guard.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OFF, ON, MISSING };

static _Thread_local volatile sig_atomic_t guard;
static _Thread_local uintptr_t begin, end; /* of the mapping; 0: not known */

void guard_begin(const struct freshet_view *view)
{
	size_t size = 0;

	begin = view ? (uintptr_t)freshet_mapping(view, &size) : 0;
	end = begin + size;
	guard = ON;
}

bool guard_end(void)
{
	bool missing = guard == MISSING;

	guard = OFF;
	return missing;
}

bool guard_fault(const siginfo_t *info)
{
	uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)info->si_addr;
	void *page = (void *)(at & ~(size - 1));
	int error = errno;
	bool mapped;

	if (guard == OFF || info->si_code != BUS_ADRERR || (begin && (at < begin || at >= end)))
		return false;
	if (begin)
		size = end - (uintptr_t)page;
	/* Over pages of the mapping, and unmapped with it. */
	mapped = mmap(page, size, PROT_READ,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == page;
	guard = MISSING;
	errno = error;
	return mapped;
}
