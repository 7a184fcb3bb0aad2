/* SPDX-License-Identifier: MIT */
/* Implements config.h. Each option is declared once, in the table. */
#include "daemon/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/where.h"
#include "daemon/listen.h"
#include "source/collector.h"

#define SEGMENT_DIRS_MAX 16u
#define FILE_MAX         (64u * 1024)

void config_defaults(struct config *c)
{
	*c = (struct config){ .source = COLLECT_AUTO,
			      .interval_ns = NSEC_PER_SEC,
			      .listen = "127.0.0.1:9753",
			      .segment = WHERE_DEFAULT,
			      .max_groups = 65536,
			      .max_cpu = 10 };
}

static bool set_text(char *to, size_t size, const char *value)
{
	size_t len = strlen(value);

	if (!len || len >= size)
		return false;
	memcpy(to, value, len + 1);
	return true;
}

static bool set_number(uint32_t *to, const char *value, unsigned long min, unsigned long max)
{
	unsigned long n;
	char *end;

	if (*value < '0' || *value > '9')
		return false;
	errno = 0;
	n = strtoul(value, &end, 10);
	if (*end || errno || n < min || n > max)
		return false;
	*to = (uint32_t)n;
	return true;
}

static bool set_root(struct config *c, const char *value)
{
	return set_text(c->root, sizeof(c->root), value);
}

static bool set_source(struct config *c, const char *value)
{
	if (strcmp(value, "auto") == 0)
		c->source = COLLECT_AUTO;
	else if (strcmp(value, "bpf") == 0)
		c->source = COLLECT_BPF;
	else if (strcmp(value, "files") == 0)
		c->source = COLLECT_FILES;
	else
		return false;
	return true;
}

static bool set_interval(struct config *c, const char *value)
{
	uint64_t ns;

	if (duration_parse(value, &ns) < 0 || ns < NSEC_PER_MSEC || ns > 3600 * NSEC_PER_SEC)
		return false;
	c->interval_ns = ns;
	return true;
}

static bool set_listen(struct config *c, const char *value)
{
	return listen_valid(value) && set_text(c->listen, sizeof(c->listen), value);
}

static bool set_segment(struct config *c, const char *value)
{
	char path[CONFIG_VALUE_MAX];

	return where_segment(value, path, sizeof(path)) != -EINVAL &&
	       set_text(c->segment, sizeof(c->segment), value);
}

static bool set_segment_dirs(struct config *c, const char *value)
{
	unsigned count = 0;

	for (const char *p = value, *colon; p; p = colon ? colon + 1 : NULL) {
		colon = strchr(p, ':');
		if (*p != '/' || ++count > SEGMENT_DIRS_MAX)
			return false;
	}
	return set_text(c->segment_dirs, sizeof(c->segment_dirs), value);
}

static bool set_max_groups(struct config *c, const char *value)
{
	return set_number(&c->max_groups, value, 1, 1ul << 24);
}

static bool set_max_cpu(struct config *c, const char *value)
{
	return set_number(&c->max_cpu, value, 0, 100);
}

static const struct {
	const char *name;
	bool (*set)(struct config *c, const char *value);
	const char *wants;
} options[] = {
	{ "root", set_root, "a cgroup's directory" },
	{ "source", set_source, "auto, bpf or files" },
	{ "interval", set_interval, "a time from 1ms to 1h, such as 1s" },
	{ "listen", set_listen, "ADDRESS:PORT, such as 127.0.0.1:9753 or [::1]:0" },
	{ "segment", set_segment,
	  "a name (letters, digits, '.', '_', '-') or a file name with a slash" },
	{ "segment-dirs", set_segment_dirs,
	  "at most 16 directories, each from / on, with ':' between them" },
	{ "max-groups", set_max_groups, "a number from 1 to 16777216" },
	{ "max-cpu", set_max_cpu, "whole percents of one CPU, from 0 to 100" },
};
#define NOPTIONS (sizeof(options) / sizeof(*options))

int config_set(struct config *c, const char *key, const char *value, char *why, size_t why_size)
{
	for (size_t i = 0; i < NOPTIONS; i++) {
		if (strcmp(options[i].name, key) != 0)
			continue;
		if (options[i].set(c, value))
			return 0;
		snprintf(why, why_size, "%s: \"%.64s\" is not %s", key, value, options[i].wants);
		return -EINVAL;
	}
	snprintf(why, why_size, "%.64s: no such option; known are", key);
	for (size_t i = 0; i < NOPTIONS; i++) {
		size_t len = strlen(why);

		snprintf(why + len, why_size - len, "%s %s", i ? "," : "", options[i].name);
	}
	return -EINVAL;
}

/* Text between blanks, in place. */
static char *trim(char *s)
{
	size_t len;

	s += strspn(s, " \t\r");
	len = strlen(s);
	while (len && strchr(" \t\r", s[len - 1]))
		s[--len] = '\0';
	return s;
}

static int parse_line(struct config *c, char *line, char *why, size_t why_size)
{
	char *key = trim(line), *equals;

	if (!*key || *key == '#')
		return 0;
	equals = strchr(key, '=');
	if (!equals) {
		snprintf(why, why_size, "\"%.64s\": write it as option = value", key);
		return -EINVAL;
	}
	*equals = '\0';
	if (!*trim(key)) {
		snprintf(why, why_size, "there is no option's name before \"=\"");
		return -EINVAL;
	}
	return config_set(c, trim(key), trim(equals + 1), why, why_size);
}

int config_parse(struct config *c, const char *file, const char *text, size_t len, char *why,
		 size_t why_size)
{
	char line[CONFIG_VALUE_MAX + 64], what[320];
	unsigned number = 0;

	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : len - at;
		int r;

		number++;
		if (n >= sizeof(line) || memchr(text + at, '\0', n)) {
			snprintf(what, sizeof(what), "the line is %s",
				 n >= sizeof(line) ? "too long" : "not text");
			r = -EINVAL;
		} else {
			memcpy(line, text + at, n);
			line[n] = '\0';
			r = parse_line(c, line, what, sizeof(what));
		}
		if (r < 0) {
			snprintf(why, why_size, "%.180s:%u: %s", file, number, what);
			return r;
		}
		at += n + 1;
	}
	return 0;
}

int config_read(struct config *c, const char *file, char *why, size_t why_size)
{
	char *text _free_ = malloc(FILE_MAX);
	size_t len = 0;
	ssize_t n = 1;
	int fd _close_ = open(file, O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && text && n > 0 && len < FILE_MAX) {
		n = read(fd, text + len, FILE_MAX - len);
		if (n > 0)
			len += (size_t)n;
	}
	if (fd < 0 || !text || n < 0) {
		int r = -errno;

		snprintf(why, why_size, "%.180s: %s", *file ? file : "the file named \"\"",
			 strerror(-r));
		return r;
	}
	if (len == FILE_MAX) {
		snprintf(why, why_size, "%.180s: longer than %u bytes", file, FILE_MAX);
		return -EFBIG;
	}
	return config_parse(c, file, text, len, why, why_size);
}
