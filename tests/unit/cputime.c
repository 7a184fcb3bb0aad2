/* SPDX-License-Identifier: MIT */
/* The split of run time into user and system: cases, and its promises under random input. */
#include "tap.h"

#include "source/cputime.h"

TEST(cases)
{
	struct cputime said = { 0 };

	cputime_adjust(&said, 1000, 0, 0); /* no tick yet: all is user */
	EXPECT_EQ(said.user, 1000);
	EXPECT_EQ(said.system, 0);
	cputime_adjust(&said, 3000, 0, 4000); /* system ticks only: user may not fall */
	EXPECT_EQ(said.user, 1000);
	EXPECT_EQ(said.system, 2000);
	cputime_adjust(&said, 9000, 4000, 4000); /* half and half */
	EXPECT_EQ(said.user, 4500);
	EXPECT_EQ(said.system, 4500);
	cputime_adjust(&said, 10000, 40000, 4000); /* system stands still while user grows */
	EXPECT_EQ(said.user, 5500);
	EXPECT_EQ(said.system, 4500);
	cputime_adjust(&said, 10000, 80000, 4000); /* no run time: nothing moves */
	EXPECT_EQ(said.user, 5500);
	cputime_adjust(&said, 9000, 80000, 4000); /* less run time than was said */
	EXPECT_EQ(said.user + said.system, 10000);
}

TEST(products_beyond_64_bits)
{
	struct cputime said = { 0 };
	uint64_t year = 31536000000000000ull;

	cputime_adjust(&said, 200 * year, 100 * year, 100 * year);
	EXPECT_EQ(said.user, 100 * year);
	EXPECT_EQ(said.system, 100 * year);
}

TEST(monotone_and_summing)
{
	struct cputime said = { 0 }, last = { 0 };
	uint64_t exec = 0, utime = 0, stime = 0, r = 1;

	for (int i = 0; i < 1000000; i++) {
		r = r * 6364136223846793005ull + 1442695040888963407ull;
		exec += r >> 44;
		utime += r >> 20 & 1 ? 4000000 : 0;
		stime += r >> 21 & 1 ? 4000000 : 0;
		cputime_adjust(&said, exec, utime, stime);
		EXPECT(said.user >= last.user && said.system >= last.system);
		EXPECT_EQ(said.user + said.system, exec);
		last = said;
	}
}

TAP_MAIN
