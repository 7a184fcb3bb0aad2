/* SPDX-License-Identifier: MIT */
/*
 * The names of new cgroups, of which one run fetches PASS_MAX_NAMES at most, while others are
 * removed in front of them: bpf.c and host_tree.c above a flat tree that shrinks with each run.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

#include "source/bpf_run.h"
#include "source/source.h"

#define GROUPS 5000u

struct bpf_run {
	struct pass_record record[GROUPS];
	struct pass_throttle throttle[GROUPS];
	struct pass_name name[PASS_MAX_NAMES];
};

static uint32_t removed, runs; /* children with serials 2 to 1 + removed are gone */
static uint64_t now_ns = 1;

int bpf_run_open(int root_fd, struct bpf_run **ret, char *why, size_t why_size)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void bpf_run_close(struct bpf_run *b)
{
	free(b);
}

unsigned bpf_run_has(const struct bpf_run *b)
{
	return 0;
}

void bpf_run_wait(struct bpf_run *b)
{
	now_ns += 4000000;
}

bool bpf_run_holds_mutex(const struct bpf_run *b)
{
	return false;
}

int bpf_run(struct bpf_run *b, bool ledger, uint64_t known, uint32_t from, struct host_reading *ret)
{
	static struct pass_ledger nothing[GROUPS];

	*ret = (struct host_reading){ .record = b->record,
				      .throttle = b->throttle,
				      .ledger = ledger ? nothing : NULL,
				      .name = b->name };
	for (uint64_t serial = 1; serial <= GROUPS; serial++) {
		if (serial > 1 && serial <= 1 + removed)
			continue;
		b->record[ret->count] =
			(struct pass_record){ .serial = serial, .level = serial > 1 };
		if (serial > known && ret->count >= from && ret->names < PASS_MAX_NAMES) {
			struct pass_name *n = &b->name[ret->names++];

			*n = (struct pass_name){ .serial = serial, .id = serial };
			snprintf(n->name, sizeof(n->name), "n%d", (int)serial);
		}
		ret->count++;
	}
	removed += 3;
	runs++;
	ret->at_ns = now_ns += 50000;
	return 0;
}

TEST(all_are_named_though_others_go)
{
	struct source_options o = { .root = "/", .max_groups = GROUPS };
	struct source_tree t;
	struct source *s;
	char why[256];

	REQUIRE(!source_bpf_open(&o, &s, why, sizeof(why)), "%s", why);
	REQUIRE(s->ops->pass(s, &t) == 0);
	printf("# %u runs\n", runs);
	EXPECT_EQ(t.count, GROUPS - (removed - 3));
	EXPECT(runs <= GROUPS / PASS_MAX_NAMES + 8, "%u runs", runs);
	s->ops->free(s);
}

TAP_MAIN
