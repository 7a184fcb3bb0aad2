/* SPDX-License-Identifier: MIT */
/*
 * Implements hammer_poll.h. The pollers are processes, as agents are, so that they share no table of
 * descriptors and no address space. One word in shared memory tells all what to do; each answers by
 * the same word in its own place, after its figures. A read counts if it began while reads count,
 * however long it took, or else long ones would be left out: those in which the poller lost its CPU.
 *
 * Cheap methods read in batches, since looking at the clock takes 16 ns.
 */
#include "hammer_poll.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "flush.h"
#include "procs.h"
#include "source/host_stats.h"
#include "source/parse.h"

#define BATCH   128u
#define IDLE_NS (20 * NSEC_PER_MSEC)
/* Not a poller's fault: that a virtual machine stands still for a minute. */
#define START_NS   (120 * NSEC_PER_SEC)
#define ANSWER_NS  (120 * NSEC_PER_SEC)
#define REFRESH_NS NSEC_PER_SEC

const char *const hammer_method_names[HAMMER_METHODS] = {
	[HAMMER_NONE] = "none",
	[HAMMER_SPIN] = "spin",
	[HAMMER_OPEN] = "open",
	[HAMMER_KEPT] = "kept",
	[HAMMER_BPF_FLUSH] = "bpf+flush",
	[HAMMER_SEGMENT] = "segment",
	[HAMMER_MAX_AGE_0] = "segment-max-age-0",
};

const struct freshet_histogram hammer_ages = {
	.precision = 5,
	.lowest = 6,
	.highest = 36,
	.buckets = HAMMER_AGE_BUCKETS,
};

/* What the pollers are told, packed into one word, so that they see it as a whole. */
struct order {
	enum hammer_method method;
	bool count;
	unsigned pace_us;
	uint64_t word; /* all of it, and its number */
};

static uint64_t pack(uint64_t number, enum hammer_method method, unsigned pace_us, bool count)
{
	return number << 32 | (uint64_t)pace_us << 16 | (uint64_t)count << 8 | (uint64_t)method;
}

static struct order unpack(uint64_t word)
{
	return (struct order){
		.method = (enum hammer_method)(word & 0xff),
		.count = word >> 8 & 1,
		.pace_us = word >> 16 & 0xffff,
		.word = word,
	};
}

/* Written by one poller. */
struct seat {
	_Alignas(128) uint64_t word; /* the last order taken in. Stored with release after the
				      * rest; pairs with the acquire in answered() */
	int error;                   /* -errno, before it ends */
	int no_flush;                /* -errno, or 0 */
	uint64_t counted;            /* the order that tally is of */
	struct hammer_tally tally;
};

struct board {
	uint64_t word; /* by the bench; stored with release, pairs with poll_on() */
	struct seat seat[];
};

struct hammer_poll {
	struct board *board; /* shared */
	size_t size;
	uint64_t number;  /* of orders */
	uint64_t counted; /* the last order by which reads counted */
	unsigned count;
	pid_t pid[];
};

/* In the poller. */
struct poller {
	struct seat *seat;
	const struct board *board;
	char *file; /* cpu.stat */
	int fd;     /* the same, kept open */
	struct flush *flush;
	struct freshet_view *view;
	struct freshet_group group;
	uint64_t value[HOST_NSTATS];
	uint64_t pass_ns;        /* when the pass began that was read last */
	uint64_t cpu_ns, sys_ns; /* when reads began to count */
};

/* ---- the methods; each 0 or -errno ---- */

static int parse(struct poller *p, const char *text, ssize_t len)
{
	uint64_t present;

	return len < 0 ? -errno : parse_cpu_stat(text, (size_t)len, p->value, &present);
}

static int read_opening(struct poller *p)
{
	int fd = open(p->file, O_RDONLY | O_CLOEXEC), err;
	char text[4096];

	if (fd < 0)
		return -errno;
	err = parse(p, text, read(fd, text, sizeof(text)));
	close(fd);
	return err;
}

static int read_kept(struct poller *p)
{
	char text[4096];

	return parse(p, text, pread(p->fd, text, sizeof(text), 0));
}

static int read_segment(struct poller *p)
{
	struct freshet_moment moment;
	uint64_t present;
	int err = freshet_read(p->view, p->group, HOST_USAGE, HOST_FORCE_IDLE - HOST_USAGE + 1,
			       p->value, &present, &moment);

	p->pass_ns = moment.begin_ns;
	return err;
}

static int read_refreshed(struct poller *p)
{
	int err = freshet_refresh(p->view, 0, REFRESH_NS);

	if (err == -ETIMEDOUT) {
		p->seat->tally.late++;
		err = 0;
	}
	return err ? err : read_segment(p);
}

