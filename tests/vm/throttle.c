/* SPDX-License-Identifier: MIT */
/*
 * Throttling numbers of `freshet show --json` against the kernel's cpu.stat, read just before and
 * just after: each of ours must lie between the two, and equal them once nothing moves.
 *
 * Runs in the guest that tests/vm/run boots: needs the cpu controller in the cgroup2 hierarchy,
 * mounted at /sys/fs/cgroup, and root.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tap.h"

#define MOUNT "/sys/fs/cgroup"

static const char *const keys[] = { "nr_periods", "nr_throttled", "throttled_usec" };
enum { NR_PERIODS, NR_THROTTLED, THROTTLED_USEC, NKEYS };

static char group[64]; /* of the test, below MOUNT */

static int write_file(const char *path, const char *name, const char *text)
{
	char file[256];
	int fd, ret;

	snprintf(file, sizeof(file), MOUNT "%s/%s", path, name);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

/* All that `f` gives, as a string. */
static void slurp(FILE *f, char *text, size_t size)
{
	size_t n = fread(text, 1, size - 1, f);

	text[n] = '\0';
}

/* Each of keys[] in cpu.stat; a bit in the result for those that are there. */
static unsigned kernel_numbers(const char *path, uint64_t value[NKEYS])
{
	char file[256], text[4096], pattern[64];
	unsigned present = 0;
	FILE *f;

	snprintf(file, sizeof(file), MOUNT "%s/cpu.stat", path);
	f = fopen(file, "re");
	if (!f)
		return 0;
	slurp(f, text, sizeof(text));
	fclose(f);
	for (int i = 0; i < NKEYS; i++) {
		const char *at;

		snprintf(pattern, sizeof(pattern), "\n%s ", keys[i]);
		at = strstr(text, pattern);
		if (at && sscanf(at + strlen(pattern), "%" SCNu64, &value[i]) == 1)
			present |= 1u << i;
	}
	return present;
}

/* The same as `freshet show --json` prints them; *good tells whether it succeeded. */
static unsigned our_numbers(const char *path, uint64_t value[NKEYS], int *good)
{
	const char *freshet = getenv("FRESHET");
	char command[512], text[8192], pattern[64];
	unsigned present = 0;
	FILE *f;

	snprintf(command, sizeof(command), "%s show --json %s", freshet ? freshet : "freshet",
		 path);
	*good = 0;
	f = popen(command, "re");
	if (!f)
		return 0;
	slurp(f, text, sizeof(text));
	*good = pclose(f) == 0 && strstr(text, "\"usage_usec\":");
	if (!*good)
		printf("# %s printed: %s\n", command, text);
	for (int i = 0; i < NKEYS; i++) {
		const char *at;

		snprintf(pattern, sizeof(pattern), "\"%s\":", keys[i]);
		at = strstr(text, pattern);
		if (at && sscanf(at + strlen(pattern), " %" SCNu64, &value[i]) == 1)
			present |= 1u << i;
	}
	return present;
}

/* A process that burns CPU in the group until it is killed. */
static pid_t start_burner(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (write_file(group, "cgroup.procs", "0") < 0)
			_exit(1);
		for (;;)
			__asm__ volatile("");
	}
	return pid;
}

static int wait_for_throttling(uint64_t enough)
{
	const struct timespec nap = { .tv_nsec = 20 * NSEC_PER_MSEC };
	uint64_t end = clock_ns() + 20 * NSEC_PER_SEC, value[NKEYS] = { 0 };

	do {
		kernel_numbers(group, value);
		if (value[NR_THROTTLED] >= enough)
			return 1;
		nanosleep(&nap, NULL);
	} while (clock_ns() < end);
	return 0;
}

/* Compares one reading of ours with the kernel's around it; *rest: the two were the same. */
static void compare(int *rest)
{
	uint64_t before[NKEYS] = { 0 }, ours[NKEYS] = { 0 }, after[NKEYS] = { 0 };
	int good;

	REQUIRE(kernel_numbers(group, before) == (1u << NKEYS) - 1);
	EXPECT(our_numbers(group, ours, &good) == (1u << NKEYS) - 1);
	REQUIRE(good);
	kernel_numbers(group, after);
	for (int i = 0; i < NKEYS; i++)
		EXPECT(before[i] <= ours[i] && ours[i] <= after[i],
		       "%s: %" PRIu64 ", ours %" PRIu64 ", %" PRIu64, keys[i], before[i], ours[i],
		       after[i]);
	*rest = memcmp(before, after, sizeof(before)) == 0;
}

TEST(while_throttled)
{
	int rest;
	pid_t pid;

	REQUIRE(write_file(group, "cpu.max", "10000 100000") == 0);
	pid = start_burner();
	REQUIRE(pid > 0);
	EXPECT(wait_for_throttling(3), "the kernel throttles");
	for (int i = 0; i < 3; i++)
		compare(&rest);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(at_rest)
{
	uint64_t value[NKEYS] = { 0 };
	int rest = 0;

	/* The kernel's period timer runs on for a few periods. */
	for (int i = 0; i < 20 && !rest; i++)
		compare(&rest);
	EXPECT(rest, "nothing moves");
	kernel_numbers(group, value);
	EXPECT(value[NR_THROTTLED] >= 3 && value[THROTTLED_USEC] > 0);
}

TEST(absent_without_the_controller)
{
	uint64_t value[NKEYS];
	char path[96], dir[160];
	int good;

	snprintf(path, sizeof(path), "%s/inner", group);
	snprintf(dir, sizeof(dir), MOUNT "%s", path);
	REQUIRE(mkdir(dir, 0755) == 0);
	EXPECT_EQ(kernel_numbers(path, value), 0);
	EXPECT_EQ(our_numbers(path, value, &good), 0);
	EXPECT(good);
	rmdir(dir);
}

int main(void)
{
	char dir[160];
	int ret;

	snprintf(group, sizeof(group), "/freshet-throttle-%d", (int)getpid());
	snprintf(dir, sizeof(dir), MOUNT "%s", group);
	if (write_file("", "cgroup.subtree_control", "+cpu") < 0 || mkdir(dir, 0755) < 0) {
		printf("Bail out! cannot make a cgroup with the cpu controller: %m\n");
		return 1;
	}
	ret = tap_run(NULL);
	rmdir(dir);
	return ret;
}
