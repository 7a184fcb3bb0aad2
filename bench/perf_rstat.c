/* SPDX-License-Identifier: MIT */
/*
 * Implements perf_rstat.h by the software event cpu-clock, which virtual machines have, too. Its timer
 * does not interrupt code that runs with interrupts off; such a stretch's samples fall where it ends,
 * which for rstat's locks is still inside its functions.
 */
#include "perf_rstat.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomics.h"

#define PERIOD_NS  1000000
#define RING_PAGES 64u /* a power of two */
#define MAX_RANGES 256u
#define MAX_CPUS   1024u

struct range {
	uint64_t begin, end;
};

struct ring {
	int fd;
	struct perf_event_mmap_page *page; /* then the data */
};

struct perf_rstat {
	struct range range[MAX_RANGES];
	unsigned ranges;
	struct ring ring[MAX_CPUS];
	unsigned rings;
	size_t page_size;
};

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool of_rstat(const char *name)
{
	return strstr(name, "_rstat") || strstr(name, "rstat_") || strstr(name, "cgroup_base_stat");
}

/* A function ends where the next begins: kallsyms is not always sorted, and tells no sizes. */
static int find_ranges(struct perf_rstat *p)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	size_t count = 0, capacity = 0;
	uint64_t *all = NULL;
	char line[512], name[256], type;
	unsigned long long at;
	int err = f ? 0 : -errno;

	while (f && !err && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx %c %255s", &at, &type, name) != 3 || !at ||
		    (type != 't' && type != 'T' && type != 'W'))
			continue;
		if (count == capacity) {
			uint64_t *more =
				realloc(all, (capacity = capacity * 2 + 4096) * sizeof(*all));

			if (!more) {
				err = -ENOMEM;
				break;
			}
			all = more;
		}
		all[count++] = at;
		if (of_rstat(name) && p->ranges < MAX_RANGES)
			p->range[p->ranges++].begin = at;
	}
	if (f)
		fclose(f);
	if (!err && !p->ranges)
		err = -EACCES; /* all addresses were 0 */
	if (!err)
		qsort(all, count, sizeof(*all), compare);
	for (unsigned i = 0; i < p->ranges && !err; i++) {
		uint64_t *next = bsearch(&p->range[i].begin, all, count, sizeof(*all), compare);

		while (next < all + count && *next == p->range[i].begin)
			next++;
		p->range[i].end = next < all + count ? *next : p->range[i].begin + 1;
	}
	free(all);
	return err;
}

static int open_ring(struct perf_rstat *p, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = PERIOD_NS,
		.sample_type = PERF_SAMPLE_CALLCHAIN,
		.exclude_idle = 1,
		.exclude_callchain_user = 1,
	};
	struct ring *r = &p->ring[p->rings];

	r->fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (r->fd < 0)
		return -errno;
	p->rings++;
	r->page = mmap(NULL, (RING_PAGES + 1) * p->page_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		       r->fd, 0);
	if (r->page == MAP_FAILED) {
		r->page = NULL;
		return -errno;
	}
	return 0;
}

int perf_rstat_open(struct perf_rstat **ret)
{
	struct perf_rstat *p = calloc(1, sizeof(*p));
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int err;

	if (!p)
		return -ENOMEM;
	p->page_size = (size_t)sysconf(_SC_PAGESIZE);
	err = find_ranges(p);
	for (int cpu = 0; cpu < cpus && cpu < (int)MAX_CPUS && !err; cpu++) {
		err = open_ring(p, cpu);
		if (err == -ENODEV) /* not online */
			err = 0;
	}
	if (err) {
		perf_rstat_close(p);
		return err;
	}
	*ret = p;
	return 0;
}

static bool in_rstat_function(const struct perf_rstat *p, uint64_t ip)
{
	for (unsigned i = 0; i < p->ranges; i++)
		if (ip >= p->range[i].begin && ip < p->range[i].end)
			return true;
	return false;
}

/* Out of a ring, across its end. */
static void copy_out(const char *data, size_t size, uint64_t at, void *to, size_t len)
{
	size_t from = at % size, first = len < size - from ? len : size - from;

	memcpy(to, data + from, first);
	memcpy((char *)to + first, data, len - first);
}

static void take_ring(struct perf_rstat *p, struct ring *r, uint64_t *samples, uint64_t *in_rstat)
{
	const char *data = (const char *)r->page + p->page_size;
	const size_t size = RING_PAGES * p->page_size;
	uint64_t head = load_acquire(&r->page->data_head); /* pairs with the kernel's release */
	uint64_t tail = r->page->data_tail;

	while (tail < head) {
		uint64_t chain[160]; /* the number of addresses, then they */
		struct perf_event_header h;
		bool found = false;
		size_t len;

		copy_out(data, size, tail, &h, sizeof(h));
		len = h.size - sizeof(h) < sizeof(chain) ? h.size - sizeof(h) : sizeof(chain);
		copy_out(data, size, tail + sizeof(h), chain, len);
		tail += h.size;
		if (h.type != PERF_RECORD_SAMPLE)
			continue;
		for (size_t i = 1; i < len / sizeof(chain[0]) && i <= chain[0] && !found; i++)
			found = in_rstat_function(p, chain[i]);
		++*samples;
		*in_rstat += found;
	}
	store_release(&r->page->data_tail, tail); /* pairs with the kernel's acquire */
}

void perf_rstat_take(struct perf_rstat *p, uint64_t *samples, uint64_t *in_rstat)
{
	for (unsigned i = 0; i < p->rings; i++)
		take_ring(p, &p->ring[i], samples, in_rstat);
}

void perf_rstat_close(struct perf_rstat *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->rings; i++) {
		if (p->ring[i].page)
			munmap(p->ring[i].page, (RING_PAGES + 1) * p->page_size);
		close(p->ring[i].fd);
	}
	free(p);
}