static int read_once(struct poller *p, enum hammer_method method)
{
	switch (method) {
	case HAMMER_OPEN:
		return read_opening(p);
	case HAMMER_KEPT:
		return read_kept(p);
	case HAMMER_BPF_FLUSH:
		return flush_read(p->flush, &p->value[HOST_USAGE]);
	case HAMMER_SEGMENT:
		return read_segment(p);
	case HAMMER_MAX_AGE_0:
		return read_refreshed(p);
	default:
		__asm__ __volatile__("" ::: "memory");
		return 0;
	}
}

/* ---- the poller ---- */

static void fail(struct poller *p, int err)
{
	p->seat->error = err;
	_exit(1);
}

static uint64_t system_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)u.ru_stime.tv_sec * NSEC_PER_SEC + (uint64_t)u.ru_stime.tv_usec * 1000;
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Another order than the last. */
static void take_in(struct poller *p, const struct order *before, const struct order *now)
{
	struct seat *s = p->seat;

	if (before->count) {
		s->tally.cpu_ns = cpu_ns() - p->cpu_ns;
		s->tally.sys_ns = system_ns() - p->sys_ns;
	}
	if (now->count) {
		memset(&s->tally, 0, sizeof(s->tally));
		s->counted = now->word;
		p->cpu_ns = cpu_ns();
		p->sys_ns = system_ns();
	}
	store_release(&s->word, now->word); /* pairs with answered() */
}

static void count_age(struct hammer_tally *t, uint64_t ns)
{
	t->ages[freshet_bucket_of(hammer_ages.precision, hammer_ages.lowest, HAMMER_AGE_BUCKETS - 1,
				  ns)]++;
}

/* Some reads, one after the other, and their time. */
static void read_batch(struct poller *p, const struct order *o)
{
	const bool cheap = o->method == HAMMER_SEGMENT || o->method == HAMMER_SPIN;
	const unsigned n = cheap && !o->pace_us ? BATCH : 1;
	struct hammer_tally *t = &p->seat->tally;
	uint64_t begin = clock_ns(), end, took;
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++)
		err = read_once(p, o->method);
	end = clock_ns();
	if (err)
		fail(p, err);
	if (!o->count)
		return;
	took = end - begin;
	t->reads += n;
	t->read_ns += took;
	if (took > t->worst_ns)
		t->worst_ns = took;
	count_age(t, o->method < HAMMER_SEGMENT ? took : end - p->pass_ns);
}

