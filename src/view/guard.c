/* SPDX-License-Identifier: MIT */
/* Implements guard.h. */
#include "view/guard.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OFF, ON, MISSING };

static _Thread_local volatile sig_atomic_t guard;

void guard_begin(void)
{
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
	uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *page = (void *)((uintptr_t)info->si_addr & ~(size - 1));
	int error = errno;
	bool mapped;

	if (guard == OFF || info->si_code != BUS_ADRERR)
		return false;
	/* Over a page of the mapping, and unmapped with it. */
	mapped =
		mmap(page, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page;
	guard = MISSING;
	errno = error;
	return mapped;
}
