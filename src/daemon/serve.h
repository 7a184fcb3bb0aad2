/* SPDX-License-Identifier: MIT */
/* The command `freshet serve`, as cli/commands.h says of commands. */
#ifndef FRESHET_SERVE_H
#define FRESHET_SERVE_H

int cmd_serve(int argc, char **argv);

#endif
