/* SPDX-License-Identifier: MIT */
/*
 * Counting requests per tenant: a tree of tenants and their services, a set of three counters that
 * are never seen torn, and a gauge.
 *
 *   cc -O2 tenants.c $(pkg-config --cflags --libs freshet) && ./a.out
 */
#include <freshet/freshet.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS, RECEIVED, SENT, CONNECTIONS, NSTATS };

static const struct freshet_stat stats[NSTATS] = {
	/* the last number makes the first three a set: number 1 */
	{ "http", "requests", NULL, "Requests answered.", FRESHET_COUNTER, FRESHET_COUNT, 1 },
	{ "http", "received", NULL, "Bytes of requests.", FRESHET_COUNTER, FRESHET_BYTES, 1 },
	{ "http", "sent", NULL, "Bytes of answers.", FRESHET_COUNTER, FRESHET_BYTES, 1 },
	{ "http", "connections", NULL, "Open connections.", FRESHET_GAUGE, FRESHET_COUNT, 0 },
};

static void check(int r, const char *what)
{
	if (r == 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

static struct freshet_handle group(struct freshet_tree *tree, struct freshet_handle parent,
				   const char *name)
{
	struct freshet_handle made;

	check(freshet_create(tree, &parent, name, 0, &made), name);
	return made;
}

/* The hot path. The handle is by value: a local variable's fields stay in registers. */
static void answer(struct freshet_handle service, int64_t received, int64_t sent)
{
	const int64_t n[] = { 1, received, sent };

	check(freshet_add_set(&service, REQUESTS, 3, n), "request");
}

static void print(const struct freshet_tree *tree, const char *path)
{
	const struct freshet_view *view = freshet_view_of(tree);
	uint64_t v[NSTATS], present;
	struct freshet_group g;

	check(freshet_find(view, path, &g), path);
	check(freshet_read(view, g, 0, NSTATS, v, &present, NULL), path);
	printf("%s: %llu requests, %llu bytes in, %llu out, %lld connections\n", path,
	       (unsigned long long)v[REQUESTS], (unsigned long long)v[RECEIVED],
	       (unsigned long long)v[SENT], (long long)v[CONNECTIONS]);
}

int main(void)
{
	const struct freshet_schema schema = { sizeof(schema), stats, NSTATS, NULL, 0 };
	struct freshet_handle root, acme, web, api, shop;
	struct freshet_tree *tree;

	check(freshet_open(NULL, &schema, NULL, &tree), "open");
	root = freshet_tree_root(tree);
	acme = group(tree, root, "acme");
	web = group(tree, acme, "web");
	api = group(tree, acme, "api");
	shop = group(tree, root, "shop");

	check(freshet_add(&web, CONNECTIONS, 2), "connect");
	for (int i = 0; i < 1000; i++)
		answer(web, 200, 5000);
	for (int i = 0; i < 10; i++)
		answer(api, 100, 100);
	answer(shop, 300, 1);
	check(freshet_add(&web, CONNECTIONS, -1), "disconnect");
	print(tree, "/acme/web");
	print(tree, "/acme");
	print(tree, "/");

	check(freshet_remove(tree, &api, 0), "remove");
	print(tree, "/acme"); /* what it counted stays */
	freshet_close(tree);
	return 0;
}
