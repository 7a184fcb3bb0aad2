/* SPDX-License-Identifier: MIT */
/* The parsers of cgroup files: what the kernel prints, and what it should never print. */
#include <errno.h>
#include <string.h>

#include "source/parse.h"
#include "tap.h"

/* Parses text from a heap copy of exactly len bytes, so that ASan sees a read beyond it. */
static int parse(const char *text, size_t len, uint64_t value[HOST_NSTATS], uint64_t *present)
{
	char *copy = malloc(len ? len : 1);
	int r;

	memcpy(copy, text, len);
	r = parse_cpu_stat(copy, len, value, present);
	free(copy);
	return r;
}

/* The parsed columns as "usage_usec=1000 ..." in ns, in the order of the columns. */
static const char *shown(const char *text, size_t len)
{
	static char ret[1024];
	uint64_t value[HOST_NSTATS], present = 12345;
	size_t at = 0;
	int r = parse(text, len, value, &present);

	ret[0] = '\0';
	if (r < 0) {
		snprintf(ret, sizeof(ret), "%s", r == -ENODATA && present == 12345 ? "none" : "?");
		return ret;
	}
	for (unsigned i = 0; i < HOST_NSTATS; i++) {
		if (present >> i & 1)
			at += (size_t)snprintf(ret + at, sizeof(ret) - at, "%s%s=%llu",
					       at ? " " : "", host_stats[i].key,
					       (unsigned long long)value[i]);
	}
	return present >> HOST_NSTATS ? "unknown bits" : ret;
}

#define GIVES(text, want)                                                             \
	EXPECT(!strcmp(shown(text, sizeof(text) - 1), want), "%s gives %s", "" #text, \
	       shown(text, sizeof(text) - 1))

TEST(kernel_prints_it_so)
{
	GIVES("usage_usec 15958\nuser_usec 4027\nsystem_usec 11931\nnice_usec 0\n",
	      "usage_usec=15958000 user_usec=4027000 system_usec=11931000 nice_usec=0");
	GIVES("usage_usec 3\nuser_usec 1\nsystem_usec 2\ncore_sched.force_idle_usec 7\n"
	      "nr_periods 10\nnr_throttled 4\nthrottled_usec 55\nnr_bursts 2\nburst_usec 6\n",
	      "usage_usec=3000 user_usec=1000 system_usec=2000 core_sched.force_idle_usec=7000 "
	      "nr_periods=10 nr_throttled=4 throttled_usec=55000 nr_bursts=2 burst_usec=6000");
}

TEST(any_order_unknown_and_missing_keys)
{
	GIVES("burst_usec 1\nfuture_usec 9\nnice_usec 2\nusage_usec 3\nnice 4\nusage_use 5\n"
	      "usage_usec2 6\n",
	      "usage_usec=3000 nice_usec=2000 burst_usec=1000");
	GIVES("future_usec 1\n", "none");
	GIVES("", "none");
	GIVES("\n\n\n", "none");
}

TEST(cut_lines_are_not_numbers)
{
	/* Cut anywhere, the last line must not count: 12 of 12345 would be a counter that falls. */
	static const char text[] = "usage_usec 100\nuser_usec 12345\n";

	for (size_t len = 0; len < 15; len++)
		EXPECT(!strcmp(shown(text, len), "none"), "at %zu: %s", len, shown(text, len));
	for (size_t len = 15; len < sizeof(text) - 1; len++)
		EXPECT(!strcmp(shown(text, len), "usage_usec=100000"), "at %zu: %s", len,
		       shown(text, len));
	GIVES("usage_usec 100\nuser_usec 12345\n", "usage_usec=100000 user_usec=12345000");
}

TEST(malformed_lines_are_skipped)
{
	GIVES("usage_usec\nuser_usec 1\n", "user_usec=1000");
	GIVES("usage_usec \nuser_usec 1\n", "user_usec=1000");
	GIVES("usage_usec  5\nuser_usec 1\n", "user_usec=1000");
	GIVES("usage_usec 5 \nuser_usec 1\n", "user_usec=1000");
	GIVES("usage_usec 5 6\nuser_usec 1\n", "user_usec=1000");
	GIVES("usage_usec\t5\nuser_usec 1\n", "user_usec=1000");
	GIVES(" usage_usec 5\nuser_usec 1\n", "user_usec=1000");
	GIVES("usage_usec -5\nuser_usec 1\n", "user_usec=1000");
	GIVES("usage_usec +5\nuser_usec 1\n", "user_usec=1000");
	GIVES("usage_usec 0x5\nuser_usec 1\n", "user_usec=1000");
	GIVES("usage_usec 1e5\nuser_usec 1\n", "user_usec=1000");
	GIVES("usage_usec 5.5\nuser_usec 1\n", "user_usec=1000");
	GIVES("usage_usec max\nuser_usec 1\n", "user_usec=1000");
	GIVES("USAGE_USEC 5\nuser_usec 1\n", "user_usec=1000");
	GIVES("usage_usec 5\r\nuser_usec 1\r\n", "none");
	GIVES("usage_usec 5\0\nuser_usec 1\n", "user_usec=1000");
	GIVES("usage_usec\0 5\nuser_usec 1\n", "user_usec=1000");
	GIVES("\0\nuser_usec 1\n", "user_usec=1000");
	GIVES("usage_usec \xff\xfe\nuser_usec 1\n", "user_usec=1000");
	GIVES("usage_usec 007\n", "usage_usec=7000");
}

TEST(the_first_of_duplicates_counts)
{
	GIVES("usage_usec 7\nusage_usec 8\n", "usage_usec=7000");
	GIVES("usage_usec x\nusage_usec 8\n", "usage_usec=8000");
}

