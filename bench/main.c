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
	bool cgroups; /* makes some */
	const char *what;
};

static const struct bench benches[] = {
	{ "pass", bench_pass, true, "reading the CPU numbers of all cgroups: text, BPF, segment" },
	{ "scrape", bench_scrape, true, "the daemon's /metrics, its memory and CPU time" },
	{ "update", bench_update, false,
	  "updating a program's numbers, beside other ways to count" },
	{ "read", bench_read, false, "reading a program's numbers" },
};
#define NBENCHES (sizeof(benches) / sizeof(benches[0]))

static const struct bench *chosen;
static bool quick, json;

static void usage(FILE *to)
{
	fprintf(to, "Usage: freshet-bench NAME [--quick] [--json]\n"
		    "Measures Freshet. pass and scrape make cgroups and remove them, and need "
		    "root.\n\n");
	for (size_t i = 0; i < NBENCHES; i++)
		fprintf(to, "  %-8s %s\n", benches[i].name, benches[i].what);
	fprintf(to, "\n  --quick  fewer rounds, at most 45 s\n"
		    "  --json   the result as JSON\n"
		    "  --help, --version\n");
}

static int run_chosen(void)
{
	int failed;

	report_begin(chosen->name);
	failed = chosen->run(quick);
	failed |= report_print(json); /* what was measured before a failure, too */
	return failed ? EXIT_FAILED : EXIT_GOOD;
}

static int hint(void)
{
	fprintf(stderr, "Try 'freshet-bench --help'.\n");
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	enum { QUICK = 256, JSON, VERSION };
	static const struct option options[] = {
		{ "quick", no_argument, NULL, QUICK },
		{ "json", no_argument, NULL, JSON },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, VERSION },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case QUICK:
			quick = true;
			break;
		case JSON:
			json = true;
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
	for (size_t i = 0; i < NBENCHES; i++)
		if (!strcmp(argv[optind], benches[i].name))
			chosen = &benches[i];
	if (!chosen) {
		fprintf(stderr, "freshet-bench: no bench '%s'\n", argv[optind]);
		return hint();
	}
	return supervise(run_chosen, chosen->cgroups);
}
