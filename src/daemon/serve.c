/* SPDX-License-Identifier: MIT */
/* `freshet serve`: its command line, and putting the daemon together and taking it apart. */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/exits.h"
#include "base/where.h"
#include "daemon/config.h"
#include "daemon/listen.h"
#include "daemon/loop.h"
#include "daemon/notify.h"
#include "daemon/say.h"
#include "daemon/serve.h"
#include "view/guard.h"

static const char usage[] =
	"Usage: freshet serve [OPTION]...\n"
	"Collects the numbers of all cgroups and serves them: a segment in shared memory, "
	"/metrics,\n"
	"/api/v1/groups, /healthz and a page at /.\n\n"
	"  --root DIR         cgroup to start at (the whole cgroup2 hierarchy)\n"
	"  --source SOURCE    auto, bpf or files (auto)\n"
	"  --interval TIME    between passes (1s)\n"
	"  --listen ADDRESS   where to serve HTTP (127.0.0.1:9753); port 0 takes any free one\n"
	"  --segment NAME     of the segment, or a file name with a slash in it (host)\n"
	"  --segment-dirs DIRS  more directories of programs' segments, ':' between them;\n"
	"                     whoever owns the segments\n"
	"  --max-groups N     room in the segment (65536)\n"
	"  --max-cpu PERCENT  of one CPU for passes that clients ask for (10)\n"
	"  --config FILE      lines \"option = value\"; the command line comes before it\n"
	"  --help\n";

enum { OPTION_CONFIG = 1, OPTION_HELP, OPTION_SET };

static const struct option long_options[] = {
	{ "config", required_argument, NULL, OPTION_CONFIG },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "root", required_argument, NULL, OPTION_SET },
	{ "source", required_argument, NULL, OPTION_SET },
	{ "interval", required_argument, NULL, OPTION_SET },
	{ "listen", required_argument, NULL, OPTION_SET },
	{ "segment", required_argument, NULL, OPTION_SET },
	{ "segment-dirs", required_argument, NULL, OPTION_SET },
	{ "max-groups", required_argument, NULL, OPTION_SET },
	{ "max-cpu", required_argument, NULL, OPTION_SET },
	{ NULL, 0, NULL, 0 },
};

static int usage_error(const char *why)
{
	say("freshet serve: %s", why);
	say("Try 'freshet serve --help'.");
	return EXIT_USAGE;
}

static int failed(const char *what, int error)
{
	say("freshet serve: %s: %s", what, strerror(-error));
	return EXIT_FAILED;
}

/* Exit code, or -1 to go on. The file first, so that the command line has the last word. */
static int read_options(int argc, char **argv, struct config *config)
{
	char why[512];
	int option, which, code = -1;

	opterr = 0; /* getopt's own messages would write any byte raw */
	for (int round = 0; round < 2 && code < 0; round++) {
		optind = 0;
		while (code < 0 &&
		       (option = getopt_long(argc, argv, ":", long_options, &which)) != -1) {
			if (option == '?' || option == ':') {
				snprintf(why, sizeof(why), "\"%.64s\": %s", argv[optind - 1],
					 option == ':' ? "wants an argument" : "no such option");
				code = usage_error(why);
			} else if (option == OPTION_HELP) {
				fputs(usage, stdout);
				code = fflush(stdout) ? failed("cannot write", -errno) : EXIT_OK;
			} else if (round == 0 && option == OPTION_CONFIG) {
				if (config_read(config, optarg, why, sizeof(why)) < 0) {
					say("freshet serve: %s", why);
					code = EXIT_USAGE;
				}
			} else if (round == 1 && option == OPTION_SET &&
				   config_set(config, long_options[which].name, optarg, why,
					      sizeof(why)) < 0) {
				code = usage_error(why);
			}
		}
	}
	if (code < 0 && optind < argc) {
		snprintf(why, sizeof(why), "\"%.64s\": no such argument", argv[optind]);
		code = usage_error(why);
	}
	return code;
}

/* Clients and a descriptor per cgroup file: as many as the administrator lets us have. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Segment, source, first pass. Exit code, or -1 to go on. */
static int open_collector(struct daemon *d, const struct config *config, char *why, size_t why_size)
{
	struct place *p = &d->place;
	int r;

	p->named = !strchr(config->segment, '/');
	p->options = (struct collector_options){
		.size = sizeof(p->options),
		.root = config->root[0] ? config->root : NULL,
		.source = (enum collector_source)config->source,
		.segment = p->path,
		.socket = p->socket,
		.producer = SERVE_PRODUCER,
		.max_groups = config->max_groups,
		.interval_ns = config->interval_ns,
	};
	r = place_directory(p);
	if (r < 0)
		return failed(p->path, r);
	if (refresh_socket_name(p->path, p->socket, sizeof(p->socket)) < 0)
		return failed(p->path, -ENAMETOOLONG);
	r = collector_open(&p->options, &d->collector, why, why_size);
	if (r < 0) {
		say("freshet serve: %s", why);
		return EXIT_FAILED;
	}
	place_socket(d);
	own_init(&d->own, collector_source_name(d->collector));
	demand_init(&d->demand, config->max_cpu, clock_ns());
	return loop_pass(d, 0) < 0 ? EXIT_FAILED : -1;
}

