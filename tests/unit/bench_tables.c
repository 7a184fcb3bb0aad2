/* SPDX-License-Identifier: MIT */
/* Tables of a bench's report (bench/report.c): several narrow ones, rows by group; JSON as ever. */
#include "tap.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../bench/report.h"

#define DESIGNS 3

static const char *const names[DESIGNS] = { "a", "subsystem-lock-nofence", "seqlock" };
static const char *const group[] = { "threads", "slots", NULL };
static const char *const cost[] = { "design", "update_ns", "flush_us", NULL };
static const char *const wrong[] = { "design", "stale", NULL };
static const struct report_table tables[] = { { "costs", cost }, { "is wrong", wrong } };

static void fill(void)
{
	report_begin("test", false);
	for (int config = 0; config < 2; config++)
		for (int i = 0; i < DESIGNS; i++) {
			report_row();
			report_text("design", names[i]);
			report_number("threads", 8, 0);
			report_number("slots", 64 * (config + 1), 0);
			report_number("update_ns", 1000.5 * i, 2);
			report_number("flush_us", 7, 1);
			report_number("stale", 10 * config + i, 0);
			report_number("unseen", 123456, 0);
		}
	report_tables(group, tables, 2);
}

/* What report_print() prints. */
static void print(bool json, char *ret, size_t size)
{
	FILE *file = tmpfile();
	int before = dup(STDOUT_FILENO), failed;
	size_t n;

	REQUIRE(file && before >= 0);
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	failed = report_print(json);
	dup2(before, STDOUT_FILENO);
	close(before);
	REQUIRE(!failed);
	rewind(file);
	n = fread(ret, 1, size - 1, file);
	ret[n] = 0;
	fclose(file);
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

TEST(tables)
{
	static char text[8192];

	fill();
	print(false, text, sizeof(text));
	EXPECT_EQ(count(text, "\n-- threads 8, slots 64 --\n\ncosts\n"), 1);
	EXPECT_EQ(count(text, "\n-- threads 8, slots 128 --\n\ncosts\n"), 1);
	EXPECT_EQ(count(text, "\nis wrong\n"), 2);
	EXPECT_EQ(count(text, "\ndesign                  update_ns  flush_us\n"
			      "a                            0.00       7.0\n"
			      "subsystem-lock-nofence    1000.50       7.0\n"
			      "seqlock                   2001.00       7.0\n"),
		  2);
	EXPECT_EQ(count(text, "\ndesign                     stale\n"
			      "a                             10\n"
			      "subsystem-lock-nofence        11\n"),
		  1);
	EXPECT_EQ(count(text, "unseen"), 0);

	print(true, text, sizeof(text));
	EXPECT_EQ(count(text, "\"unseen\":123456}"), 2 * DESIGNS);
	EXPECT_EQ(count(text, "\"threads\":8,\"slots\":128"), DESIGNS);
	EXPECT_EQ(count(text, "\"checks\":["), 1);
}

TAP_MAIN
