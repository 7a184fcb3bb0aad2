/* SPDX-License-Identifier: MIT */
/* freshet top: rates of a subtree's groups, on a screen or as plain tables. */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <time.h>

#include "base/clock.h"
#include "base/duration.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/passes.h"
#include "view/format.h"
#include "view/safe.h"
#include "view/top_screen.h"

#define MIN_DELAY_NS (10 * NSEC_PER_MSEC)
#define FIRST_NS     (250 * NSEC_PER_MSEC) /* the first rates are not waited for long */
#define FOREVER      UINT32_MAX

static const char help[] =
	"Usage: freshet top [PATH] [OPTION]...\n"
	"CPU rates of the cgroups at and below PATH. 100 % is one CPU. Keys: h shows them.\n\n"
	"      --delay TIME     between two passes (1s)\n"
	"      --sort KEY       cpu, user, system, throttled, time or name\n"
	"      --filter TEXT    only paths with TEXT in them\n"
	"      --segment NAME   groups of another producer: a name, or a file if it has a '/'\n"
	"      --batch          plain tables; so too when stdout is no terminal\n"
	"  -n N                 N tables, then end (implies --batch)\n"
	"  -h, --help\n";

struct top {
	struct passes passes;
	struct top_model *model;
	uint64_t delay_ns;
	uint32_t tables;
	char root[2 * FRESHET_PATH_MAX]; /* path of the first group, to show */
};

static void sleep_until(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / NSEC_PER_SEC),
			       .tv_nsec = (long)(ns % NSEC_PER_SEC) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* ---- plain tables ---- */

static void add_table(const struct top *t, bool titles, struct buf *b)
{
	static const enum top_column rates[] = { TOP_USAGE, TOP_USER, TOP_SYSTEM, TOP_THROTTLED };
	char number[32], path[FRESHET_PATH_MAX];
	size_t n;
	const struct top_group *groups = top_model_groups(t->model, &n);
	const struct top_row *rows = top_model_rows(t->model, &n);

	if (titles)
		buf_printf(b, "%7s %7s %7s %7s %9s  CGROUP\n", "%CPU", "%USER", "%SYS", "%THR",
			   "TIME");
	for (size_t i = 0; i < n; i++) {
		const struct top_group *g = &groups[rows[i].group];

		for (unsigned c = 0; c < TOP_NCOLUMNS; c++) {
			format_percent(g->percent[rates[c]], number, sizeof(number));
			buf_printf(b, "%7s ", number);
		}
		if (g->present & 1u << TOP_USAGE)
			format_time(g->value[TOP_USAGE], number, sizeof(number));
		else
			strcpy(number, "-");
		buf_printf(b, "%9s  ", number);
		top_model_path(t->model, rows[i].group, path, sizeof(path));
		if (!path[0] || strcmp(t->root, "/") != 0)
			safe_name(b, t->root, false);
		safe_name(b, path, false);
		buf_char(b, '\n');
	}
}

/* Takes the pass of one table: of a producer that is new the second one, which has rates. */
static int take_table(struct top *t, uint64_t *next)
{
	int r;

	*next += t->delay_ns;
	sleep_until(*next);
	r = passes_take_news(&t->passes, t->model);
	if (r <= 0 || !t->passes.anew)
		return r;
	*next = clock_ns() + t->delay_ns;
	sleep_until(*next);
	return passes_take_news(&t->passes, t->model);
}

static int batch(struct top *t)
{
	bool titles = isatty(STDOUT_FILENO), said = false;
	struct buf b = BUF_INIT;
	uint64_t next = clock_ns();
	int r = passes_take_news(&t->passes, t->model);

	top_model_flat(t->model, true);
	for (uint64_t i = 0; r > 0 && (t->tables == FOREVER || i < t->tables); i++) {
		r = take_table(t, &next);
		if (r <= 0)
			break;
		if (i)
			buf_char(&b, '\n');
		add_table(t, titles, &b);
		if (b.error)
			r = b.error;
		else if (b.len) /* no group may have the filter's text */
			fwrite(b.data, 1, b.len, stdout);
		buf_clear(&b);
		if (options_written())
			r = -ECANCELED;
		if (!said)
			passes_say_left_out(&t->passes);
		said |= t->passes.left_out != 0;
	}
	buf_free(&b);
	if (r <= 0 && r != -ECANCELED)
		complain(t->root, r ? strerror(-r) : t->passes.stale);
	return r <= 0 ? EXIT_FAILED : EXIT_OK;
}

/* ---- the screen ---- */