static void sleep_until(uint64_t ns)
{
	const struct timespec ts = { (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* Until it is killed. A poller that comes too late for its next read does not catch up. */
static void poll_on(struct poller *p, unsigned number)
{
	struct order o = unpack(p->seat->word);
	uint64_t next = clock_ns() + number * 137 * NSEC_PER_USEC;

	for (;;) {
		uint64_t word = load_acquire(&p->board->word); /* pairs with hammer_poll_tell() */

		if (word != o.word) {
			struct order now = unpack(word);

			take_in(p, &o, &now);
			o = now;
		}
		if (o.method == HAMMER_NONE) {
			procs_sleep(IDLE_NS);
			continue;
		}
		if (o.pace_us) {
			uint64_t now = clock_ns();

			next += o.pace_us * NSEC_PER_USEC;
			if (next < now)
				next = now;
			sleep_until(next);
		}
		read_batch(p, &o);
	}
}

static int prepare(struct poller *p, const char *root, const char *path, const char *segment)
{
	const char *below = path + strlen(root);
	int dir, err;

	if (asprintf(&p->file, "%s/cpu.stat", path) < 0)
		return -ENOMEM;
	p->fd = open(p->file, O_RDONLY | O_CLOEXEC);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->fd < 0 || dir < 0)
		return -errno;
	p->seat->no_flush = flush_open(dir, &p->flush);
	close(dir);
	err = freshet_attach(segment, &p->view);
	if (!err)
		err = freshet_find(p->view, *below ? below : "/", &p->group);
	return err;
}

/* ---- the bench ---- */

/* Which cgroup poller i reads: not the root, if there is another. */
static const char *poller_path(const struct cgroups *c, unsigned i, unsigned count)
{
	uint32_t places = c->count > 1 ? c->count - 1 : 1;
	uint32_t place = count < places ? i * places / count : i % places;

	return c->path[c->count - places + place];
}

static pid_t start_poller(struct hammer_poll *h, unsigned i, const struct cgroups *c,
			  const char *segment, unsigned count)
{
	struct poller p = { .seat = &h->board->seat[i], .board = h->board };
	pid_t pid = procs_fork();
	int err;

	if (pid != 0)
		return pid;
	procs_pin(0, procs_nth_cpu(i));
	err = prepare(&p, c->path[0], poller_path(c, i, count), segment);
	if (err)
		fail(&p, err);
	poll_on(&p, i);
	_exit(1);
}

/* Says which process ended that should not have. They stay to be waited for by who started them. */
static bool someone_ended(const struct hammer_poll *h)
{
	siginfo_t info = { 0 };

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
		return false;
	for (unsigned i = 0; i < h->count; i++) {
		int err = h->board->seat[i].error;

		if (h->pid[i] == info.si_pid && err) {
			fprintf(stderr, "freshet-bench: a poller: %s\n", strerror(-err));
			return true;
		}
	}
	fprintf(stderr, "freshet-bench: process %d of the bench's ended (%s %d)\n",
		(int)info.si_pid, info.si_code == CLD_EXITED ? "exit code" : "signal",
		info.si_status);
	return true;
}

static bool answered(const struct hammer_poll *h, uint64_t word)
{
	for (unsigned i = 0; i < h->count; i++)
		if (load_acquire(&h->board->seat[i].word) != word) /* pairs with take_in() */
			return false;
	return true;
}

static int wait_for_answers(const struct hammer_poll *h, uint64_t timeout_ns)
{
	uint64_t end = clock_ns() + timeout_ns, word = h->board->word;

	for (;;) {
		bool all = answered(h, word);

		if (someone_ended(h))
			return -1;
		if (all)
			return 0;
		if (clock_ns() > end) {
			fprintf(stderr, "freshet-bench: a poller does not answer\n");
			return -1;
		}
		procs_sleep(NSEC_PER_MSEC);
	}
}

void hammer_tally_add(struct hammer_tally *to, const struct hammer_tally *t)
{
	to->reads += t->reads;
	to->read_ns += t->read_ns;
	to->worst_ns = t->worst_ns > to->worst_ns ? t->worst_ns : to->worst_ns;
	to->cpu_ns += t->cpu_ns;
	to->sys_ns += t->sys_ns;
	to->late += t->late;
	for (unsigned i = 0; i < HAMMER_AGE_BUCKETS; i++)
		to->ages[i] += t->ages[i];
}

static void collect(const struct hammer_poll *h, struct hammer_tally *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (unsigned i = 0; i < h->count; i++) {
		const struct seat *s = &h->board->seat[i];

		if (s->counted != h->counted) /* it did not run once in all of the time */
			continue;
		hammer_tally_add(ret, &s->tally);
	}
}

int hammer_poll_tell(struct hammer_poll *h, enum hammer_method method, unsigned pace_us, bool count,
		     struct hammer_tally *ret)
{
	uint64_t word = pack(++h->number, method, pace_us, count);

	if (count)
		h->counted = word;
	store_release(&h->board->word, word); /* pairs with poll_on() */
	if (count)
		return 0;
	if (wait_for_answers(h, ANSWER_NS) < 0)
		return -1;
	if (ret)
		collect(h, ret);
	return 0;
}

int hammer_poll_start(struct hammer_poll **ret, const struct cgroups *c, const char *segment,
		      unsigned count)
{
	struct hammer_poll *h = calloc(1, sizeof(*h) + count * sizeof(h->pid[0]));

	if (!h)
		goto no_memory;
	h->size = sizeof(*h->board) + count * sizeof(h->board->seat[0]);
	h->board = mmap(NULL, h->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (h->board == MAP_FAILED)
		goto no_memory;
	h->board->word = pack(++h->number, HAMMER_NONE, 0, false);
	for (; h->count < count; h->count++) {
		h->pid[h->count] = start_poller(h, h->count, c, segment, count);
		if (h->pid[h->count] < 0) {
			fprintf(stderr, "freshet-bench: fork: %s\n", strerror(errno));
			hammer_poll_stop(h);
			return -1;
		}
	}
	if (wait_for_answers(h, START_NS) < 0) {
		hammer_poll_stop(h);
		return -1;
	}
	*ret = h;
	return 0;
no_memory:
	fprintf(stderr, "freshet-bench: %s\n", strerror(ENOMEM));
	free(h);
	return -1;
}

int hammer_poll_lacks_flush(const struct hammer_poll *h)
{
	for (unsigned i = 0; i < h->count; i++)
		if (h->board->seat[i].no_flush)
			return h->board->seat[i].no_flush;
	return 0;
}

void hammer_poll_stop(struct hammer_poll *h)
{
	if (!h)
		return;
	procs_kill_all(h->pid, h->count);
	munmap(h->board, h->size);
	free(h);
}
