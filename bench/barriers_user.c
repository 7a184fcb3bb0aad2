/* SPDX-License-Identifier: MIT */
/*
 * Implements the user-space half of barriers.h. All turns of a base run the same code, which calls the
 * operations through a pointer, or an empty function: where the code of a loop lies may cost more than
 * a fence in it. A turn of lookups takes every leaf of the tree once, in an order that looks random and
 * is always the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <freshet/freshet.h>

#include "barriers.h"
#include "base/atomics.h"
#include "base/clock.h"

#define TENANTS  6u
#define SERVICES 7u /* a tenant */
#define TASKS    6u /* a service */
#define LEAVES   (TENANTS * SERVICES * TASKS)
#define GROUPS   (TENANTS + TENANTS * SERVICES + LEAVES)
#define FILES    48u /* times in a turn that the file is opened, or asked for */

static struct {
	struct freshet_tree *tree;
	const struct freshet_view *view;
	struct freshet_handle counted; /* of a leaf, for the operation `rseq` */
	char path[LEAVES][48];
	const char *file;
	sigset_t all, mask;
} u;

/* Of this thread alone, and nothing else on the same lines. */
static struct {
	_Alignas(128) uint64_t word[BARRIERS_MAX];
} line;

/* ---- the operations, number k in succession ---- */

#define NOTHING(k) __asm__ __volatile__("" ::: "memory")
/* Measured: it pairs with nothing, nor does the next. Compilers make one of several in succession. */
#define FENCE(k)                 \
	do {                     \
		fence_seq_cst(); \
		NOTHING(k);      \
	} while (0)
#define LOCK_ADD(k) __atomic_fetch_add(&line.word[k], 1, __ATOMIC_RELAXED)
#define RSEQ(k)     freshet_add(&counted, k, 1)
#define SIGNAL_MASK(k)                                       \
	do {                                                 \
		pthread_sigmask(SIG_BLOCK, &u.all, &u.mask); \
		pthread_sigmask(SIG_SETMASK, &u.mask, NULL); \
	} while (0)

#if defined(__x86_64__)
#define FENCE_BECOMES                             \
	"which this compiler makes " FENCE_ON_X86 \
	" (the kernel's smp_mb(): lock add of 0 to the stack)"
#ifdef __clang__
#define FENCE_ON_X86 "mfence"
#else
#define FENCE_ON_X86 "lock or of 0 to the top of the stack"
#endif
#define MFENCE(k) __asm__ __volatile__("mfence" ::: "memory")
#else
#define FENCE_BECOMES "sequentially consistent"
#endif

static const struct barriers_how how[] = {
	{ "nothing", "the base against itself: how far from 0 says what can be told apart" },
	{ "asymmetric", "this side of a barrier whose other side calls membarrier(2): the compiler "
			"moves nothing across, no instruction" },
	{ "fence", "fence of C11, " FENCE_BECOMES },
#ifdef MFENCE
	{ "mfence", "the instruction" },
#endif
	{ "lock-add", "atomic addition (x86: lock add), to the next word of a line of the thread's "
		      "own each" },
	{ "signal-mask", "pthread_sigmask() that blocks all signals, and one that restores: two "
			 "system calls" },
	{ "rseq", "freshet_add(), to the next of a group's counters each: a restartable sequence "
		  "with one store" },
};

const struct barriers_how *barriers_user_how(size_t *count)
{
	*count = sizeof(how) / sizeof(how[0]);
	return how;
}

/* ---- turns ---- */

#define ONE(op, count)                                           \
	static void op##_##count(void)                           \
	{                                                        \
		const struct freshet_handle counted = u.counted; \
                                                                 \
		(void)counted;                                   \
		BARRIERS_##count(op);                            \
	}
#define ALL(op) ONE(op, 1) ONE(op, 4) ONE(op, 16)

ONE(NOTHING, 0)
ALL(NOTHING)
ALL(FENCE)
#ifdef MFENCE
ALL(MFENCE)
#endif
ALL(LOCK_ADD)
ALL(SIGNAL_MASK)
ALL(RSEQ)

static int lookups(const struct barrier *b, double *ns)
{
	void (*const run)(void) = b->run;
	const uint64_t begin = clock_ns();
	int err = 0;

	for (unsigned i = 0; i < LEAVES; i++) {
		struct freshet_group g;
		uint64_t value, present;

		err |= freshet_find(u.view, u.path[i], &g);
		run();
		err |= freshet_read_total(u.view, g, 0, 1, &value, &present, NULL);
	}
	*ns = (double)(clock_ns() - begin) / LEAVES;
	return err ? -EIO : 0;
}

static int opens(const struct barrier *b, double *ns)
{
	void (*const run)(void) = b->run;
	const uint64_t begin = clock_ns();
	int failed = 0;

	for (unsigned i = 0; i < FILES; i++) {
		int fd = open(u.file, O_RDONLY | O_CLOEXEC);

		run();
		failed |= close(fd);
	}
	*ns = (double)(clock_ns() - begin) / FILES;
	return failed ? -EIO : 0;
}

