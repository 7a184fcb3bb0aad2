/* SPDX-License-Identifier: MIT */
/* freshet: picks the command. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/open_view.h"
#include "cli/options.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
	{ "serve", cmd_serve, "collect, and publish: shared memory, /metrics, JSON, a web page" },
	{ "ls", cmd_ls, "list groups and the CPU time they used" },
	{ "show", cmd_show, "show all numbers of one group" },
	{ "top", cmd_top, "watch rates, in a tree or sorted" },
	{ "doctor", cmd_doctor, "say what this machine allows, and what follows" },
};
#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: freshet COMMAND [OPTION]...\n"
		"Fresh hierarchical statistics of cgroups, without the kernel's rstat lock.\n\n");
	for (size_t i = 0; i < NCOMMANDS; i++)
		fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].what);
	fprintf(to, "\n  --help, --version\n"
		    "\n'freshet COMMAND --help' and freshet-COMMAND(1) say more.\n");
}

/*
 * A standard descriptor that is closed would be given to the next file opened, a segment for one,
 * and messages would be written into that. What takes its place can be neither read nor written, as
 * before. 0 or -errno.
 */
static int occupy_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_DIRECTORY) != fd)
			return -errno;
	return 0;
}

int main(int argc, char **argv)
{
	static char name[] = "freshet";

	if (occupy_standard_descriptors() < 0)
		return EXIT_FAILED; /* and nowhere to say so */
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		usage(stdout);
		return options_written();
	}
	if (!strcmp(argv[1], "--version")) {
		printf("freshet %s\n", FRESHET_VERSION);
		return options_written();
	}
	open_view_catch();
	for (size_t i = 0; i < NCOMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	argv[0] = name;
	return options_wrong(argv, "no command or option '%s'", argv[1]);
}
