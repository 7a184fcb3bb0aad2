/* SPDX-License-Identifier: MIT */
/* CPU lists: ascending, within the capacity, and printed again they give the same. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source/parse.h"

#define CAPACITY 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t cpu[CAPACITY], again[CAPACITY];
	char text[CAPACITY * 12];
	size_t len = 0;
	int n = parse_cpu_list((const char *)data, size, cpu, CAPACITY);

	if (n < 0) {
		if (n != -EINVAL && n != -E2BIG)
			abort();
		return 0;
	}
	for (int i = 0; i < n; i++) {
		if (i && cpu[i] <= cpu[i - 1])
			abort();
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", i ? "," : "",
					cpu[i]);
	}
	if (n > CAPACITY || parse_cpu_list(text, len, again, CAPACITY) != n ||
	    memcmp(cpu, again, (size_t)n * sizeof(*cpu)))
		abort();
	return 0;
}
