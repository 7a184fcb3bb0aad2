/* SPDX-License-Identifier: MIT */
/* freshet ls: the groups of a subtree and the CPU time each has used. To a terminal a tree, else a
 * flat list for programs, both sorted by name. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/ls_segments.h"
#include "cli/open_view.h"
#include "cli/options.h"
#include "cli/passes.h"
#include "view/format.h"
#include "view/json.h"
#include "view/safe.h"

#define OLD_NS (2 * NSEC_PER_SEC) /* people are told so */

static const char help[] =
	"Usage: freshet ls [PATH] [OPTION]...\n"
	"Lists the cgroups at and below PATH with the CPU time they used: to a terminal as a "
	"tree,\n"
	"else one 'usage_usec PATH' a line. Of a program's groups, the first of its numbers.\n\n"
	"      --depth N        N levels below PATH only\n"
	"      --segment NAME   groups of another producer: a name, or a file if it has a '/'\n"
	"      --segments       instead: the segments there are, and whose they are\n"
	"      --json           one JSON object, all numbers\n"
	"  -h, --help\n";

/* What is listed of a group: CPU time, or the first number of a program's. */
static void value_text(const struct top_model *m, const struct top_group *g, char *buf, size_t size)
{
	const struct top_column *c = top_model_columns(m)->column;
	struct top_column total = { .kind = TOP_VALUE, .unit = c->unit };

	if (top_model_columns(m)->host)
		total.kind = TOP_TOTAL;
	top_columns_text(&total, g->cell[0].present ? (double)(int64_t)g->cell[0].value : NAN,
			 g->cell[0].value, buf, size);
}

static void add_tree(struct buf *b, const struct open_view *o, const struct top_model *m,
		     uint32_t depth)
{
	char number[32], path[2 * FRESHET_PATH_MAX];
	size_t n;
	const struct top_group *groups = top_model_groups(m, &n);
	const struct top_row *rows = top_model_rows(m, &n);
	bool ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	const struct top_columns *columns = top_model_columns(m);
	bool host = columns->host;
	int title = host ? 0 : (int)strlen(columns->column[0].key), wide = title > 9 ? title : 9;

	buf_printf(b, "%*s  %s\n", wide, host ? "CPU TIME" : columns->column[0].key,
		   host ? "CGROUP" : "GROUP");
	open_view_path(o, o->target, path, sizeof(path));
	for (size_t i = 0; i < n; i++) {
		const struct top_group *g = &groups[rows[i].group];

		if (g->depth > depth)
			continue;
		value_text(m, g, number, sizeof(number));
		buf_printf(b, "%*s  ", wide, number);
		top_model_guides(m, i, UINT32_MAX, ascii, b);
		safe_name(b, i ? g->name : path, ascii);
		buf_char(b, '\n');
	}
}

static void add_list(struct buf *b, const struct open_view *o, const struct top_model *m,
		     uint32_t depth)
{
	char path[2 * FRESHET_PATH_MAX], below[FRESHET_PATH_MAX];
	size_t n, len;
	const struct top_group *groups = top_model_groups(m, &n);
	const struct top_row *rows = top_model_rows(m, &n);

	open_view_path(o, o->target, path, sizeof(path));
	len = strcmp(path, "/") ? strlen(path) : 0;
	for (size_t i = 0; i < n; i++) {
		const struct top_group *g = &groups[rows[i].group];

		if (g->depth > depth)
			continue;
		if (i) {
			top_model_path(m, rows[i].group, below, sizeof(below));
			snprintf(path + len, sizeof(path) - len, "%s", below);
		}
		if (!g->cell[0].present)
			buf_char(b, '-');
		else if (top_model_columns(m)->host)
			buf_u64(b, g->cell[TOP_USAGE].value / NSEC_PER_USEC);
		else if (top_model_columns(m)->column[0].kind == TOP_VALUE)
			buf_i64(b, (int64_t)g->cell[0].value);
		else
			buf_u64(b, g->cell[0].value);
		buf_char(b, ' ');
		safe_name(b, path, false);
		buf_char(b, '\n');
	}
}

/*
 * json_groups() makes paths from the entries above; what the segment lacks above its root (prefix)
 * is put before them as entries of its own.
 */
