/* SPDX-License-Identifier: MIT */
/*
 * conform DESIGN [--seconds N] [--checks N] [--seed N] [--planted NAME]
 *
 * Checks the promises of DESIGN section 1 of a design of statistics: updates in one process
 * (producer.c), reads in it and in this one, which has nothing but a read-only mapping (of a design
 * that allows it), and which stops the other one now and then and goes on reading, if it can. Each
 * round ends with everything at rest and every number compared with the books.
 *
 * Ends after some seconds, or when Fresh, Whole and Monotone have been checked so many times each;
 * with --planted, as soon as something is wrong: then it is an error if nothing is. What a design
 * lacks must be seen broken: the run goes on until it is, LACKS_NS at most.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "conform/world.h"

#define ROUND_NS (700 * (NSEC_PER_SEC / 1000))
#define LACKS_NS (30 * NSEC_PER_SEC)
#define MINE     (READERS - 1) /* readers of this process */

struct world *world;
const struct design *design;

static const struct design *const designs[] = { &freshet_rseq, &freshet_fallback };

/* What is seen where a promise is not kept. */
static const char *const breach_name[PROMISES] = {
	"a wrong sum", "stale", "torn", "backwards", "a reader that waits", "a read that writes",
};

static struct options {
	uint64_t ns, checks;
	const char *planted;
} options = { .ns = 3 * NSEC_PER_SEC };

static char directory[] = "/tmp/freshet-conform.XXXXXX";
static pid_t producer;
static struct reader_thread readers[MINE];

static bool lacks_seen(void)
{
	for (unsigned p = 0; p < PROMISES; p++)
		if (design->lacks >> p & 1 && wrong_of(p) == 0)
			return false;
	return true;
}

static bool enough(uint64_t until)
{
	if (options.planted && all_wrong())
		return true;
	if (options.checks)
		return checks_of(FRESH) >= options.checks && checks_of(WHOLE) >= options.checks &&
		       checks_of(MONOTONE) >= options.checks;
	return clock_ns() >= until && (lacks_seen() || clock_ns() >= until + LACKS_NS);
}

static bool producer_ended(void)
{
	int status;

	if (producer == 0 || waitpid(producer, &status, WNOHANG | WUNTRACED) != producer)
		return producer == 0;
	if (WIFSTOPPED(status)) { /* by somebody else */
		kill(producer, SIGCONT);
		return false;
	}
	printf("# the updating process ended: status %x\n", (unsigned)status);
	producer = 0;
	return true;
}

/* Until the other process has come to rest in this round. */
static bool wait_rest(uint32_t round)
{
	while (load_acquire(&world->rested) != round + 1 || world->error) {
		if (load_acquire(&world->error)) {
			printf("# the updating process: %s\n", strerror((int)-world->error));
			return false;
		}
		if (producer_ended())
			return false;
		usleep(500);
	}
	return true;
}

static void *read_all(void *arg)
{
	while (phase_now() == RUNNING)
		reader_step(arg);
	return NULL;
}

static void nap(int signal)
{
	const struct timespec t = { .tv_nsec = (long)(clock_ns() * 0x9e3779b97f4a7c15 >> 46) };

	nanosleep(&t, NULL);
}

/* Holds readers up in the middle of a read, by up to 0.26 ms: the time of a pass or two. */
static void *hold_up(void *thread)
{
	const pthread_t *t = thread;
	uint64_t random = world->seed ^ 0x7e7e7e;

	while (phase_now() == RUNNING) {
		pthread_kill(t[next_random(&random) % MINE], SIGUSR1);
		usleep((unsigned)(next_random(&random) % 800));
	}
	return NULL;
}

/* Each reader has done so many reads. */
static bool have_read(const uint64_t *from, uint64_t count)
{
	for (unsigned i = 0; i < MINE; i++)
		if (load_relaxed(&world->tally[i].reads) - from[i] < count)
			return false;
	return true;
}

/*
 * Reads go on while the updating process, and whatever it was doing, is stopped. A design that does
 * not promise it breaks that promise if a reader does not finish one read: it waits as long as the
 * other process is stopped, which is not for ever.
 */
static void stop_and_read(struct tally *t)
{
	const uint64_t enough_reads = promised(UNBLOCKED) ? 100 : 1;
	const uint64_t longest = promised(UNBLOCKED) ? 10 * NSEC_PER_SEC : NSEC_PER_SEC / 10;
	uint64_t reads[MINE], began;
	int status;
	bool all;

	if (kill(producer, SIGSTOP) || waitpid(producer, &status, WUNTRACED) != producer ||
	    !WIFSTOPPED(status)) {
		printf("# cannot stop the updating process\n");
		producer = 0;
		return;
	}
	for (unsigned i = 0; i < MINE; i++)
		reads[i] = load_relaxed(&world->tally[i].reads);
	began = clock_ns();
	do {
		usleep(200);
		all = have_read(reads, enough_reads);
	} while (!all && clock_ns() - began < longest);
	/* (This thread's own clock goes on when it gets no CPU.) */
	if (!all)
		world->longest_wait = longest;
	check(t, UNBLOCKED, all, "reads wait for the stopped process");
	kill(producer, SIGCONT);
	__atomic_fetch_add(&world->stands, 1, __ATOMIC_RELAXED);
}

