/* SPDX-License-Identifier: MIT */
/* What `freshet doctor` finds out, fact by fact. One thread. */
#ifndef FRESHET_DOCTOR_H
#define FRESHET_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "source/mount.h"

enum fact_state { FACT_OK, FACT_NO, FACT_NA };

struct fact {
	enum fact_state state;
	const char *name;
	char text[1024]; /* what was found, and what follows */
};

#define FACTS_MAX 32

struct facts {
	struct fact fact[FACTS_MAX];
	size_t count;
	bool can_serve;
	const char *source; /* that `auto` takes, or NULL */
};

void fact(struct facts *f, enum fact_state state, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The hierarchy. -ENOENT: there is none, *mount is not filled. */
int facts_cgroup(struct facts *f, struct cgroup_mount *mount);

/* Privilege, and what the kernel's BTF says of BPF and rstat. */
void facts_kernel(struct facts *f);

/* What programs that count by themselves need: CPUs, rseq, membarrier. */
void facts_program(struct facts *f);

#endif
