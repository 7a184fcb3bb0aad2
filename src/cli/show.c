/* SPDX-License-Identifier: MIT */
/* freshet show: all numbers of one group, under the kernel's own keys. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/duration.h"
#include "cli/commands.h"
#include "cli/open_view.h"
#include "cli/options.h"
#include "view/json.h"
#include "view/safe.h"

static const char help[] =
	"Usage: freshet show PATH [OPTION]...\n"
	"All numbers of the cgroup at PATH, under the kernel's own keys and in their units.\n\n"
	"      --segment NAME   numbers of another producer: a name, or a file if it has a '/'\n"
	"      --json           one JSON object\n"
	"      --max-age TIME   numbers taken at most this long ago (100ms), waiting if need be\n"
	"  -h, --help\n";

/* As cpu.stat prints it: whole microseconds where the key says so. */
static void add_value(struct buf *b, const struct freshet_stat *stat, uint64_t value)
{
	if (stat->unit == FRESHET_NANOSECONDS)
		value /= 1000;
	if (stat->kind == FRESHET_GAUGE)
		buf_i64(b, (int64_t)value);
	else
		buf_u64(b, value);
}

static void add_text(struct buf *b, const struct freshet_stat *stats, size_t nstats,
		     const char *path, uint64_t id, uint64_t age_ns, const uint64_t *values,
		     uint64_t present)
{
	int width = 10;

	for (size_t i = 0; i < nstats; i++)
		if (present >> i & 1 && (int)strlen(stats[i].key) > width)
			width = (int)strlen(stats[i].key);
	buf_printf(b, "%-*s ", width, "path");
	safe_name(b, path, false);
	buf_printf(b, "\n%-*s %llu\n", width, "id", (unsigned long long)id);
	buf_printf(b, "%-*s %llu\n", width, "age_us", (unsigned long long)age_ns / 1000);
	for (size_t i = 0; i < nstats; i++) {
		if (!(present >> i & 1))
			continue;
		buf_printf(b, "%-*s ", width, stats[i].key);
		add_value(b, &stats[i], values[i]);
		buf_char(b, '\n');
	}
}

static int show(const struct open_view *o, bool json)
{
	uint64_t values[FRESHET_MAX_STATS], present, age_ns;
	char path[2 * FRESHET_PATH_MAX];
	const struct freshet_stat *stats;
	struct freshet_group group;
	struct freshet_info info;
	struct buf b = BUF_INIT;
	size_t nstats;
	int r;

	stats = freshet_stats(o->view, &nstats);
	r = freshet_find(o->view, o->target, &group);
	if (r == 0)
		r = freshet_info(o->view, group, &info);
	if (r == 0)
		r = freshet_read_total(o->view, group, 0, (unsigned)nstats, values, &present, NULL);
	if (r == 0)
		r = freshet_age(o->view, &age_ns);
	open_view_path(o, o->target, path, sizeof(path));
	if (r < 0)
		return complain(path, r == -ENOENT ? "it was removed just now" : strerror(-r));
	(json ? json_group : add_text)(&b, stats, nstats, path, info.id, age_ns, values, present);
	if (b.error)
		complain(path, strerror(-b.error));
	else
		fwrite(b.data, 1, b.len, stdout);
	r = b.error ? EXIT_FAILED : options_written();
	buf_free(&b);
	return r;
}

int cmd_show(int argc, char **argv)
{
	static const struct option options[] = { { "segment", required_argument, NULL, 's' },
						 { "json", no_argument, NULL, 'j' },
						 { "max-age", required_argument, NULL, 'm' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	struct open_options open = { .max_age_ns = OPEN_ANY_AGE };
	struct open_view o;
	bool json = false;
	int c, r;

	options_begin(argv);
	while ((c = options_next(argc, argv, "h", options)) != -1) {
		switch (c) {
		case 's':
			if (options_segment(argv, optarg, &open.segment))
				return EXIT_USAGE;
			break;
		case 'j':
			json = true;
			break;
		case 'm':
			if (duration_parse(optarg, &open.max_age_ns))
				return options_bad(argv, "--max-age", optarg,
						   "a time such as 100ms");
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
	if (!open.path)
		return options_wrong(argv, "which PATH?");
	if (open_view(&open, &o) < 0)
		return EXIT_FAILED;
	r = show(&o, json);
	open_view_close(&o);
	return r;
}
