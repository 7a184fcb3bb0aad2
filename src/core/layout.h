/* SPDX-License-Identifier: MIT */
/* A segment's layout, computed from what its writer was asked for. */
#ifndef FRESHET_LAYOUT_H
#define FRESHET_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/segment.h"
#include "core/writer.h"

/* Whether a segment can be made of these options. */
bool layout_good(const struct writer_options *options);

/* Words of a row. */
uint32_t layout_row_words(const struct writer_options *options);

/* The header of the whole file. Sections 0 to 3 are stats, strings, groups and banks; 4 is
 * histograms, if there are any; then the options' own. 0 or -EIO (no random numbers). */
int layout_header(const struct writer_options *options, struct seg_header *ret);

/* Writes columns, histograms and their strings into the mapped file. */
void layout_schema(const struct writer_options *options, const struct seg_header *header,
		   char *map);

#endif
