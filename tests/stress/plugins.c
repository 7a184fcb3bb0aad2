/* SPDX-License-Identifier: MIT */
/*
 * A module that updates is unloaded while threads that used it live, and are preempted: the kernel then
 * looks at what the module's last sequence left in the thread's rseq area. So sequences of shared
 * objects clear it; a module whose sequences do not (they are compiled as for an executable) must
 * crash here, or this test shows nothing. STRESS_PLUGIN and STRESS_PLUGIN_PLANTED: the modules.
 */
#include "stress/stress.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/wait.h>

#include "stress/plugin.h"

#define THREADS 3u
#define UPDATES 20000u

static pthread_barrier_t barrier; /* of the threads and the main one */
static const struct plugin *loaded;
static uint32_t done;

/* Uses the module, then something else for a while, in which it is unloaded. */
static void *work(void *arg)
{
	while (pthread_barrier_wait(&barrier), !load_relaxed(&done)) {
		EXPECT_EQ(loaded->update(UPDATES), 0);
		pthread_barrier_wait(&barrier);
		for (uint64_t until = clock_ns() + 20000000; clock_ns() < until;)
			sched_yield();
	}
	return NULL;
}

/* In a child of its own. The exit status. */
static int load_and_unload(const char *path)
{
	uint64_t until = clock_ns() + stress.ns;
	pthread_t thread[THREADS];
	unsigned times = 0;

	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, NULL))
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
		pthread_barrier_wait(&barrier);
		if (loaded->stop() != THREADS * UPDATES)
			return 5;
		if (dlclose(module) || dlopen(path, RTLD_NOW | RTLD_NOLOAD))
			return 6; /* it is still there */
	}
	store_relaxed(&done, 1);
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return times > 3 && !tap_bad ? 0 : 7;
}

static int run(const char *variable)
{
	const char *path = getenv(variable);
	int status = -1;
	pid_t pid;

	if (!path)
		return -1;
	pid = fork();
	if (pid == 0)
		_exit(load_and_unload(path));
	if (pid > 0)
		waitpid(pid, &status, 0);
	return status;
}

TEST(unloaded)
{
	int status = run("STRESS_PLUGIN");

	EXPECT(status == 0, "%s %d", WIFSIGNALED(status) ? "signal" : "exit",
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

#ifndef __SANITIZE_ADDRESS__ /* which soon has something else where the module was */
TEST(not_cleared)
{
	int status = run("STRESS_PLUGIN_PLANTED");
	EXPECT(status != -1 && WIFSIGNALED(status), "the planted bug did not show: %x",
	       (unsigned)status);
}
#endif

STRESS_MAIN(0.7)
