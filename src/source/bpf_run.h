/* SPDX-License-Identifier: MIT */
/* Loading and running the BPF programs of src/bpf: which of them this kernel takes, arrays as large
 * as the host needs, one run. */
#ifndef FRESHET_BPF_RUN_H
#define FRESHET_BPF_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/pass.h"

struct bpf_run;

/* root_fd: directory of the cgroup the walk starts at (duplicated). Errors as source_bpf_open(). */
int bpf_run_open(int root_fd, struct bpf_run **ret, char *why, size_t why_size);
void bpf_run_close(struct bpf_run *b);

/* What one run wrote. */
struct host_reading {
	const struct pass_record *record;
	const struct pass_throttle *throttle; /* where a record has PASS_THROTTLE */
	const struct pass_ledger *ledger;     /* NULL: this run did not write it */
	const struct pass_name *name;
	uint32_t count; /* of the first three */
	uint32_t names;
	uint32_t born;  /* another number when cgroups were made, wherever, since the last run */
	uint64_t at_ns; /* CLOCK_MONOTONIC, after the run */
	uint32_t round; /* set by the caller: the ledger proved in an earlier one is owed again */
};

/*
 * One run. known, name_from: as in pass_ctl. Grows the arrays when there are more cgroups than
 * room and runs again; the result is valid until the next run.
 * -ENODEV: the root is gone; -errno.
 */
int bpf_run(struct bpf_run *b, bool ledger, uint64_t known, uint32_t name_from,
	    struct host_reading *ret);

/* A moment for the kernel to finish what it is at. */
void bpf_run_wait(struct bpf_run *b);

unsigned bpf_run_has(const struct bpf_run *b); /* PASS_HAS_* */

/* True where the walk is iter/cgroup (6.1 to 6.6): it does not show dying cgroups, and the kernel
 * holds cgroup_mutex while it runs. */
bool bpf_run_holds_mutex(const struct bpf_run *b);

#endif