/* clang-format off */
#define ROW(name, times, how_turn, what) \
	{ .op = name, .count = times, .turn = how_turn, .run = what }
#define COUNTS(name, turn, op) \
	ROW(name, 1, turn, op##_1), ROW(name, 4, turn, op##_4), ROW(name, 16, turn, op##_16)

#ifdef MFENCE
#define MFENCES(name, turn) COUNTS(name, turn, MFENCE),
#else
#define MFENCES(name, turn)
#endif

#define LIST(beside, turn) {                                      \
	ROW(beside "nothing", 1, turn, NOTHING_0),                \
	COUNTS(beside "asymmetric", turn, NOTHING),               \
	COUNTS(beside "fence", turn, FENCE),                      \
	MFENCES(beside "mfence", turn)                            \
	COUNTS(beside "lock-add", turn, LOCK_ADD),                \
	COUNTS(beside "signal-mask", turn, SIGNAL_MASK),          \
	COUNTS(beside "rseq", turn, RSEQ), /* the last three */   \
}
/* clang-format on */

static struct barrier lookup_list[] = LIST("", lookups), open_list[] = LIST("open+", opens);

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const struct barriers families[BARRIERS_USER] = {
	{ "user", "lookup", ROW("", 0, lookups, NOTHING_0), lookup_list, COUNT(lookup_list) },
	{ "user", "open-close", ROW("", 0, opens, NOTHING_0), open_list, COUNT(open_list) },
};

const struct barriers *barriers_user(int family)
{
	return &families[family];
}

int barriers_access(double *ns)
{
	const uint64_t begin = clock_ns();
	int failed = 0;

	for (unsigned i = 0; i < FILES; i++)
		failed |= access(u.file, F_OK);
	*ns = (double)(clock_ns() - begin) / FILES;
	return failed ? -EIO : 0;
}

/* ---- the tree ---- */

static const struct freshet_stat stats[BARRIERS_MAX] = {
#define STAT(k) \
	[k] = { .family = "bench", .name = "n" #k, .help = "Updates.", .kind = FRESHET_COUNTER }
#define STATS_4(a, b, c, d) STAT(a), STAT(b), STAT(c), STAT(d)
	STATS_4(0, 1, 2, 3), STATS_4(4, 5, 6, 7), STATS_4(8, 9, 10, 11), STATS_4(12, 13, 14, 15)
};

static int create(const struct freshet_handle *parent, const char *what, unsigned i,
		  struct freshet_handle *ret)
{
	char name[16];

	snprintf(name, sizeof(name), "%s%u", what, i);
	return freshet_create(u.tree, parent, name, FRESHET_LATER, ret);
}

/* The leaf that was made as number i is looked up as number i * STRIDE, modulo their number. */
#define STRIDE 101u

static int create_groups(void)
{
	struct freshet_handle root = freshet_tree_root(u.tree), tenant, service, task;
	unsigned leaf = 0;
	int err = 0;

	for (unsigned i = 0; i < TENANTS && !err; i++) {
		err = create(&root, "tenant", i, &tenant);
		for (unsigned j = 0; j < SERVICES && !err; j++) {
			err = create(&tenant, "service", j, &service);
			for (unsigned k = 0; k < TASKS && !err; k++, leaf++) {
				err = create(&service, "task", k, &task);
				snprintf(u.path[leaf * STRIDE % LEAVES], sizeof(u.path[0]),
					 "/tenant%u/service%u/task%u", i, j, k);
				u.counted = task;
			}
		}
	}
	return err ? err : freshet_flush(u.tree); /* makes them visible */
}

int barriers_user_open(const char *path)
{
	const struct freshet_schema schema = { .size = sizeof(schema),
					       .stats = stats,
					       .nstats = BARRIERS_MAX };
	const struct freshet_options options = { .size = sizeof(options),
						 .producer = "freshet-bench",
						 .max_groups = GROUPS + 1 };
	int err = freshet_open(NULL, &schema, &options, &u.tree);

	if (err)
		return err;
	u.view = freshet_view_of(u.tree);
	u.file = path;
	sigfillset(&u.all);
	err = create_groups();
	if (err) {
		barriers_user_close();
		return err;
	}
	for (unsigned i = 1; i <= 3 && barriers_user_lacks_rseq(); i++)
		lookup_list[COUNT(lookup_list) - i].turn = open_list[COUNT(open_list) - i].turn =
			NULL;
	return 0;
}

void barriers_user_close(void)
{
	freshet_close(u.tree);
	u.tree = NULL;
}

bool barriers_user_lacks_rseq(void)
{
	return freshet_backend(u.tree) != FRESHET_RSEQ;
}

unsigned barriers_groups(void)
{
	return GROUPS;
}
