/* SPDX-License-Identifier: MIT */
/* Implements pass.h. */
#include "oracle/pass.h"

#include <stdlib.h>
#include <string.h>

#include "oracle/cg.h"
#include "source/mount.h"

struct source_tree pass_tree;

static struct source *source;
static char why[512];

bool pass_by_files(void)
{
	const char *which = getenv("FRESHET_TEST_SOURCE");

	return which && !strcmp(which, "files");
}

const char *pass_start(const char *root)
{
	struct source_options o = { .root = root, .max_groups = 65536 };
	const char *cannot = NULL;
	struct cgroup_mount m;
	int err;

	if (!cg_home(&cannot))
		return cannot;
	if (source)
		return NULL;
	if (!root) {
		if (mount_find(&m) < 0)
			return "cgroup2 is not mounted";
		o.root = m.path;
		o.is_top = m.is_top;
	}
	err = pass_by_files() ? source_files_open(&o, &source, why, sizeof(why))
			      : source_bpf_open(&o, &source, why, sizeof(why));
	return err ? why : NULL;
}

void pass_end(void)
{
	if (source)
		source->ops->free(source);
	source = NULL;
}

int pass(void)
{
	return source->ops->pass(source, &pass_tree);
}

const struct source_group *pass_find(uint64_t id)
{
	for (uint32_t i = 0; i < pass_tree.count; i++)
		if (pass_tree.group[i]->id == id)
			return pass_tree.group[i];
	return NULL;
}

uint64_t pass_ns(uint64_t id, int stat)
{
	const struct source_group *g = pass_find(id);

	return g ? g->value[stat] : UINT64_MAX;
}

uint64_t pass_usec(uint64_t id, int stat)
{
	return pass_ns(id, stat) / 1000;
}

int pass_seconds(int usual)
{
	const char *scale = getenv("FRESHET_TEST_SCALE");
	double by = scale ? atof(scale) : 1;

	return by * usual < 1 ? 1 : (int)(by * usual);
}
