/* SPDX-License-Identifier: MIT */
/* Configuration files: whatever they hold, each option stays within its bounds and is a string. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/config.h"
#include "daemon/listen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config c;
	char why[512] = "";
	int r;

	config_defaults(&c);
	r = config_parse(&c, "fuzz.conf", (const char *)data, size, why, sizeof(why));
	if (r != 0 && r != -EINVAL)
		abort();
	if (!r != !why[0] || strncmp(why, r ? "fuzz.conf:" : "", r ? 10 : 0) != 0)
		abort();
	if (c.interval_ns < NSEC_PER_MSEC || c.interval_ns > 3600 * NSEC_PER_SEC || !c.max_groups ||
	    c.max_groups > 1u << 24 || c.max_cpu > 100 || strlen(c.root) >= sizeof(c.root) ||
	    strlen(c.segment) >= sizeof(c.segment) || !listen_valid(c.listen))
		abort();
	return 0;
}
