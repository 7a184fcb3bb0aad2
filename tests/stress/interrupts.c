/* SPDX-License-Identifier: MIT */
/*
 * Updates that are interrupted: by signal handlers that update the same groups, by being moved from
 * CPU to CPU, and in threads that have no rseq. Nothing is lost, nothing counted twice.
 *
 * Sequences have a loop before their commit here, over a variable of the thread, so that many are
 * caught in it; two counts around the loop say how many never got out of it.
 */
#if defined(__x86_64__)
__attribute__((tls_model("local-exec"), visibility("hidden"))) _Thread_local int stress_delay,
	stress_entered, stress_left;
#define FRESHET_SEQ_DELAY                  \
	"incl %%fs:stress_entered@tpoff\n" \
	"7:\n\t"                           \
	"decl %%fs:stress_delay@tpoff\n\t" \
	"jg 7b\n\t"                        \
	"incl %%fs:stress_left@tpoff\n\t"
#define DELAY(n) (stress_delay = (n))
#define RESTARTS (unsigned)(stress_entered - stress_left)
#else
#define DELAY(n)
#define RESTARTS 0u
#endif

#include "stress/stress.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define THREADS   4u
#define GROUPS    3u
#define PERIOD_NS 40000
/* Where the handler may look for a slot in vain, and yield its CPU each time: else the next signal
 * would be there before the handler's end, always. */
#define LONG_PERIOD_NS 3000000

static struct freshet_tree *tree;
static struct freshet_handle group[GROUPS];
static uint32_t stop;
static uint64_t refused_in_all, restarts_in_all, interrupts_in_all;

struct sums {
	uint64_t ops, sets, seen, sum, refused;
};

/* Of a thread: what it has counted itself, and what its signal handler has. */
static _Thread_local struct sums own, handlers;
static _Thread_local uint64_t random_own, random_handler, interrupts;
static struct sums total;

static void update(struct sums *s, uint64_t x)
{
	const int64_t one[3] = { 1, 1, 1 };
	const struct freshet_handle *h = &group[x % GROUPS];
	int r;

	DELAY((x >> 8 & 3) == 0 ? (int)(x >> 16 & 0x3ff) : 0);
	switch (x >> 4 & 3) {
	case 0:
		r = freshet_add_set(h, A, 3, one);
		s->sets += r == 0;
		break;
	case 1:
		r = freshet_observe(h, 0, x >> 40 & 63);
		s->seen += r == 0;
		s->sum += r ? 0 : x >> 40 & 63;
		break;
	default:
		r = freshet_add(h, OPS, 1);
		s->ops += r == 0;
	}
	s->refused += r == -EAGAIN;
	EXPECT(r == 0 || r == -EAGAIN, "update: %d", r);
}

static void interrupt(int signal)
{
	int saved = errno;

	interrupts++;
	update(&handlers, stress_random(&random_handler));
	errno = saved;
}

/* Interrupts the calling thread all the time. */
static bool start_timer(long ns, timer_t *ret)
{
	const struct itimerspec period = { { 0, ns }, { 0, ns } };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2 };

	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	return timer_create(CLOCK_MONOTONIC, &event, ret) == 0 &&
	       timer_settime(*ret, 0, &period, NULL) == 0;
}

/* To another CPU, if there is one. */
static void move(uint64_t x)
{
	cpu_set_t all, one;
	int n;

	if (sched_getaffinity(getpid(), sizeof(all), &all))
		return;
	n = (int)(x % (unsigned)CPU_COUNT(&all));
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && n-- == 0)
			CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* Takes the calling thread's rseq away. */
static bool unregister(void)
{
#if defined(RSEQ_SIG)
	void *area = (char *)__builtin_thread_pointer() + __rseq_offset;

	return __rseq_size == 0 /* it never had one */ ||
	       syscall(SYS_rseq, area, 32, 1 /* RSEQ_FLAG_UNREGISTER */, RSEQ_SIG) == 0;
#else
	return true;
#endif
}

static void add_up(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	total.ops += own.ops + handlers.ops;
	total.sets += own.sets + handlers.sets;
	total.seen += own.seen + handlers.seen;
	total.sum += own.sum + handlers.sum;
	refused_in_all += own.refused + handlers.refused;
	restarts_in_all += RESTARTS;
	interrupts_in_all += interrupts;
	pthread_mutex_unlock(&lock);
}

struct work {
	bool rseq; /* or it is taken away */
	bool moves;
	long period; /* ns; 0: PERIOD_NS */
};