/* This process has the segment mapped, and can write nowhere in it. */
static void check_mapping(struct tally *t)
{
	char line[512], perms[8];
	unsigned mapped = 0;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, world->path) || sscanf(line, "%*s %7s", perms) != 1)
			continue;
		mapped++;
		check(t, QUIET, !strcmp(perms, "r--s"), "mapped %s", perms);
	}
	if (f)
		fclose(f);
	check(t, QUIET, mapped > 0, "not mapped");
}

static bool check_quiet(struct tally *t)
{
	int r;

	if (!design->read_writes) {
		check_mapping(t);
		return true;
	}
	r = design->read_writes(readers[0].reader);
	if (r < 0)
		printf("# cannot tell whether reads write: %s\n", strerror(-r));
	else
		check(t, QUIET, r == 0, "a read writes");
	return r >= 0;
}

static void remove_files(void)
{
	unlink(world->path); /* if the other process was killed; its lock file too */
	strcat(world->path, ".lock");
	unlink(world->path);
	rmdir(directory);
}

/* The updating process has ended too early, and readers may wait for what it held. */
static _Noreturn void give_up(void)
{
	remove_files();
	printf("1..1\nnot ok 1 - %s: ran to its end\n", design->name);
	fflush(stdout);
	_exit(1);
}

static bool run_round(uint32_t round, uint64_t until)
{
	struct tally *t = &world->tally[TALLY_MAIN];
	uint64_t random = world->seed + round * 77777 + 1, end = clock_ns() + ROUND_NS;
	pthread_t thread[MINE], holder;

	store_release(&world->phase, (uint32_t)RUNNING);
	store_release(&world->round, round); /* pairs with producer_main() */
	for (unsigned i = 0; i < MINE; i++)
		if (pthread_create(&thread[i], NULL, read_all, &readers[i]))
			exit(3);
	if (pthread_create(&holder, NULL, hold_up, thread))
		exit(3);
	while (producer && clock_ns() < end && !enough(until)) {
		usleep((unsigned)(next_random(&random) % 40000));
		if (!producer_ended())
			stop_and_read(t);
	}
	store_release(&world->phase, (uint32_t)RESTING);
	pthread_join(holder, NULL);
	for (unsigned i = 0; i < MINE; i++)
		while (pthread_tryjoin_np(thread[i], NULL)) {
			if (producer_ended() && !promised(UNBLOCKED))
				give_up();
			usleep(500);
		}
	store_release(&world->read, round); /* pairs with wait_readers() in producer.c */
	if (!wait_rest(round))
		return false;
	for (unsigned i = 0; i < MINE; i++)
		reader_check_rest(&readers[i], design->flush != NULL);
	return check_quiet(t);
}

static bool run(void)
{
	struct sigaction act = { .sa_handler = nap, .sa_flags = SA_RESTART };
	uint64_t until;
	uint32_t round = 0;
	bool good;

	sigaction(SIGUSR1, &act, NULL);

	if (!wait_rest(round))
		return false;
	for (unsigned i = 0; i < MINE; i++) {
		void *reader;
		int r = design->attach(NULL, world->path, &reader);

		if (r) {
			printf("# attach: %s\n", strerror(-r));
			return false;
		}
		reader_init(&readers[i], i, reader);
	}
	until = clock_ns() + options.ns;
	do
		good = run_round(++round, until);
	while (good && !enough(until));
	for (unsigned i = 0; i < MINE; i++)
		design->detach(readers[i].reader);
	return good;
}

/* The updating process; the other one goes on as a child cannot: it tells the verdict. */
static bool fork_and_run(void)
{
	int status;
	bool good;

	producer = fork();
	if (producer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		exit(producer_main());
	}
	if (producer < 0)
		return false;
	good = run();
	store_release(&world->phase, (uint32_t)ENDING);
	while (producer && waitpid(producer, &status, WUNTRACED) == producer) {
		if (WIFSTOPPED(status)) {
			kill(producer, SIGCONT);
			continue;
		}
		if (status) {
			printf("# the updating process: status %x\n", (unsigned)status);
			good = false;
		}
		producer = 0;
	}
	return good;
}

