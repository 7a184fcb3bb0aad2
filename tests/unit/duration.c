/* SPDX-License-Identifier: MIT */
/* What is a duration and what is not. */
#include "base/duration.h"

#include <errno.h>

#include "tap.h"

TEST(good)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = {
		{ "0", 0 },
		{ "0s", 0 },
		{ "4ms", 4000000 },
		{ "1s", 1000000000 },
		{ "1.5s", 1500000000 },
		{ "0.1s", 100000000 },
		{ ".5ms", 500000 },
		{ "2m", 120000000000 },
		{ "1h", 3600000000000 },
		{ "17ns", 17 },
		{ "3us", 3000 },
		{ "1.9999999999ns", 1 },
		{ "0.000000000000000000001h", 0 },
	};
	uint64_t ns;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ns = 99;
		EXPECT(duration_parse(cases[i].text, &ns) == 0, "%s", cases[i].text);
		EXPECT(ns == cases[i].ns, "%s: %llu", cases[i].text, (unsigned long long)ns);
	}
}

TEST(bad)
{
	static const struct {
		const char *text;
		int error;
	} cases[] = {
		{ "", -EINVAL },
		{ "s", -EINVAL },
		{ ".s", -EINVAL },
		{ "1", -EINVAL },
		{ "-1s", -EINVAL },
		{ "+1s", -EINVAL },
		{ " 1s", -EINVAL },
		{ "1 s", -EINVAL },
		{ "1s ", -EINVAL },
		{ "1sec", -EINVAL },
		{ "1.2.3s", -EINVAL },
		{ "1e3s", -EINVAL },
		{ "0x1s", -EINVAL },
		{ "1S", -EINVAL },
		{ "99999999999999999999s", -ERANGE },
		{ "2562048h", -ERANGE },
	};
	uint64_t ns = 99;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		EXPECT(duration_parse(cases[i].text, &ns) == cases[i].error, "%s", cases[i].text);
	EXPECT_EQ(ns, 99);
}

TAP_MAIN