static void *work(void *arg)
{
	const struct work *w = arg;
	timer_t timer;

	random_own = stress.seed ^ (uint64_t)(uintptr_t)&own;
	random_handler = random_own ^ 0xffff;
	if (!w->rseq)
		EXPECT(unregister(), "%s", strerror(errno));
	if (!EXPECT(start_timer(w->period ? w->period : PERIOD_NS, &timer), "%s", strerror(errno)))
		return NULL;
	for (unsigned i = 0; !load_relaxed(&stop); i++) {
		update(&own, stress_random(&random_own));
		if (w->moves && i % 64 == 0)
			move(stress_random(&random_own));
	}
	timer_delete(timer);
	add_up();
	return NULL;
}

static bool start(unsigned fallback_slots)
{
	struct sigaction act = { .sa_handler = interrupt, .sa_flags = SA_RESTART };
	struct freshet_handle root;
	char name[8];

	sigaction(SIGUSR2, &act, NULL);
	total = (struct sums){ 0 };
	refused_in_all = restarts_in_all = interrupts_in_all = 0;
	stop = 0;
	if (stress_open(NULL, 16, fallback_slots, &tree))
		return false;
	root = freshet_tree_root(tree);
	for (unsigned i = 0; i < GROUPS; i++) {
		snprintf(name, sizeof(name), "g%u", i);
		if (freshet_create(tree, &root, name, 0, &group[i]))
			return false;
	}
	return true;
}

/* Threads at work, and flushes, for the time of the test; then nothing is lost. */
static void run(const struct work *w, unsigned threads)
{
	const struct freshet_view *v = freshet_view_of(tree);
	struct freshet_group root = freshet_tree_root(tree).group;
	uint64_t until = clock_ns() + stress.ns, buckets[64], seen = 0, sum;
	pthread_t thread[THREADS];

	for (unsigned i = 0; i < threads; i++)
		REQUIRE(pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)&w[i]) == 0);
	while (clock_ns() < until) {
		EXPECT_EQ(freshet_flush(tree), 0);
		stress_nap(200000);
	}
	store_relaxed(&stop, 1);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	for (unsigned flushed = 0; flushed < 2; flushed++) {
		EXPECT_EQ(stress_read(v, root, OPS), total.ops);
		for (unsigned stat = A; stat <= C; stat++)
			EXPECT_EQ(stress_read(v, root, stat), total.sets);
		EXPECT_EQ(freshet_flush(tree), 0);
	}
	EXPECT_EQ(freshet_read_histogram(v, root, 0, buckets, &sum), 0);
	for (unsigned i = 0; i < 13; i++)
		seen += buckets[i];
	EXPECT_EQ(seen, total.seen);
	EXPECT_EQ(sum, total.sum);
	printf("# %llu updates, %llu interrupts, %llu sequences started again, %llu updates "
	       "refused\n",
	       (unsigned long long)(total.ops + total.sets + total.seen),
	       (unsigned long long)interrupts_in_all, (unsigned long long)restarts_in_all,
	       (unsigned long long)refused_in_all);
	EXPECT(interrupts_in_all > 100);
	freshet_close(tree);
}

TEST(signals_and_moves)
{
	const struct work w[THREADS] = {
		{ true, true, 0 }, { true, true, 0 }, { true, false, 0 }, { true, false, 0 }
	};

	REQUIRE(start(0));
	run(w, THREADS);
	EXPECT_EQ(refused_in_all, 0);
#if defined(__x86_64__) && FRESHET_HAVE_RSEQ
	if (stress.backend == FRESHET_RSEQ)
		EXPECT(restarts_in_all > 10, "%llu restarts", (unsigned long long)restarts_in_all);
#endif
}

TEST(threads_without_rseq)
{
	const struct work w[THREADS] = {
		{ true, true, 0 }, { false, true, 0 }, { false, false, 0 }, { true, false, 0 }
	};

	REQUIRE(start(0));
	run(w, THREADS);
	EXPECT_EQ(refused_in_all, 0);
}

/* One slot: who interrupts its holder finds none. */
TEST(slots_exhausted)
{
	const bool rseq = stress.backend != FRESHET_RSEQ; /* else they are made to use slots */
	const struct work w[2] = { { rseq, false, LONG_PERIOD_NS },
				   { rseq, true, LONG_PERIOD_NS } };

	REQUIRE(start(1));
	run(w, 2);
	EXPECT(refused_in_all > 0, "never exhausted");
}

STRESS_MAIN(0.7)