static void say_counts(uint64_t ns)
{
	uint64_t steps = 0, reads = 0;

	for (unsigned i = 0; i < SEATS; i++)
		steps += world->seat[i].steps;
	for (unsigned i = 0; i < READERS; i++)
		reads += world->tally[i].reads;
	printf("# %s: %.1f s, seed %llu, %llu updates by %llu threads, %llu restarts, %llu "
	       "flushes, %llu "
	       "groups replaced, %llu times stopped, %llu reads\n",
	       design->name, (double)ns / NSEC_PER_SEC, (unsigned long long)world->seed,
	       (unsigned long long)steps, (unsigned long long)world->threads,
	       (unsigned long long)world->restarts, (unsigned long long)world->flushes,
	       (unsigned long long)world->births, (unsigned long long)world->stands,
	       (unsigned long long)reads);
	if (world->longest_wait)
		printf("# a reader waited for the stopped process as long as it was stopped, %.0f "
		       "ms "
		       "or more\n",
		       (double)world->longest_wait / 1e6);
}

/* One TAP line. */
static int say_planted(bool good, uint64_t ns)
{
	uint64_t wrong = all_wrong();

	printf("1..1\n%s 1 - %s: %s is noticed", wrong ? "ok" : "not ok", design->name,
	       options.planted);
	for (unsigned p = 0; p < PROMISES; p++)
		if (promised(p) && wrong_of(p))
			printf(", %llu not %s", (unsigned long long)wrong_of(p), promise_name[p]);
	printf("%s, %.1f s\n", good || wrong ? "" : ", and the run failed",
	       (double)ns / NSEC_PER_SEC);
	return !wrong;
}

static int say_promises(bool good)
{
	int failed = !good, n = 0;

	printf("1..%d\n", __builtin_popcount(design->promises | design->lacks) + 1);
	printf("%s %d - %s: ran to its end\n", good ? "ok" : "not ok", ++n, design->name);
	for (unsigned p = 0; p < PROMISES; p++) {
		bool kept = wrong_of(p) == 0 && checks_of(p) > 0;

		if (!promised(p))
			continue;
		printf("%s %d - %s: %s, %llu checks", kept ? "ok" : "not ok", ++n, design->name,
		       promise_name[p], (unsigned long long)checks_of(p));
		if (wrong_of(p))
			printf(", %llu wrong", (unsigned long long)wrong_of(p));
		printf("\n");
		failed |= !kept;
	}
	for (unsigned p = 0; p < PROMISES; p++) {
		if (promised(p))
			continue;
		if (design->lacks >> p & 1 && !wrong_of(p) && cpus_online() == 1) {
			/* A store in another CPU's buffer, for one, cannot be late. */
			printf("ok %d - %s: %s # SKIP one CPU", ++n, design->name, breach_name[p]);
		} else if (design->lacks >> p & 1) {
			printf("%s %d - %s: %s is seen", wrong_of(p) ? "ok" : "not ok", ++n,
			       design->name, breach_name[p]);
			failed |= !wrong_of(p);
		} else {
			printf("# %s is not promised: %s", promise_name[p], breach_name[p]);
		}
		printf(", %llu of %llu checks\n", (unsigned long long)wrong_of(p),
		       (unsigned long long)checks_of(p));
	}
	return failed;
}

static const struct design *find_design(const char *name)
{
	const struct design *rival = name ? rival_find(name) : NULL;

	if (rival)
		return rival;
	for (unsigned i = 0; name && i < sizeof(designs) / sizeof(designs[0]); i++)
		if (!strcmp(designs[i]->name, name))
			return designs[i];
	fprintf(stderr,
		"usage: conform DESIGN [--seconds N] [--checks N] [--seed N] [--planted NAME]\n");
	exit(2);
}

/* Usage, unless it is a number above 0. */
static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end || n == 0)
		find_design(NULL);
	return n;
}

static uint64_t parse(int argc, char **argv)
{
	uint64_t seed = clock_ns() | 1;

	design = find_design(argv[1]);
	for (int i = 2; i < argc; i += 2) {
		if (i + 1 >= argc)
			find_design(NULL);
		if (!strcmp(argv[i], "--seconds"))
			options.ns = number(argv[i + 1]) * NSEC_PER_SEC;
		else if (!strcmp(argv[i], "--checks"))
			options.checks = number(argv[i + 1]);
		else if (!strcmp(argv[i], "--seed"))
			seed = number(argv[i + 1]) | 1;
		else if (!strcmp(argv[i], "--planted"))
			options.planted = argv[i + 1];
		else
			find_design(NULL);
	}
	return seed;
}

int main(int argc, char **argv)
{
	uint64_t seed = parse(argc, argv), began = clock_ns();
	bool good;
	int r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (world == MAP_FAILED || !mkdtemp(directory)) {
		perror("conform");
		return 1;
	}
	r = design->prepare ? design->prepare(MAX_GROUPS) : 0;
	if (r) {
		printf("# prepare: %s\n", strerror(-r));
		return 1;
	}
	world->seed = seed;
	snprintf(world->path, sizeof(world->path), "%s/tree", directory);
	good = fork_and_run();
	remove_files();
	say_counts(clock_ns() - began);
	return options.planted ? say_planted(good, clock_ns() - began) : say_promises(good);
}
