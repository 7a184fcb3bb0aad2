/* SPDX-License-Identifier: MIT */
/*
 * What `freshet serve` is told, by its command line and by a configuration file of the same option
 * names: "key = value" lines, # begins a comment line. Pure but for config_read().
 */
#ifndef FRESHET_CONFIG_H
#define FRESHET_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#define CONFIG_VALUE_MAX 4096u

struct config {
	char root[CONFIG_VALUE_MAX]; /* "": the whole hierarchy */
	int source;                  /* enum collector_source */
	uint64_t interval_ns;
	char listen[128];
	char segment[CONFIG_VALUE_MAX];
	char segment_dirs[CONFIG_VALUE_MAX]; /* with ':' between them; "": none */
	uint32_t max_groups;
	uint32_t max_cpu; /* percent of one CPU for on-demand passes */
};

void config_defaults(struct config *c);

/* One option, named without dashes. On failure -EINVAL and `why` (at least 256 bytes) says what is
 * wrong and what would be right, beginning with the option's name. */
int config_set(struct config *c, const char *key, const char *value, char *why, size_t why_size);

/* A file's text. On failure -EINVAL and `why` (at least 512 bytes) begins with "file:line: ". */
int config_parse(struct config *c, const char *file, const char *text, size_t len, char *why,
		 size_t why_size);

/* Reads and parses a file. -errno, `why` as above. */
int config_read(struct config *c, const char *file, char *why, size_t why_size);

#endif
