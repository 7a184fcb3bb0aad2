/* SPDX-License-Identifier: MIT */
/* Exit codes of the programs. */
#ifndef FRESHET_EXITS_H
#define FRESHET_EXITS_H

enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1, /* a line on stderr said why */
	EXIT_USAGE = 2,  /* a line on stderr named the option and pointed at --help */
};

#endif
