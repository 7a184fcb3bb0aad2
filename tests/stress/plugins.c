/* SPDX-License-Identifier: MIT */
/*
 * A module that updates is unloaded while a thread that used it lives, and is interrupted: the kernel then
 * looks at what the module's last sequence left in the thread's rseq area. So sequences of shared
 * objects clear it; a module whose sequences do not (they are compiled as for an executable) must
 * crash here, or this test shows nothing. STRESS_PLUGIN and STRESS_PLUGIN_PLANTED: the modules.
 */
#include "stress/stress.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>

#include "stress/plugin.h"

#define THREADS 1u /* beside the main one: more would preempt each other before the time */
#define UPDATES 20000u

static pthread_barrier_t barrier; /* of the threads and the main one */
static const struct plugin *loaded;
static uint32_t done, updated[THREADS];

/* Uses the module, then spins for a while, in which it is unloaded: without a system call, at the end of
 * which the kernel would clear what the module left. */
static void *work(void *arg)
{
	uint32_t *mine = arg;

	while (pthread_barrier_wait(&barrier), !load_relaxed(&done)) {
		EXPECT_EQ(loaded->update(UPDATES), 0);
		store_release(mine, 1); /* pairs with load_and_unload() */
		for (uint64_t until = clock_ns() + 20000000; clock_ns() < until;)
			;
	}
	return NULL;
}

static void do_nothing(int number)
{
}

/* In a child of its own. The exit status. */
static int load_and_unload(const char *path, uint64_t ns)
{
	uint64_t until = clock_ns() + ns;
	pthread_t thread[THREADS];
	unsigned times = 0;

	signal(SIGUSR1, do_nothing);
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, &updated[i]))
			return 2;
	for (; clock_ns() < until; times++) {
		void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);

		loaded = module ? dlsym(module, "plugin") : NULL;
		if (!loaded) {
			printf("# %s\n", dlerror());
			return 3;
		}
		if (loaded->start(stress.backend))
			return 4;
		pthread_barrier_wait(&barrier);
		for (unsigned i = 0; i < THREADS; i++) {
			while (!load_acquire(&updated[i]))
				;
			store_relaxed(&updated[i], 0);
		}
		if (loaded->stop() != THREADS * UPDATES)
			return 5;
		if (dlclose(module) || dlopen(path, RTLD_NOW | RTLD_NOLOAD))
			return 6; /* it is still there */
		/* The kernel looks at a sequence before it delivers a signal. */
		for (unsigned i = 0; i < THREADS; i++)
			pthread_kill(thread[i], SIGUSR1);
	}
	store_relaxed(&done, 1);
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return times > 3 && !tap_bad ? 0 : 7;
}

static int run(const char *variable, uint64_t ns)
{
	const char *path = getenv(variable);
	int status = -1;
	pid_t pid;

	if (!path)
		return -1;
	pid = fork();
	if (pid == 0)
		_exit(load_and_unload(path, ns));
	if (pid > 0)
		waitpid(pid, &status, 0);
	return status;
}

TEST(unloaded)
{
	int status = run("STRESS_PLUGIN", stress.ns);

	EXPECT(status == 0, "%s %d", WIFSIGNALED(status) ? "signal" : "exit",
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

#ifndef __SANITIZE_ADDRESS__ /* which soon has something else where the module was */
TEST(not_cleared)
{
	/* It ends when it crashes; on a busy machine that may take some tries. */
	int status = run("STRESS_PLUGIN_PLANTED", 40 * stress.ns);

	EXPECT(status != -1 && WIFSIGNALED(status), "the planted bug did not show: %x",
	       (unsigned)status);
}
#endif

STRESS_MAIN(0.7)