TEST(numbers_that_do_not_fit)
{
	/* 18446744073709551 us is the last whose ns fit into 64 bits. */
	GIVES("usage_usec 18446744073709551\nuser_usec 18446744073709552\nnr_periods "
	      "18446744073709551615\nnr_throttled 18446744073709551616\n",
	      "usage_usec=18446744073709551000 nr_periods=18446744073709551615");
	GIVES("usage_usec 99999999999999999999999999999999999999999999\nuser_usec 1\n",
	      "user_usec=1000");
}

TEST(huge_lines)
{
	size_t huge = 1 << 20;
	char *text = malloc(huge + 64);

	memset(text, 'x', huge);
	strcpy(text + huge, "\nusage_usec 5\n");
	EXPECT(!strcmp(shown(text, strlen(text)), "usage_usec=5000"));
	memset(text, '0', huge);
	memcpy(text, "usage_usec ", 11);
	strcpy(text + huge, "9\nuser_usec 5\n");
	EXPECT(!strcmp(shown(text, strlen(text)), "usage_usec=9000 user_usec=5000"));
	memset(text, '\n', huge);
	EXPECT(!strcmp(shown(text, strlen(text)), "user_usec=5000"));
	free(text);
}

TEST(absent_columns_are_left_alone)
{
	uint64_t value[HOST_NSTATS], present = 0;

	for (unsigned i = 0; i < HOST_NSTATS; i++)
		value[i] = 1000 + i;
	EXPECT_EQ(parse("user_usec 1\n", 12, value, &present), 0);
	EXPECT_EQ(present, 1ull << HOST_USER);
	for (unsigned i = 0; i < HOST_NSTATS; i++)
		EXPECT_EQ(value[i], i == HOST_USER ? 1000 : 1000 + i);
}

TEST(every_key_of_the_columns_is_known)
{
	for (unsigned i = 0; i < HOST_NSTATS; i++) {
		uint64_t value[HOST_NSTATS], present = 0;
		char text[128];
		int len = snprintf(text, sizeof(text), "%s 3\n", host_stats[i].key);

		EXPECT_EQ(parse(text, (size_t)len, value, &present), 0);
		EXPECT_EQ(present, 1ull << i);
		EXPECT_EQ(value[i], host_stats[i].unit == FRESHET_NANOSECONDS ? 3000 : 3);
	}
}

static int u64(const char *text, uint64_t *ret)
{
	return parse_u64(text, strlen(text), ret);
}

TEST(unsigned_numbers)
{
	uint64_t v = 77;

	EXPECT_EQ(u64("", &v), -EINVAL);
	EXPECT_EQ(u64("-1", &v), -EINVAL);
	EXPECT_EQ(u64("+1", &v), -EINVAL);
	EXPECT_EQ(u64(" 1", &v), -EINVAL);
	EXPECT_EQ(u64("1 ", &v), -EINVAL);
	EXPECT_EQ(u64("1\n", &v), -EINVAL);
	EXPECT_EQ(u64("max", &v), -EINVAL);
	EXPECT_EQ(u64("18446744073709551616", &v), -ERANGE);
	EXPECT_EQ(u64("184467440737095516150", &v), -ERANGE);
	EXPECT_EQ(u64("18446744073709551616x", &v), -EINVAL);
	EXPECT_EQ(v, 77);
	EXPECT_EQ(u64("18446744073709551615", &v), 0);
	EXPECT(v == UINT64_MAX);
	EXPECT_EQ(u64("0", &v), 0);
	EXPECT_EQ(v, 0);
	EXPECT_EQ(parse_u64("12", 1, &v), 0);
	EXPECT_EQ(v, 1);
}

/* The list as "0 1 2 3", or the error. */
static const char *cpus(const char *text, size_t capacity)
{
	static char ret[1024];
	uint32_t cpu[200];
	size_t at = 0;
	int n = parse_cpu_list(text, strlen(text), cpu, capacity);

	snprintf(ret, sizeof(ret), "%s",
		 n == -EINVAL  ? "invalid"
		 : n == -E2BIG ? "too many"
		 : n < 0       ? "?"
			       : "");
	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(ret + at, sizeof(ret) - at, "%s%u", at ? " " : "", cpu[i]);
	return ret;
}

#define LIST(text, want) EXPECT(!strcmp(cpus(text, 8), want), "%s gives %s", text, cpus(text, 8))

TEST(cpu_lists)
{
	LIST("0\n", "0");
	LIST("0-3\n", "0 1 2 3");
	LIST("0-3,5,7-8", "0 1 2 3 5 7 8");
	LIST("1,128\n", "1 128");
	LIST("\n", "");
	LIST("", "");
	LIST("0-7", "0 1 2 3 4 5 6 7");
	LIST("0-8", "too many");
	LIST("0-4294967295", "invalid");
	LIST("0-2147483647", "too many");
	LIST("99999999999999999999", "invalid");
	LIST("3-1", "invalid");
	LIST("1,1", "invalid");
	LIST("3,2", "invalid");
	LIST("0-3,3", "invalid");
	LIST("0,", "invalid");
	LIST(",0", "invalid");
	LIST("0,,1", "invalid");
	LIST("0-", "invalid");
	LIST("-1", "invalid");
	LIST("0-1-2", "invalid");
	LIST("0 1", "invalid");
	LIST("0\n\n", "invalid");
	LIST("a", "invalid");
	EXPECT(!strcmp(cpus("0-128", 129), cpus("0-127,128", 129)));
	EXPECT_EQ(parse_cpu_list("0", 1, NULL, 0), -E2BIG);
}

TAP_MAIN
