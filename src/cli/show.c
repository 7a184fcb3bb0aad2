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
#include "view/format.h"
#include "view/histogram.h"
#include "view/json.h"
#include "view/safe.h"

static const char help[] =
	"Usage: freshet show PATH [OPTION]...\n"
	"All numbers of the cgroup at PATH, under the kernel's own keys and in their units; or of "
	"a\n"
	"program's group.\n\n"
	"      --segment NAME   numbers of another producer: a name, or a file if it has a '/'\n"
	"      --json           one JSON object\n"
	"      --max-age TIME   numbers taken at most this long ago (100ms), waiting if need be\n"
	"  -h, --help\n";

/* One group's numbers, with the names of the segment's. */
struct shown {
	struct json_schema schema;
	char path[2 * FRESHET_PATH_MAX];
	uint64_t id, age_ns, present;
	uint64_t values[FRESHET_MAX_STATS + FRESHET_MAX_WORDS];
};

static void add_key(struct buf *b, int width, const char *key, const char *suffix)
{
	size_t begin = b->len;

	safe_name(b, key, false);
	buf_str(b, suffix);
	do {
		buf_char(b, ' ');
	} while (!b->error && b->len < begin + (size_t)width + 1);
}

/* In the unit that the key says; "inf" for what has no bound. */
static void add_bound(struct buf *b, const struct freshet_histogram *h, uint64_t value)
{
	unsigned divisor = format_divisor(h->key, h->unit);

	if (value == UINT64_MAX) {
		buf_str(b, "inf\n");
		return;
	}
	format_exact(b, value, divisor);
	buf_char(b, '\n');
}

static void add_histogram(struct buf *b, int width, const struct freshet_histogram *h,
			  const uint64_t *words)
{
	struct histogram_summary s;

	histogram_summary(h, words, &s);
	add_key(b, width, h->key, "_count");
	buf_printf(b, "%llu\n", (unsigned long long)s.count);
	add_key(b, width, h->key, "_sum");
	add_bound(b, h, s.sum);
	if (!s.count)
		return;
	add_key(b, width, h->key, "_mean");
	buf_printf(b, "%.6g\n", s.mean / format_divisor(h->key, h->unit));
	add_key(b, width, h->key, "_p50");
	add_bound(b, h, s.p50);
	add_key(b, width, h->key, "_p90");
	add_bound(b, h, s.p90);
	add_key(b, width, h->key, "_p99");
	add_bound(b, h, s.p99);
	add_key(b, width, h->key, "_max");
	add_bound(b, h, s.max);
}

static void add_text(struct buf *b, const struct shown *s)
{
	const struct json_schema *c = &s->schema;
	int width = 10;

	for (size_t i = 0; i < c->nstats; i++)
		if (s->present >> i & 1 && (int)strlen(c->stats[i].key) > width)
			width = (int)strlen(c->stats[i].key);
	for (size_t i = 0; i < c->nhistograms; i++)
		if ((int)strlen(c->histograms[i].key) + 6 > width)
			width = (int)strlen(c->histograms[i].key) + 6;
	add_key(b, width, "path", "");
	safe_name(b, s->path, false);
	buf_char(b, '\n');
	add_key(b, width, "id", "");
	buf_printf(b, "%llu\n", (unsigned long long)s->id);
	add_key(b, width, "age_us", "");
	buf_printf(b, "%llu\n", (unsigned long long)s->age_ns / 1000);
	for (size_t i = 0; i < c->nstats; i++) {
		if (!(s->present >> i & 1))
			continue;
		add_key(b, width, c->stats[i].key, "");
		format_stat(b, &c->stats[i], s->values[i]);
		buf_char(b, '\n');
	}
	for (size_t i = 0; i < c->nhistograms; i++)
		add_histogram(b, width, &c->histograms[i], s->values + c->histograms[i].word);
}

static int read_group(const struct open_view *o, struct shown *s)
{
	struct json_schema *c = &s->schema;
	struct freshet_group group;
	struct freshet_info info;
	int r;

	c->stats = freshet_stats(o->view, &c->nstats);
	c->histograms = freshet_histograms(o->view, &c->nhistograms);
	r = freshet_find(o->view, o->target, &group);
	if (r == 0)
		r = freshet_info(o->view, group, &info);
	if (r == 0)
		r = freshet_read(o->view, group, 0, (unsigned)c->nstats, s->values, &s->present,
				 NULL);
	for (unsigned i = 0; i < c->nhistograms && r == 0; i++) {
		uint64_t *buckets = s->values + c->histograms[i].word;

		r = freshet_read_histogram(o->view, group, i, buckets,
					   buckets + c->histograms[i].buckets);
	}
	if (r == 0)
		r = freshet_age(o->view, &s->age_ns);
	if (r == 0)
		s->id = info.id;
	return r;
}

static int show(const struct open_view *o, bool json)
{
	static struct shown s; /* large */
	struct buf b = BUF_INIT;
	int r = read_group(o, &s);

	open_view_path(o, o->target, s.path, sizeof(s.path));
	if (r < 0)
		return complain(s.path, r == -ENOENT ? "it was removed just now" : strerror(-r));
	if (json)
		json_group(&b, &s.schema, s.path, s.id, s.age_ns, s.values, s.present);
	else
		add_text(&b, &s);
	if (b.error)
		complain(s.path, strerror(-b.error));
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
