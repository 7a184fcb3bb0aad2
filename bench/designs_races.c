/* SPDX-License-Identifier: MIT */
/* Implements designs_races.h. races_run() is of freshet-bench alone, races_plain() of both programs. */
#include "designs_races.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "designs_live.h"
#include "procs.h"

#define REPORT  "WARNING: ThreadSanitizer: data race"
#define LONGEST 60u /* s, of the program */

int races_plain(const struct bench_design *design, uint64_t ns, double *seconds_per_1m)
{
	static struct designs_tree tree;
	static struct live found;
	const struct live_times times = { .own_ns = ns / 2, .root_ns = ns / 2 };
	int err = designs_tree_open(&tree, design, RACES_OWNERS, RACES_SLOTS, RACES_SET);

	if (err)
		return err;
	err = live_run(&tree, RACES_READERS, &times, &found);
	designs_tree_close(&tree);
	*seconds_per_1m = (double)NAN;
	if (found.own.count)
		*seconds_per_1m = (double)found.own_cpu_ns / 1e3 / (double)found.own.count;
	return err;
}

/* In the child. */
static void become(const char *path, const char *design, uint64_t ns, FILE *out, FILE *err)
{
	char number[32];

	snprintf(number, sizeof(number), "%" PRIu64, ns);
	dup2(fileno(out), STDOUT_FILENO);
	dup2(fileno(err), STDERR_FILENO);
	/* It wants its shadow memory at fixed addresses. Equal stacks are not reported again. */
	personality(ADDR_NO_RANDOMIZE);
	setenv("TSAN_OPTIONS", "exitcode=0 halt_on_error=0 symbolize=0 suppress_equal_stacks=1", 1);
	alarm(LONGEST);
	execl(path, path, design, number, (char *)NULL);
	_exit(127);
}

static unsigned count_reports(FILE *f)
{
	unsigned count = 0;
	char line[512];

	rewind(f);
	while (fgets(line, sizeof(line), f))
		count += strstr(line, REPORT) != NULL;
	return count;
}

int races_run(const char *design, uint64_t ns, struct races *ret)
{
	FILE *out = tmpfile(), *messages = tmpfile();
	int status = -1, err = -EPROTO;
	char path[4300];
	pid_t pid = -1;

	procs_beside(RACES_PROGRAM, path, sizeof(path));
	if (access(path, X_OK) < 0)
		err = -ENOENT;
	else if (out && messages)
		pid = procs_fork();
	if (pid == 0)
		become(path, design, ns, out, messages);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == RACES_CANNOT)
		err = -EOPNOTSUPP;
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		ret->reports = count_reports(messages);
		rewind(out);
		err = fscanf(out, "%lf", &ret->seconds_per_1m) == 1 ? 0 : -EPROTO;
	}
	if (out)
		fclose(out);
	if (messages)
		fclose(messages);
	return err;
}
