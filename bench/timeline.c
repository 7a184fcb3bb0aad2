/* SPDX-License-Identifier: MIT */
/*
 * The bench `timeline`: who runs and who waits when several read while one flushes, simulated
 * (timeline_sim.h) and drawn (timeline_draw.h). Measures nothing, so it gives the same everywhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "benches.h"
#include "report.h"
#include "timeline_draw.h"
#include "timeline_sim.h"

/* As published. */
static struct timeline asked = {
	.stats = 3,
	.cpus = 1,
	.write = 16,
	.read = 2,
	.readers = 2,
	.arrive = { 16, 48 },
};
static const char *svg_file;

const struct option timeline_options[] = { { "stats", required_argument, NULL, 0 },
					   { "cpus", required_argument, NULL, 0 },
					   { "write", required_argument, NULL, 0 },
					   { "read", required_argument, NULL, 0 },
					   { "arrive", required_argument, NULL, 0 },
					   { "svg", required_argument, NULL, 0 },
					   { 0 } };

const char timeline_help[] =
	"  --stats N          how many are updated together (3; at most 16)\n"
	"  --cpus N           CPU slots on which they were (1; at most 64)\n"
	"  --write N          units of time to write a stat (16)\n"
	"  --read N           to read a word (2)\n"
	"  --arrive N[,N...]  when readers arrive; the flush begins at 0 (16,48)\n"
	"  --svg FILE         the picture, as SVG\n";

/* A whole number in decimal, at the beginning of text; *end is what follows it. */
static bool parse_number(const char *text, const char **end, int64_t least, int64_t most,
			 int64_t *ret)
{
	int64_t n = 0;

	for (*end = text; **end >= '0' && **end <= '9'; ++*end) {
		n = n * 10 + (**end - '0');
		if (n > most)
			return false;
	}
	*ret = n;
	return *end != text && n >= least;
}

static int option_number(const char *name, const char *value, int64_t most, int64_t *ret)
{
	const char *end;

	if (parse_number(value, &end, 1, most, ret) && !*end)
		return 0;
	fprintf(stderr, "freshet-bench: --%s: a whole number from 1 to %" PRId64 ", not '%s'\n",
		name, most, value);
	return -1;
}

