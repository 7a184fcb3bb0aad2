/* SPDX-License-Identifier: MIT */
/*
 * The commands of `freshet`. Each gets argv with its own name at argv[0], reads its options with
 * getopt_long, and returns the exit code.
 */
#ifndef FRESHET_COMMANDS_H
#define FRESHET_COMMANDS_H

#include "base/exits.h"
#include "daemon/serve.h" /* cmd_serve() */

int cmd_ls(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

#endif
