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
#include "base/where.h"
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
	"CPU rates of the cgroups at and below PATH, or what a program counts. 100 % is one CPU.\n"
	"Keys: h shows them.\n\n"
	"      --delay TIME     between two passes (1s)\n"
	"      --sort KEY       cpu, user, system, throttled, time or name; of a program's "
	"segment, the\n"
	"                       name of what it counts\n"
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

/* In a plain table, without what separates columns. */
static int width(const struct top_column *c)
{
	int title = (int)strlen(c->title), least = c->kind == TOP_TOTAL ? 9 : 7;

	return title > least ? title : least;
}

static void add_table(const struct top *t, bool titles, struct buf *b)
{
	char number[32], path[FRESHET_PATH_MAX];
	size_t n;
	const struct top_columns *columns = top_model_columns(t->model);
	const struct top_group *groups = top_model_groups(t->model, &n);
	const struct top_row *rows = top_model_rows(t->model, &n);

	if (titles) {
		for (unsigned c = 0; c < columns->count; c++)
			buf_printf(b, "%*s ", width(&columns->column[c]), columns->column[c].title);
		buf_printf(b, " %s\n", columns->host ? "CGROUP" : "GROUP");
	}
	for (size_t i = 0; i < n; i++) {
		const struct top_group *g = &groups[rows[i].group];

		for (unsigned c = 0; c < columns->count; c++) {
			top_columns_text(&columns->column[c], g->cell[c].number, g->cell[c].value,
					 number, sizeof(number));
			buf_printf(b, "%*s ", width(&columns->column[c]), number);
		}
		buf_char(b, ' ');
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

/* Says which keys there are. Returns EXIT_USAGE. */
static int bad_sort(char **argv, const char *key, const struct top_columns *columns)
{
	struct buf b = BUF_INIT;

	for (unsigned c = 0; c < columns->count; c++)
		buf_printf(&b, "%s, ", columns->column[c].key);
	buf_str(&b, "or name");
	buf_char(&b, '\0');
	options_bad(argv, "--sort", key, b.error ? "a column" : b.data);
	buf_free(&b);
	return EXIT_USAGE;
}

static int run(struct top *t, char **argv, const struct open_options *open, const char *sort,
	       const char *filter, bool plain)
{
	int r, by = 0;

	if (t->tables || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		plain = true;

	if (!t->tables)
		t->tables = isatty(STDOUT_FILENO) ? FOREVER : 1;
	r = passes_open(open, &t->passes);
	if (r < 0)
		return EXIT_FAILED;
	if (sort)
		by = top_columns_find(&t->passes.columns, sort);
	if (by == -ENOENT) {
		r = bad_sort(argv, sort, &t->passes.columns);
		passes_close(&t->passes);
		return r;
	}
	open_view_path(&t->passes.open, t->passes.open.target, t->root, sizeof(t->root));
	r = top_model_new(&t->model);
	if (r < 0) {
		complain(t->root, strerror(-r));
		passes_close(&t->passes);
		return EXIT_FAILED;
	}
	top_model_sort(t->model, by, false);
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
	const char *filter = NULL, *sort = NULL;
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
			sort = optarg;
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
	if (sort && (!open.segment || !strcmp(open.segment, WHERE_DEFAULT))) {
		static struct top_columns host; /* known before anything is opened */

		top_columns_host(NULL, 0, &host);
		if (top_columns_find(&host, sort) == -ENOENT)
			return bad_sort(argv, sort, &host);
	}
	return run(&t, argv, &open, sort, filter, plain);
}
