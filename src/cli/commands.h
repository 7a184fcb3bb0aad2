/* SPDX-License-Identifier: MIT */
/*
 * The commands of `freshet`. Each gets argv with its own name at argv[0], reads its options with
 * getopt_long, and returns the exit code.
 */
#ifndef FRESHET_COMMANDS_H
#define FRESHET_COMMANDS_H

enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1, /* a line on stderr said why */
	EXIT_USAGE = 2,  /* a line on stderr named the option and pointed at --help */
};

int cmd_serve(int argc, char **argv); /* src/daemon */
int cmd_ls(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

#endif