static int add_json(struct buf *b, const struct passes *p, uint32_t depth)
{
	char prefix[FRESHET_PATH_MAX];
	size_t count = freshet_snapshot_count(p->snapshot), above = 0, at;
	const struct freshet_entry *from = freshet_snapshot_entries(p->snapshot);
	struct freshet_entry *entries;
	struct freshet_moment moment;
	struct json_schema schema;
	char *name;

	strcpy(prefix, p->open.prefix);
	for (const char *c = prefix; *c; c++)
		above += *c == '/';
	entries = calloc(count + above, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	entries[0].name = "";
	at = 0;
	for (name = strtok(prefix, "/"); name; name = strtok(NULL, "/")) {
		/* entry `at` is the root or the ancestor named before this one */
		at++;
		entries[at].name = name;
		entries[at].parent = (uint32_t)at - 1;
	}
	for (size_t i = 0; i < count; i++) {
		struct freshet_entry *to = &entries[i + above];
		const char *own = to->name;

		*to = from[i];
		to->parent += (uint32_t)above;
		if (!i) {
			to->parent = above ? (uint32_t)above - 1 : 0;
			to->name = above ? own : "";
		}
	}
	schema.stats = freshet_stats(p->open.view, &schema.nstats);
	schema.histograms = freshet_histograms(p->open.view, &schema.nhistograms);
	freshet_snapshot_moment(p->snapshot, &moment);
	json_head(b, NULL, moment.pass, clock_ns() - moment.begin_ns, p->left_out);
	json_groups(b, &schema, entries, p->first + above, depth);
	free(entries);
	return b->error;
}

static int render(struct buf *b, const struct passes *p, struct top_model *m, uint32_t depth,
		  bool json)
{
	top_model_sort(m, TOP_BY_NAME, false);
	if (json)
		return add_json(b, p, depth);
	if (isatty(STDOUT_FILENO))
		add_tree(b, &p->open, m, depth);
	else
		add_list(b, &p->open, m, depth);
	return b->error;
}

static int list(struct passes *p, uint32_t depth, bool json)
{
	char path[2 * FRESHET_PATH_MAX];
	struct buf b = BUF_INIT;
	struct top_model *m = NULL;
	int r = top_model_new(&m);

	if (r == 0)
		r = passes_take(p, m);
	if (r >= 0) /* what went wrong since open_view() leaves nothing to be taken for current */
		r = p->stale[0] ? -ESTALE : render(&b, p, m, depth, json);
	if (r < 0) {
		open_view_path(&p->open, p->open.target, path, sizeof(path));
		r = complain(path, p->stale[0] ? p->stale : strerror(-r));
	} else {
		fwrite(b.data, 1, b.len, stdout);
		r = options_written();
		passes_say_left_out(p);
		if (!json && isatty(STDOUT_FILENO) && passes_age(p) > OLD_NS)
			fprintf(stderr, "freshet: these numbers are %.1f s old\n",
				(double)passes_age(p) / 1e9);
	}
	buf_free(&b);
	top_model_free(m);
	return r;
}

int cmd_ls(int argc, char **argv)
{
	static const struct option options[] = { { "segment", required_argument, NULL, 's' },
						 { "segments", no_argument, NULL, 'S' },
						 { "json", no_argument, NULL, 'j' },
						 { "depth", required_argument, NULL, 'd' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	struct open_options open = { .max_age_ns = OPEN_ANY_AGE };
	uint32_t depth = JSON_ALL_DEPTHS;
	struct passes p;
	bool json = false, segments = false;
	int c, r;

	setlocale(LC_CTYPE, "");
	options_begin(argv);
	while ((c = options_next(argc, argv, "h", options)) != -1) {
		switch (c) {
		case 's':
			if (options_segment(argv, optarg, &open.segment))
				return EXIT_USAGE;
			break;
		case 'S':
			segments = true;
			break;
		case 'j':
			json = true;
			break;
		case 'd':
			if (options_count(optarg, 0, UINT32_MAX - 1, &depth))
				return options_bad(argv, "--depth", optarg, "a number of levels");
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
	if (segments) {
		if (open.path || open.segment || depth != JSON_ALL_DEPTHS)
			return options_wrong(argv, "--segments goes with --json only");
		return ls_segments(json);
	}
	if (passes_open(&open, &p) < 0)
		return EXIT_FAILED;
	r = list(&p, depth, json);
	passes_close(&p);
	return r;
}
