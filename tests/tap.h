/* SPDX-License-Identifier: MIT */
/*
 * A small TAP producer: TEST(name) { EXPECT(...); } and, at the end of the file, TAP_MAIN.
 * One TAP line a test; a failed EXPECT says where and goes on, a failed REQUIRE leaves the test.
 * SKIP("...") ends a test that this machine cannot run; with FRESHET_NO_SKIP set that is a failure.
 */
#ifndef FRESHET_TAP_H
#define FRESHET_TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct tap_test {
	const char *name;
	void (*run)(void);
	struct tap_test *next;
};

static struct tap_test *tap_first, **tap_last = &tap_first;
static int tap_bad;
static const char *tap_skipped;

#define TEST(name_)                                                                 \
	static void test_##name_(void);                                             \
	__attribute__((constructor)) static void register_##name_(void)             \
	{                                                                           \
		static struct tap_test t = { #name_, test_##name_, NULL };          \
		*tap_last = &t;                                                     \
		tap_last = &t.next;                                                 \
	}                                                                           \
	static void test_##name_(void)

__attribute__((format(printf, 5, 6), unused)) static int
tap_expect(int good, const char *file, int line, const char *cond, const char *fmt, ...)
{
	va_list ap;

	if (good)
		return 1;
	tap_bad++;
	if (tap_bad > 20)
		return 0;
	printf("# %s:%d: %s  ", file, line, cond);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	return 0;
}

/* EXPECT(condition) or EXPECT(condition, "format", ...) */
#define EXPECT(cond, ...) tap_expect(!!(cond), __FILE__, __LINE__, #cond, " " __VA_ARGS__)
#define REQUIRE(cond, ...)                                                          \
	do {                                                                        \
		if (!(cond)) {                                                      \
			tap_expect(0, __FILE__, __LINE__, #cond, " " __VA_ARGS__); \
			return;                                                     \
		}                                                                   \
	} while (0)
#define EXPECT_EQ(a, b)                                                                     \
	do {                                                                                \
		long long tap_a = (long long)(a), tap_b = (long long)(b);                   \
		tap_expect(tap_a == tap_b, __FILE__, __LINE__, #a " == " #b,                \
			   "%lld, not %lld", tap_a, tap_b);                                           \
	} while (0)
#define SKIP(why)                  \
	do {                       \
		tap_skipped = why; \
		return;            \
	} while (0)

static int tap_run(const char *only)
{
	int n = 0, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (struct tap_test *t = tap_first; t; t = t->next)
		n++;
	printf("1..%d\n", n);
	n = 0;
	for (struct tap_test *t = tap_first; t; t = t->next) {
		n++;
		tap_bad = 0;
		tap_skipped = NULL;
		if (!only || __builtin_strcmp(only, t->name) == 0)
			t->run();
		else
			tap_skipped = "not asked for";
		if (tap_skipped && getenv("FRESHET_NO_SKIP") && !only)
			tap_bad = 1;
		failed += !!tap_bad;
		printf("%s %d %s%s%s\n", tap_bad ? "not ok" : "ok", n, t->name,
		       tap_skipped ? " # SKIP " : "", tap_skipped ? tap_skipped : "");
	}
	return failed ? 1 : 0;
}

#define TAP_MAIN                                           \
	int main(int argc, char **argv)                    \
	{                                                  \
		return tap_run(argc > 1 ? argv[1] : NULL); \
	}

#endif