static int by_time(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int option_arrive(const char *value)
{
	const char *at = value;
	int n = 0;

	while (n < TIMELINE_READERS && parse_number(at, &at, 0, TIMELINE_UNITS, &asked.arrive[n])) {
		n++;
		if (!*at) {
			asked.readers = n;
			qsort(asked.arrive, (size_t)n, sizeof(asked.arrive[0]), by_time);
			return 0;
		}
		if (*at++ != ',')
			break;
	}
	fprintf(stderr,
		"freshet-bench: --arrive: 1 to %d whole numbers from 0 to %d with commas "
		"between, not '%s'\n",
		TIMELINE_READERS, TIMELINE_UNITS, value);
	return -1;
}

int timeline_option(const char *name, const char *value)
{
	int64_t n;

	if (!strcmp(name, "write"))
		return option_number(name, value, TIMELINE_UNITS, &asked.write);
	if (!strcmp(name, "read"))
		return option_number(name, value, TIMELINE_UNITS, &asked.read);
	if (!strcmp(name, "arrive"))
		return option_arrive(value);
	if (!strcmp(name, "svg")) {
		if (!*value) {
			fprintf(stderr, "freshet-bench: --svg: the name of a file\n");
			return -1;
		}
		svg_file = value;
		return 0;
	}
	if (!strcmp(name, "stats")) {
		if (option_number(name, value, TIMELINE_STATS, &n))
			return -1;
		asked.stats = (int)n;
		return 0;
	}
	if (option_number(name, value, TIMELINE_CPUS, &n))
		return -1;
	asked.cpus = (int)n;
	return 0;
}

static int write_all(int fd, const struct buf *b)
{
	for (size_t done = 0; done < b->len;) {
		ssize_t n = write(fd, b->data + done, b->len - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Writes to fd, if it is one, and closes it. */
static int write_close(int fd, const struct buf *b)
{
	int r;

	if (fd < 0)
		return -errno;
	r = write_all(fd, b);
	if (close(fd) && !r)
		r = -errno;
	return r;
}

/* A plain file is there as a whole, or as it was. What else there is (a pipe, a link) is written to. */
static int write_file(const char *path, const struct buf *b)
{
	const mode_t mask = umask(0);
	struct stat st;
	char *temporary;
	int fd, r;

	umask(mask);
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return write_close(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), b);
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(temporary, O_CLOEXEC);
	r = write_close(fd, b);
	if (r == 0 && (chmod(temporary, 0666 & ~mask) || rename(temporary, path)))
		r = -errno;
	if (r && fd >= 0)
		unlink(temporary);
	free(temporary);
	return r;
}

static int draw_svg(const struct timeline_run *runs)
{
	struct buf svg = BUF_INIT;
	int r;

	timeline_svg(&svg, &asked, runs);
	r = svg.error ? svg.error : write_file(svg_file, &svg);
	buf_free(&svg);
	if (r)
		fprintf(stderr, "freshet-bench: %s: %s\n", svg_file, strerror(-r));
	return r ? 1 : 0;
}

static void report_reader(enum timeline_design design, const struct timeline_run *run, int reader)
{
	const struct timeline_actor *a = &run->actor[1 + reader];
	double values[TIMELINE_STATS];

	for (int i = 0; i < asked.stats; i++)
		values[i] = a->values[i];
	report_row();
	report_text("design", timeline_names[design]);
	report_number("reader_at", (double)a->begin, 0);
	report_numbers("values", values, asked.stats, 0);
	report_number("finished_at", (double)a->end, 0);
	report_number("waited", (double)a->waited, 0);
	report_text("fresh", a->fresh ? "yes" : "no");
	report_text("whole", a->whole ? "yes" : "no");
	report_number("hold_max", (double)run->hold, 0);
}

static void notes(void)
{
	report_note("Equal here: lock-break and global-lock, as a reader has to be behind the last "
		    "slot's "
		    "flush anyhow (they differ in hold_max from --cpus 2 on); seqlock-fresh and "
		    "seqlock, "
		    "as the flush has all updates and leaves readers none.");
	report_note(
		"Exact and simulated: %d stat%s, updated together on %d CPU slot%s before time 0. "
		"The flusher begins at 0 and takes %" PRId64 " for each write, %" PRId64
		" in all; who reads takes %" PRId64 " for each word.",
		asked.stats, asked.stats == 1 ? "" : "s", asked.cpus, asked.cpus == 1 ? "" : "s",
		asked.write, asked.write * asked.stats * asked.cpus, asked.read);
	report_note("hold_max is the longest time that the lock was held without a break. Locks "
		    "themselves, and to look at what is pending, cost nothing here.");
	report_note(
		"atomic: an update is no longer pending as soon as a flusher has taken it; who "
		"comes then neither flushes nor waits, and reads what has been written so far.");
	report_note("seqlock: its readers never flush. They read all updates here only because the "
		    "flush began after them; one that came later they would not see.");
	report_note("freshet: a reader waits for nobody, but reads %" PRId64
		    " words (generation, totals, cells; seqlock %d, the others %d): when nobody "
		    "flushes it is the slowest.",
		    timeline_freshet_reads(&asked), asked.stats + 2, asked.stats);
}

int bench_timeline(bool quick)
{
	static struct timeline_run runs[TIMELINE_DESIGNS];
	struct buf text = BUF_INIT;

	for (int d = 0; d < TIMELINE_DESIGNS; d++) {
		timeline_simulate(&asked, d, &runs[d]);
		for (int i = 0; i < asked.readers; i++)
			report_reader(d, &runs[d], i);
	}
	notes();
	timeline_text(&text, &asked, runs);
	report_picture(&text);
	return svg_file ? draw_svg(runs) : 0;
}
