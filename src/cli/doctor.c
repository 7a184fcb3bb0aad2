/* SPDX-License-Identifier: MIT */
/*
 * freshet doctor: what this machine allows, one line a fact, and what follows from it.
 * Facts come from doctor_facts.c; this file opens sources and the segment, and prints.
 */
#include "cli/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/where.h"
#include "cli/commands.h"
#include "cli/found.h"
#include "cli/open_view.h"
#include "cli/options.h"
#include "source/collector.h"
#include "source/source.h"
#include "view/json.h"
#include "view/safe.h"
#include "view/segments.h"

#define ANSWER_NS 2000000000ull /* how long a serve may take to answer */

static const char help[] = "Usage: freshet doctor [--json]\n"
			   "What this machine allows, one line a fact, and what follows. Exit code "
			   "0: freshet can serve\n"
			   "here; 1: it cannot.\n\n"
			   "      --json   one JSON object\n"
			   "  -h, --help\n";

static const char *const state_names[] = { [FACT_OK] = "ok", [FACT_NO] = "no", [FACT_NA] = "n.a." };

void fact(struct facts *f, enum fact_state state, const char *name, const char *fmt, ...)
{
	struct fact *to;
	va_list ap;

	if (f->count == FACTS_MAX)
		return;
	to = &f->fact[f->count++];
	to->state = state;
	to->name = name;
	va_start(ap, fmt);
	vsnprintf(to->text, sizeof(to->text), fmt, ap);
	va_end(ap);
}

/* A source by itself: whether it opens. */
static void fact_source(struct facts *f, const struct cgroup_mount *mount, const char *name,
			int (*open_source)(const struct source_options *, struct source **, char *,
					   size_t))
{
	struct source_options options = { .root = mount->path,
					  .is_top = mount->is_top,
					  .max_groups = 65536 };
	struct source *source;
	char why[512] = "";
	int r = open_source(&options, &source, why, sizeof(why));

	if (r < 0) {
		fact(f, FACT_NO, name, "%s", why[0] ? why : strerror(-r));
		return;
	}
	source->ops->free(source);
	fact(f, FACT_OK, name, "it opens");
}

/* What serve would do: open by itself and make a pass. */
static void fact_serve(struct facts *f)
{
	struct collector_options options = { .size = sizeof(options),
					     .source = COLLECT_AUTO,
					     .producer = "freshet doctor" };
	struct collector_stats stats;
	struct collector *c;
	char why[512] = "";
	int r = collector_open(&options, &c, why, sizeof(why));

	if (r < 0) {
		fact(f, FACT_NO, "serve", "it cannot: %s", why[0] ? why : strerror(-r));
		return;
	}
	r = collector_pass(c);
	collector_stats(c, &stats);
	if (r < 0) {
		fact(f, FACT_NO, "serve", "it cannot: a pass (%s) failed: %s", why, strerror(-r));
	} else {
		f->can_serve = true;
		f->source = collector_source_name(c);
		fact(f, FACT_OK, "serve", "it can, by %s; one pass over %u groups took %.2f ms",
		     why, stats.groups, (double)stats.last_ns / 1e6);
	}
	collector_close(c);
}

static void fact_segment(struct facts *f)
{
	struct freshet_producer_info info;
	struct freshet_view *view;
	uint64_t age_ns;
	char file[FRESHET_PATH_MAX];
	int r = where_segment(WHERE_DEFAULT, file, sizeof(file)), stopped;

	if (r == 0)
		r = open_view_attach(file, &view);
	if (r == -ENOENT && where_system_segment(WHERE_DEFAULT, file, sizeof(file)) == 0)
		r = open_view_attach(file, &view);
	if (r < 0) {
		fact(f, r == -ENOENT ? FACT_NA : FACT_NO, "segment",
		     r == -ENOENT ? "no serve is running: ls, show and top collect in-process"
				  : "%s cannot be read: %s",
		     file, strerror(-r));
		return;
	}
	stopped = open_view_stopped(view, ANSWER_NS);
	r = stopped < 0 ? stopped : freshet_producer_info(view, &info);
	if (r == 0)
		r = freshet_age(view, &age_ns);
	if (r < 0)
		fact(f, FACT_NO, "segment", "%s: %s", file, strerror(-r));
	else if (freshet_producer(view) != FRESHET_ALIVE)
		fact(f, FACT_NO, "segment", "%s: its serve (pid %d) has ended", file, info.pid);
	else if (stopped)
		fact(f, FACT_NO, "segment", "%s: its serve (pid %d) stopped publishing %.1f s ago",
		     file, info.pid, (double)age_ns / 1e9);
	else if (info.overflowed)
		fact(f, FACT_NO, "segment", "%s: no room for %llu groups (--max-groups is %u)",
		     file, (unsigned long long)info.overflowed, info.max_groups);
	else
		fact(f, FACT_OK, "segment", "%s: kept by %s (pid %d), %.1f s old", file, info.name,
		     info.pid, (double)age_ns / 1e9);
	freshet_detach(view);
}

