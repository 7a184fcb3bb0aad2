/* SPDX-License-Identifier: MIT */
/*
 * A program with a tree of its own, for the end-to-end tests: producer FILE. It says "ready" and then
 * obeys lines on standard input, each answered by "ok" or by what failed, until that is closed:
 *
 *   create PATH           the group, whose parent is there
 *   remove PATH
 *   add PATH STAT N       of those below, by number
 *   set PATH N N N        requests, errors and bytes at once
 *   observe PATH N        a latency, ns
 *   flush
 *   truncate N            cuts its own segment short, which nobody should do
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <freshet/freshet.h>

static const struct freshet_stat stats[] = {
	{ .family = "http",
	  .name = "requests",
	  .help = "Requests \"served\".",
	  .kind = FRESHET_COUNTER,
	  .set = 1 },
	{ .family = "http",
	  .name = "errors",
	  .help = "Of these failed.",
	  .kind = FRESHET_COUNTER,
	  .set = 1 },
	{ .family = "http",
	  .name = "sent",
	  .help = "Sent.",
	  .kind = FRESHET_COUNTER,
	  .unit = FRESHET_BYTES,
	  .set = 1 },
	{ .family = "http",
	  .name = "busy",
	  .key = "busy_usec",
	  .help = "Time worked.",
	  .kind = FRESHET_COUNTER,
	  .unit = FRESHET_NANOSECONDS },
	{ .family = "pool", .name = "open", .help = "Connections.", .kind = FRESHET_GAUGE },
};

static const struct freshet_histogram histograms[] = {
	{ .family = "http",
	  .name = "latency",
	  .key = "latency_ns",
	  .help = "Of answers.",
	  .unit = FRESHET_NANOSECONDS,
	  .precision = 3,
	  .lowest = 10,
	  .highest = 36 },
};

static struct freshet_tree *tree;

static int find(const char *path, struct freshet_handle *ret)
{
	char copy[FRESHET_PATH_MAX], *next = copy, *part;
	int r = 0;

	*ret = freshet_tree_root(tree);
	snprintf(copy, sizeof(copy), "%s", path);
	while (r == 0 && (part = strsep(&next, "/")))
		if (*part)
			r = freshet_lookup(tree, ret, part, ret);
	return r;
}

static int make(char *path)
{
	char *slash = strrchr(path, '/');
	struct freshet_handle parent, group;
	int r;

	if (!slash)
		return -EINVAL;
	*slash = '\0';
	r = find(path, &parent);
	return r ? r : freshet_create(tree, &parent, slash + 1, 0, &group);
}

static int obey(const char *file, char *line)
{
	char verb[16] = "", path[1024] = "";
	long long n[3] = { 0 };
	struct freshet_handle group;
	int r, count = sscanf(line, "%15s %1023s %lld %lld %lld", verb, path, &n[0], &n[1], &n[2]);

	if (!strcmp(verb, "flush"))
		return freshet_flush(tree);
	if (!strcmp(verb, "create"))
		return make(path);
	if (!strcmp(verb, "truncate"))
		return truncate(file, atol(path)) ? -errno : 0;
	r = find(path, &group);
	if (r)
		return r;
	if (!strcmp(verb, "remove"))
		return freshet_remove(tree, &group, 0);
	if (!strcmp(verb, "observe") && count == 3)
		return freshet_observe(&group, 0, (uint64_t)n[0]);
	if (!strcmp(verb, "add") && count == 4)
		return freshet_add(&group, (unsigned)n[0], n[1]);
	if (!strcmp(verb, "set") && count == 5) {
		int64_t set[3] = { n[0], n[1], n[2] };

		return freshet_add_set(&group, 0, 3, set);
	}
	return -EINVAL;
}

int main(int argc, char **argv)
{
	const struct freshet_schema schema = { .size = sizeof(schema),
					       .stats = stats,
					       .nstats = sizeof(stats) / sizeof(*stats),
					       .histograms = histograms,
					       .nhistograms = 1 };
	const struct freshet_options options = { .size = sizeof(options),
						 .producer = "test <producer>",
						 .max_groups = 64 };
	char line[2048];
	int r;

	if (argc != 2)
		return 2;
	r = freshet_open(argv[1], &schema, &options, &tree);
	puts(r ? strerror(-r) : "ready");
	fflush(stdout);
	while (r == 0 && fgets(line, sizeof(line), stdin)) {
		int done = obey(argv[1], line);

		puts(done ? strerror(-done) : "ok");
		fflush(stdout);
	}
	freshet_close(tree);
	return r != 0;
}
