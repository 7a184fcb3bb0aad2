/* SPDX-License-Identifier: MIT */
/* Implements text.h. */
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "source/parse.h"

static int fail(int err)
{
	fprintf(stderr, "freshet-bench: reading cpu.stat: %s\n", strerror(err));
	return -1;
}

int text_open(struct text *t, const struct cgroups *c)
{
	struct rlimit limit;

	*t = (struct text){ 0 };
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	t->file = calloc(c->count, sizeof(*t->file));
	t->fd = calloc(c->count, sizeof(*t->fd));
	t->value = calloc(c->count, sizeof(*t->value));
	if (!t->file || !t->fd || !t->value) {
		text_close(t);
		return fail(ENOMEM);
	}
	for (; t->count < c->count; t->count++) {
		uint32_t i = t->count;

		if (asprintf(&t->file[i], "%s/cpu.stat", c->path[i]) < 0) {
			text_close(t);
			return fail(ENOMEM);
		}
		t->fd[i] = open(t->file[i], O_RDONLY | O_CLOEXEC);
		if (t->fd[i] < 0) {
			int err = errno;

			free(t->file[i]);
			text_close(t);
			return fail(err);
		}
	}
	return 0;
}

void text_close(struct text *t)
{
	for (uint32_t i = 0; i < t->count; i++) {
		free(t->file[i]);
		close(t->fd[i]);
	}
	free(t->file);
	free(t->fd);
	free(t->value);
	*t = (struct text){ 0 };
}

static int parse(struct text *t, uint32_t i, const char *text, ssize_t len)
{
	uint64_t present;

	return len < 0 ? -errno : parse_cpu_stat(text, (size_t)len, t->value[i], &present);
}

int text_read_opening(struct text *t)
{
	for (uint32_t i = 0; i < t->count; i++) {
		int fd = open(t->file[i], O_RDONLY | O_CLOEXEC), err;
		char text[4096];
		ssize_t len;

		if (fd < 0)
			return -errno;
		len = read(fd, text, sizeof(text));
		err = parse(t, i, text, len);
		close(fd);
		if (err)
			return err;
	}
	return 0;
}

int text_read_kept(struct text *t)
{
	for (uint32_t i = 0; i < t->count; i++) {
		char text[4096];
		ssize_t len = pread(t->fd[i], text, sizeof(text), 0);
		int err = parse(t, i, text, len);

		if (err)
			return err;
	}
	return 0;
}
