/* SPDX-License-Identifier: MIT */
/* Implements options.h. */
#include "cli/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/where.h"
#include "cli/commands.h"
#include "source/parse.h"
#include "view/safe.h"

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

int options_wrong(char **argv, const char *fmt, ...)
{
	struct buf safe = BUF_INIT;
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	safe_name(&safe, text ? text : "wrong usage", false);
	fprintf(stderr, "%s: %.*s\n", argv[0], (int)safe.len, safe.len ? safe.data : "");
	buf_free(&safe);
	free(text);
	return options_hint(argv);
}

/* How many options begin as arg ("--seg=x") does; *ret is the last of them. */
static unsigned meant(const char *arg, const struct option *options, const struct option **ret)
{
	unsigned count = 0;

	if (strncmp(arg, "--", 2) != 0)
		return 0;
	for (const struct option *o = options; o->name; o++) {
		if (strncmp(o->name, arg + 2, strcspn(arg + 2, "=")) == 0) {
			*ret = o;
			count++;
		}
	}
	return count;
}

int options_next(int argc, char **argv, const char *letters, const struct option *options)
{
	char quiet[16];
	const struct option *option;
	const char *arg;
	unsigned count;
	int c;

	snprintf(quiet, sizeof(quiet), ":%s", letters);
	opterr = 0;
	c = getopt_long(argc, argv, quiet, options, NULL);
	if (c != ':' && c != '?')
		return c;
	arg = argv[optind - 1];
	count = meant(arg, options, &option);
	if (c == ':')
		options_wrong(argv, "option '%s' requires an argument", arg);
	else if (!optopt)
		options_wrong(argv, "%s option '%s'", count ? "ambiguous" : "unrecognized", arg);
	else if (count == 1 && option->val == optopt && strchr(arg, '='))
		options_wrong(argv, "option '--%s' takes no argument", option->name);
	else
		options_wrong(argv, "unrecognized option '-%c'", optopt);
	return '?';
}

int options_bad(char **argv, const char *option, const char *value, const char *wanted)
{
	return options_wrong(argv, "option '%s': '%s' is not %s", option, value, wanted);
}

int options_segment(char **argv, const char *value, const char **ret)
{
	char file[4096];

	if (where_segment(value, file, sizeof(file)) == -EINVAL)
		return options_bad(argv, "--segment", value,
				   "a name of a segment, nor a file with a '/' in its name");
	*ret = value;
	return 0;
}

int options_path(int argc, char **argv, const char **ret)
{
	if (argc - optind > 1)
		return options_wrong(argv, "one PATH at most, and '%s' is one more",
				     argv[optind + 1]);
	if (argc == optind)
		return 0;
	if (!argv[optind][0])
		return options_wrong(argv, "the PATH is empty; that of the root is '/'");
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
