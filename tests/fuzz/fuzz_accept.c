/* SPDX-License-Identifier: MIT */
/* Accept and Accept-Encoding: an answer is one of those offered, and what a client writes after a
 * comma that is not in quotes cannot make a form unacceptable that it has named before. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "view/http_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct http_media offered[] = {
		{ "text/plain", "0.0.4" },
		{ "application/openmetrics-text", "1.0.0" },
	};
	static const char before[] = "text/plain;version=0.0.4,";
	char *header = malloc(sizeof(before) + size), *more = header;
	int choice;

	if (!header)
		return 0;
	memcpy(header, before, sizeof(before) - 1);
	more += sizeof(before) - 1;
	memcpy(more, data, size);
	more[size] = '\0';
	choice = http_accept(more, offered, 2);
	if (choice > 1)
		abort();
	if (http_accept(header, offered, 2) < 0)
		abort();
	http_accept_gzip(more);
	free(header);
	return 0;
}