static void render_own(void *context, struct buf *out, enum metrics_format format)
{
	struct daemon *d = context;

	own_render(&d->own, out, format);
}

static int run(struct daemon *d, const struct config *config)
{
	char why[512], where[64], source[512], interval[32], left_out[160] = "";
	const char *segment = d->place.path;
	struct utsname host;
	struct collector_stats stats;
	int fd, r, code;

	r = where_segment(config->segment, d->place.path, sizeof(d->place.path));
	if (r == -EPERM) {
		say("freshet serve: /tmp/freshet-%u is somebody else's: set XDG_RUNTIME_DIR, or "
		    "give --segment a file name with a slash in it",
		    (unsigned)geteuid());
		return EXIT_FAILED;
	}
	if (r < 0)
		return failed(config->segment, r);
	code = open_collector(d, config, source, sizeof(source));
	if (code >= 0)
		return code;
	fd = listen_on(config->listen, where, sizeof(where), why, sizeof(why));
	if (fd < 0) {
		say("freshet serve: %s", why);
		return EXIT_FAILED;
	}

	uname(&host);
	collector_stats(d->collector, &stats);
	snprintf(interval, sizeof(interval), "%g s", (double)config->interval_ns / 1e9);
	if (stats.left_out)
		snprintf(left_out, sizeof(left_out), "; " LEFT_OUT, stats.left_out,
			 config->max_groups);
	snprintf(why, sizeof(why), "%u groups in %.2f ms%s", stats.groups,
		 (double)stats.last_ns / 1e6, left_out);
	const struct http_fact facts[] = {
		{ "Host", host.nodename }, { "Kernel", host.release },
		{ "Source", source },      { "Root", collector_root(d->collector) },
		{ "First pass", why },     { "Interval", interval },
		{ "Segment", segment },    { "Version", FRESHET_VERSION },
	};
	struct http_options options = {
		.fd = fd,
		.view = d->view,
		.interval_ns = config->interval_ns,
		.name = strrchr(segment, '/') + 1,
		.prefix = "cgroup",
		.facts = facts,
		.nfacts = sizeof(facts) / sizeof(*facts),
		.want = loop_want,
		.metrics = render_own,
		.context = d,
	};
	r = programs_new(config->segment_dirs, &d->programs);
	if (r == 0)
		r = http_start(&options, &d->http);
	if (r < 0)
		return failed("HTTP server", r);

	programs_look(d->programs, d);

	malloc_trim(0);
	say("freshet %s: %s; root %s, %s; http://%s/, segment %s", FRESHET_VERSION, source,
	    collector_root(d->collector), why, where, segment);
	notify("READY=1\nSTATUS=%s on http://%s/", why, where);
	r = loop_run(d);
	notify("STOPPING=1");
	http_stop(d->http);
	return r < 0 ? failed("waiting for events", r) : EXIT_OK;
}

/* Somebody with the right to has cut a segment short, and we touched what is not there now. Of another
 * program's segment that is its own fault. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
	static const char text[] = "freshet serve: SIGBUS: the segment was truncated\n";

	if (guard_fault(info))
		return;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(EXIT_FAILED);
	_exit(EXIT_FAILED);
}

int cmd_serve(int argc, char **argv)
{
	struct daemon d = { .collector = NULL };
	const struct sigaction on_bus = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	struct config config;
	int code, r;

	config_defaults(&config);
	code = read_options(argc, argv, &config);
	if (code >= 0)
		return code;

	/* One arena, and large blocks given back at once: what a rendering took is free again. */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	mallopt(M_TRIM_THRESHOLD, 256 * 1024);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* then a limit is an error that can be said */
	sigaction(SIGBUS, &on_bus, NULL);
	raise_file_limit();

	d.interval_ns = config.interval_ns;
	r = loop_init(&d);
	code = r < 0 ? failed("event loop", r) : run(&d, &config);
	programs_free(d.programs);
	refresh_close(d.refresh);
	freshet_detach(d.view);
	collector_close(d.collector);
	if (d.own.source)
		own_destroy(&d.own);
	place_leave(&d.place);
	loop_destroy(&d);
	return code;
}
