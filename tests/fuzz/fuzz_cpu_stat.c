/* SPDX-License-Identifier: MIT */
/* cpu.stat: whatever it says, only whole lines count and absent columns are left alone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "source/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	uint64_t value[HOST_NSTATS], whole[HOST_NSTATS], present = 0, present_whole = 0;
	const char *end = size ? memrchr(text, '\n', size) : NULL;
	int r;

	memset(value, 0x5a, sizeof(value));
	memset(whole, 0x5a, sizeof(whole));
	r = parse_cpu_stat(text, size, value, &present);
	if (r != (present ? 0 : -ENODATA) || present >> HOST_NSTATS)
		abort();
	for (unsigned i = 0; i < HOST_NSTATS; i++) {
		if (!(present >> i & 1) && value[i] != 0x5a5a5a5a5a5a5a5a)
			abort();
		if (present >> i & 1 && host_stats[i].unit == FRESHET_NANOSECONDS &&
		    value[i] % 1000)
			abort();
	}
	/* what follows the last newline makes no difference */
	if (parse_cpu_stat(text, end ? (size_t)(end - text) + 1 : 0, whole, &present_whole) != r ||
	    present != present_whole || memcmp(value, whole, sizeof(value)))
		abort();
	return 0;
}