static int watch(struct top *t)
{
	const char *no_color = getenv("NO_COLOR");
	char host[256] = "";
	struct top_status status = { .host = host,
				     .source = t->passes.open.source,
				     .root = t->root,
				     .cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN) };
	uint64_t next = clock_ns(), now;
	bool first = true;
	int r;

	gethostname(host, sizeof(host) - 1);
	r = top_screen_open(!no_color || !no_color[0]);
	if (r < 0) {
		const char *term = getenv("TERM");

		complain(term ? term : "TERM", "no such terminal is known; --batch needs none");
		return EXIT_FAILED;
	}
	do {
		now = clock_ns();
		if (now >= next) {
			r = passes_take(&t->passes, t->model);
			if (r < 0)
				break;
			/* after a halt (ctrl-Z, suspend) what was missed is not made up for */
			next = now - next < t->delay_ns ? next + t->delay_ns : now + t->delay_ns;
			if (first && t->delay_ns > FIRST_NS)
				next = now + FIRST_NS;
			first = false;
		}
		status.age_ns = passes_age(&t->passes);
		status.left_out = t->passes.left_out;
		status.stale = t->passes.stale[0] ? t->passes.stale : NULL;
		top_screen_draw(t->model, &status);
		now = clock_ns();
		r = top_screen_key(t->model,
				   next > now ? (int)((next - now) / NSEC_PER_MSEC) + 1 : 0);
	} while (r >= 0);
	top_screen_close();
	if (r == -ECANCELED)
		return EXIT_OK;
	complain(t->root, strerror(-r));
	return EXIT_FAILED;
}

static int sort_key(const char *name, enum top_sort *ret)
{
	for (unsigned i = 0; i < TOP_NSORTS; i++) {
		if (strcmp(name, top_sort_names[i]) == 0) {
			*ret = (enum top_sort)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int run(struct top *t, const struct open_options *open, enum top_sort sort,
	       const char *filter, bool plain)
{
	int r;

	if (t->tables || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		plain = true;

	if (!t->tables)
		t->tables = isatty(STDOUT_FILENO) ? FOREVER : 1;
	r = passes_open(open, &t->passes);
	if (r < 0)
		return EXIT_FAILED;
	open_view_path(&t->passes.open, t->passes.open.target, t->root, sizeof(t->root));
	r = top_model_new(&t->model);
	if (r < 0) {
		complain(t->root, strerror(-r));
		passes_close(&t->passes);
		return EXIT_FAILED;
	}
	top_model_sort(t->model, sort, false);
	top_model_filter(t->model, filter);
	r = plain ? batch(t) : watch(t);
	top_model_free(t->model);
	passes_close(&t->passes);
	return r;
}

int cmd_top(int argc, char **argv)
{
	static const struct option options[] = { { "batch", no_argument, NULL, 'b' },
						 { "delay", required_argument, NULL, 'd' },
						 { "sort", required_argument, NULL, 'o' },
						 { "filter", required_argument, NULL, 'f' },
						 { "segment", required_argument, NULL, 's' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	struct open_options open = { .max_age_ns = OPEN_ANY_AGE };
	struct top t = { .delay_ns = NSEC_PER_SEC };
	enum top_sort sort = TOP_BY_CPU;
	const char *filter = NULL;
	bool plain = false;
	int c, r;

	setlocale(LC_CTYPE, "");
	options_begin(argv);
	while ((c = options_next(argc, argv, "hn:", options)) != -1) {
		switch (c) {
		case 'b':
			plain = true;
			break;
		case 'n':
			if (options_count(optarg, 1, FOREVER - 1, &t.tables))
				return options_bad(argv, "-n", optarg, "a number from 1 on");
			break;
		case 'd':
			if (duration_parse(optarg, &t.delay_ns) || t.delay_ns < MIN_DELAY_NS)
				return options_bad(argv, "--delay", optarg,
						   "a time of 10ms or more, such as 1s");
			break;
		case 'o':
			if (sort_key(optarg, &sort))
				return options_bad(argv, "--sort", optarg,
						   "cpu, user, system, throttled, time or name");
			break;
		case 'f':
			filter = optarg;
			break;
		case 's':
			if (options_segment(argv, optarg, &open.segment))
				return EXIT_USAGE;
			break;
		case 'h':
			fputs(help, stdout);
			return options_written();
		default:
			return EXIT_USAGE;
		}
	}
	r = options_path(argc, argv, &open.path);
	if (r)
		return r;
	return run(&t, &open, sort, filter, plain);
}
