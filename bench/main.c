/* SPDX-License-Identifier: MIT */
/* freshet-bench: picks the bench. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "benches.h"
#include "report.h"
#include "supervise.h"

enum { EXIT_GOOD = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct bench {
	const char *name;
	int (*run)(bool quick);
	bool cgroups;   /* makes some */
	bool simulated; /* measures nothing */
	const char *what;
	/* Its own options: each takes a value, which option() gets. 0, or -1 after a message. */
	const struct option *options;
	int (*option)(const char *name, const char *value);
	const char *help; /* of them, lines */
};

static const struct bench benches[] = {
	{ .name = "pass",
	  .run = bench_pass,
	  .cgroups = true,
	  .what = "reading the CPU numbers of all cgroups: text, BPF, segment" },
	{ .name = "scrape",
	  .run = bench_scrape,
	  .cgroups = true,
	  .what = "the daemon's /metrics, its memory and CPU time" },
	{ .name = "update",
	  .run = bench_update,
	  .what = "updating a program's numbers, beside other ways to count" },
	{ .name = "read", .run = bench_read, .what = "reading a program's numbers" },
	{ .name = "designs",
	  .run = bench_all_designs,
	  .what = "the designs of the debate, side by side" },
	{ .name = "hammer",
	  .run = bench_hammer,
	  .cgroups = true,
	  .what = "many pollers of this kernel's cgroups, in several ways" },
	{ .name = "barriers",
	  .run = bench_barriers,
	  .what = "what fences, atomics and masked interrupts cost" },
	{ .name = "timeline",
	  .run = bench_timeline,
	  .simulated = true,
	  .what = "who runs and who waits, simulated exactly",
	  .options = timeline_options,
	  .option = timeline_option,
	  .help = timeline_help },
};
#define NBENCHES (sizeof(benches) / sizeof(benches[0]))

static const struct bench *chosen;
static bool quick, json;

static void usage(FILE *to)
{
	fprintf(to, "Usage: freshet-bench NAME [--quick] [--json]\n"
		    "Measures Freshet. pass, scrape and hammer make cgroups and remove "
		    "them, and need root.\n\n");
	for (size_t i = 0; i < NBENCHES; i++)
		fprintf(to, "  %-9s %s\n", benches[i].name, benches[i].what);
	fprintf(to, "\n  --quick  fewer rounds, at most 50 s\n"
		    "  --json   the result as JSON\n"
		    "  --help, --version\n");
	for (size_t i = 0; i < NBENCHES; i++)
		if (benches[i].help)
			fprintf(to, "\nOf %s:\n%s", benches[i].name, benches[i].help);
}

static int run_chosen(void)
{
	int failed;

	report_begin(chosen->name, !chosen->simulated);
	failed = chosen->run(quick);
	failed |= report_print(json); /* what was measured before a failure, too */
	return failed ? EXIT_FAILED : EXIT_GOOD;
}

static int hint(void)
{
	fprintf(stderr, "Try 'freshet-bench --help'.\n");
	return EXIT_USAGE;
}

static const struct bench *find_bench(const char *name)
{
	for (size_t i = 0; i < NBENCHES; i++)
		if (!strcmp(name, benches[i].name))
			return &benches[i];
	return NULL;
}

enum { QUICK = 256, JSON, VERSION, OWN };
#define COMMON_OPTIONS                                                              \
	{ "quick", no_argument, NULL, QUICK }, { "json", no_argument, NULL, JSON }, \
		{ "help", no_argument, NULL, 'h' },                                 \
	{                                                                           \
		"version", no_argument, NULL, VERSION                               \
	}
#define MAX_OWN 16

/* The common options, and those of the bench that argv[1] names, if it does. */
static const struct option *options_for(const struct bench *b)
{
	static struct option all[4 + MAX_OWN + 1] = { COMMON_OPTIONS };

	for (size_t i = 0; b && b->options && b->options[i].name && i < MAX_OWN; i++) {
		all[4 + i] = b->options[i];
		all[4 + i].val = OWN;
	}
	return all;
}

int main(int argc, char **argv)
{
	const struct option *options;
	int c, index;

	chosen = argc > 1 ? find_bench(argv[1]) : NULL;
	options = options_for(chosen);
	while ((c = getopt_long(argc, argv, "h", options, &index)) != -1) {
		switch (c) {
		case QUICK:
			quick = true;
			break;
		case JSON:
			json = true;
			break;
		case OWN:
			if (chosen->option(options[index].name, optarg))
				return hint();
			break;
		case 'h':
			usage(stdout);
			return EXIT_GOOD;
		case VERSION:
			printf("freshet-bench %s\n", FRESHET_VERSION);
			return EXIT_GOOD;
		default:
			return hint();
		}
	}
	if (argc - optind != 1) {
		fprintf(stderr, "freshet-bench: name one bench\n");
		return hint();
	}
	chosen = find_bench(argv[optind]);
	if (!chosen) {
		fprintf(stderr, "freshet-bench: no bench '%s'\n", argv[optind]);
		return hint();
	}
	return supervise(run_chosen, chosen->cgroups);
}
