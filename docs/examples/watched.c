/* SPDX-License-Identifier: MIT */
/*
 * A program that `freshet top`, `show` and `ls` show, and `freshet serve` exports: all it does for
 * that is to keep its segment where they look. It counts lines of its input by their first word.
 *
 *   cc -O2 watched.c -o watched $(pkg-config --cflags --libs freshet)
 *   while sleep 0.1; do echo "acme hello"; echo "shop hi"; done | ./watched words &
 *   freshet top --segment words
 */
#include <freshet/freshet.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES, TEXT };

static const struct freshet_stat stats[] = {
	{ "input", "lines", NULL, "Lines read.", FRESHET_COUNTER, FRESHET_COUNT, 1 },
	{ "input", "text", NULL, "Bytes read.", FRESHET_COUNTER, FRESHET_BYTES, 1 },
};

static const struct freshet_schema schema = { .size = sizeof(schema), .stats = stats, .nstats = 2 };

static void check(int r, const char *what)
{
	if (r == 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

/* The group of a word, made when it is seen first. */
static struct freshet_handle group_of(struct freshet_tree *tree, const char *word)
{
	struct freshet_handle root = freshet_tree_root(tree), group;
	int r = freshet_lookup(tree, &root, word, &group);

	if (r == -ENOENT)
		r = freshet_create(tree, &root, word, 0, &group);
	check(r, word);
	return group;
}

int main(int argc, char **argv)
{
	struct freshet_options options = { .size = sizeof(options), .producer = "watched" };
	struct freshet_tree *tree;
	char path[4096], line[200];

	if (argc != 2) {
		fprintf(stderr, "usage: watched NAME <TEXT\n");
		return 2;
	}
	check(freshet_place(argv[1], getenv("XDG_RUNTIME_DIR"), path, sizeof(path)), argv[1]);
	/* -EBUSY: it runs already. What a dead one left there is replaced. */
	check(freshet_open(path, &schema, &options, &tree), path);
	printf("%s\n", path);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		const int64_t n[] = { 1, (int64_t)strlen(line) };
		char *word = strtok(line, " \t\n/.");
		struct freshet_handle group = group_of(tree, word ? word : "(none)");

		check(freshet_add_set(&group, LINES, 2, n), "add");
	}
	freshet_close(tree); /* removes the file */
	return 0;
}
