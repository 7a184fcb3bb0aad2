/* SPDX-License-Identifier: MIT */
/* Targets of requests: all strings of the result lie within the text and end in it. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "view/http_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct http_target t;
	int r;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	r = http_target_parse(text, &t);
	if (r != 0 && r != -EILSEQ && r != -E2BIG)
		abort();
	for (unsigned i = 0; r == 0 && i < t.count; i++) {
		const char *name = t.parameter[i].name, *value = t.parameter[i].value;

		if (name < text || value < name || value + strlen(value) > text + size ||
		    name + strlen(name) > value || !http_target_get(&t, name))
			abort();
	}
	if (r == 0 && (t.path != text || t.count > HTTP_MAX_PARAMETERS))
		abort();
	free(text);
	return 0;
}
