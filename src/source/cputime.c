/* SPDX-License-Identifier: MIT */
/* Implements cputime.h; the rule is stated in the header, the cases in the tests. */
#include "source/cputime.h"

void cputime_adjust(struct cputime *said, uint64_t exec, uint64_t utime, uint64_t stime)
{
	uint64_t system;

	if (said->user + said->system >= exec)
		return;
	if (!stime)
		system = 0;
	else if (!utime)
		system = exec;
	else
		system = (uint64_t)((unsigned __int128)stime * exec / (stime + utime));

	if (system < said->system)
		system = said->system;
	/* exec exceeds what was said, so at least one part can grow and the other can stay. */
	if (exec - system < said->user)
		system = exec - said->user;
	said->system = system;
	said->user = exec - system;
}
