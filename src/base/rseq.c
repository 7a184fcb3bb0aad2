/* SPDX-License-Identifier: MIT */
/*
 * Implements rseq.h.
 *
 * Sizes: glibc 2.36 says 20 bytes, the size of the first version, although the kernel fills its
 * whole area of 32; from 20 and 32 on, what the kernel offers (AT_RSEQ_FEATURE_SIZE) is believed, as far
 * as the area goes. mm_cid (Linux 6.3) is dense: at most min(threads, CPUs). It has no value for
 * "not registered": cpu_id, negative then, has to be asked as well.
 */
#include "base/rseq.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif
#define FIRST_SIZE   20u
#define AREA_SIZE    32u
#define CPU_ID_FIELD 4u
#define MM_CID_FIELD 24u

static int membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) < 0 ? -errno : 0;
}

/* As long as there is one thread this costs 0.2 us, later some ms. Failure shows in rseq_find(). */
__attribute__((constructor)) static void register_barrier(void)
{
	membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ);
}

int rseq_barrier(void)
{
	int r = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ);

	if (r != -EPERM) /* not registered */
		return r;
	r = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ);
	return r ? r : membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ);
}

#if defined(RSEQ_SIG) && (defined(__x86_64__) || defined(__aarch64__))

/* What stands in front of the abort addresses, inline-*.h. */
#if defined(__x86_64__)
_Static_assert(RSEQ_SIG == 0x53053053, "the signature of inline-x86_64.h");
#else
_Static_assert(RSEQ_SIG_CODE == 0xd428bc00, "the signature of inline-aarch64.h");
#endif

static uint32_t field(ptrdiff_t area, unsigned at)
{
	return *(const volatile uint32_t *)((const char *)__builtin_thread_pointer() + area + at);
}

/*
 * Where switch_mm() is no memory barrier, as on arm64, Linux before 6.9 may give an mm_cid that is in
 * use to another CPU, too: two writers of a cell. Commit fe90f3967bdb, "sched: Add missing memory
 * barrier in switch_mm_cid", is in later 6.6 and 6.8 as well, which is not looked for: there, cpu_id
 * costs nothing but room.
 */
static bool mm_cid_ordered(void)
{
#ifdef __aarch64__
	unsigned major, minor;
	struct utsname u;

	return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 9));
#else
	return true;
#endif
}

int rseq_find(struct rseq_place *ret)
{
	struct rseq_place p = { .area = __rseq_offset, .field = CPU_ID_FIELD };
	size_t size = __rseq_size;

	if (size == 0 || (int32_t)field(p.area, CPU_ID_FIELD) < 0)
		return -EOPNOTSUPP;
	if (size == FIRST_SIZE || size == AREA_SIZE) {
		size = getauxval(AT_RSEQ_FEATURE_SIZE);
		if (size > AREA_SIZE)
			size = AREA_SIZE;
	}
	if (size >= MM_CID_FIELD + 4 && mm_cid_ordered())
		p.field = MM_CID_FIELD;
	p.dense = p.field == MM_CID_FIELD;
	if (rseq_barrier())
		return -EOPNOTSUPP;
	*ret = p;
	return 0;
}

int rseq_slot(const struct rseq_place *place)
{
	if ((int32_t)field(place->area, CPU_ID_FIELD) < 0)
		return -1;
	return (int)field(place->area, place->field);
}

#else

int rseq_find(struct rseq_place *ret)
{
	return -EOPNOTSUPP;
}

int rseq_slot(const struct rseq_place *place)
{
	return -1;
}

#endif