/* Segments of programs, and which of them cannot be read. */
static void fact_programs(struct facts *f)
{
	struct buf names _cleanup_(buf_free) = BUF_INIT;
	struct found *all _free_ = NULL;
	size_t count, live = 0, bad = 0;
	int r = found_all(&all, &count);

	if (r < 0) {
		fact(f, FACT_NO, "programs", "%s", strerror(-r));
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (all[i].state == FOUND_UNREADABLE) {
			/* of another user, who need not let us */
			bad += all[i].error != -EACCES && all[i].error != -EPERM;
			buf_printf(&names, "; %s: %s", all[i].file, segments_error(all[i].error));
		} else if (all[i].state == FOUND_LIVE) {
			live++;
			buf_printf(&names, "; %s: %s, pid %d", all[i].name, all[i].info.name,
				   (int)all[i].info.pid);
		}
	}
	fact(f,
	     bad    ? FACT_NO
	     : live ? FACT_OK
		    : FACT_NA,
	     "programs", "%zu with a segment of their own%.*s", live, (int)names.len,
	     names.len ? names.data : "");
}

static void add_text(struct buf *b, const struct facts *f)
{
	for (size_t i = 0; i < f->count; i++) {
		buf_printf(b, "%-4s  %-12s  ", state_names[f->fact[i].state], f->fact[i].name);
		safe_name(b, f->fact[i].text, false);
		buf_char(b, '\n');
	}
}

static void add_json(struct buf *b, const struct facts *f)
{
	buf_printf(b, "{\"can_serve\":%s,\"source\":", f->can_serve ? "true" : "false");
	if (f->source)
		json_string(b, f->source);
	else
		buf_str(b, "null");
	buf_str(b, ",\"checks\":[");
	for (size_t i = 0; i < f->count; i++) {
		buf_printf(b, "%s\n{\"name\":\"%s\",\"state\":\"%s\",\"text\":", i ? "," : "",
			   f->fact[i].name, state_names[f->fact[i].state]);
		json_string(b, f->fact[i].text);
		buf_char(b, '}');
	}
	buf_str(b, "\n]}\n");
}

static int examine(bool json)
{
	static struct facts facts;
	struct cgroup_mount mount;
	struct buf b = BUF_INIT;
	int r;

	if (facts_cgroup(&facts, &mount) == 0) {
		facts_kernel(&facts);
		fact_source(&facts, &mount, "source bpf", source_bpf_open);
		fact_source(&facts, &mount, "source files", source_files_open);
		fact_serve(&facts);
	} else {
		facts_kernel(&facts);
	}
	fact_segment(&facts);
	fact_programs(&facts);
	facts_program(&facts);
	(json ? add_json : add_text)(&b, &facts);
	if (b.error)
		complain("doctor", strerror(-b.error));
	else
		fwrite(b.data, 1, b.len, stdout);
	r = b.error ? EXIT_FAILED : options_written();
	buf_free(&b);
	return r ? r : facts.can_serve ? EXIT_OK : EXIT_FAILED;
}

int cmd_doctor(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	bool json = false;
	int c;

	options_begin(argv);
	while ((c = options_next(argc, argv, "h", options)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return options_written();
		default:
			return EXIT_USAGE;
		}
	}
	if (optind < argc)
		return options_wrong(argv, "what is '%s' for?", argv[optind]);
	return examine(json);
}
