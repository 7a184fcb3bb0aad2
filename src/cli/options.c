/* SPDX-License-Identifier: MIT */
/* Implements options.h. */
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "cli/commands.h"
#include "source/parse.h"

void options_begin(char **argv)
{
	static char name[32];

	snprintf(name, sizeof(name), "freshet %s", argv[0]);
	argv[0] = name;
	optind = 1;
}

int options_hint(char **argv)
{
	fprintf(stderr, "Try '%s --help'.\n", argv[0]);
	return EXIT_USAGE;
}

int options_bad(char **argv, const char *option, const char *value, const char *wanted)
{
	fprintf(stderr, "%s: option '%s': '%s' is not %s\n", argv[0], option, value, wanted);
	return options_hint(argv);
}

int options_path(int argc, char **argv, const char **ret)
{
	if (argc - optind > 1) {
		fprintf(stderr, "%s: one PATH at most, and '%s' is one more\n", argv[0],
			argv[optind + 1]);
		return options_hint(argv);
	}
	if (argc > optind)
		*ret = argv[optind];
	return 0;
}

int options_count(const char *text, uint32_t min, uint32_t max, uint32_t *ret)
{
	uint64_t value;

	if (parse_u64(text, strlen(text), &value) || value < min || value > max)
		return -EINVAL;
	*ret = (uint32_t)value;
	return 0;
}

int options_written(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return EXIT_OK;
	fprintf(stderr, "freshet: cannot write: %s\n", strerror(errno));
	return EXIT_FAILED;
}
