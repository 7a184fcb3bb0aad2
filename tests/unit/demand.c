/* SPDX-License-Identifier: MIT */
/* On-demand passes: sharing and the CPU budget, with a clock of the test's own. */
#include "daemon/demand.h"

#include "base/clock.h"
#include "tap.h"

#define MS NSEC_PER_MSEC

TEST(nothing_wanted)
{
	struct demand d;

	demand_init(&d, 10, 1000 * MS);
	EXPECT(demand_due(&d, 1000 * MS) == DEMAND_NEVER);
	EXPECT(demand_due(&d, 900000 * MS) == DEMAND_NEVER);
}

/* Whoever asked before a pass began shares it; who asked for a later one does not. */
TEST(one_pass_for_all_who_wait)
{
	struct demand d;

	demand_init(&d, 10, 1000 * MS);
	demand_ask(&d, 1000 * MS);
	demand_ask(&d, 1003 * MS);
	demand_ask(&d, 1001 * MS);
	EXPECT(demand_due(&d, 1004 * MS) == 1004 * MS);
	demand_done(&d, 1004 * MS, MS, 1);
	EXPECT(demand_due(&d, 1005 * MS) == DEMAND_NEVER);

	demand_ask(&d, 1006 * MS);
	demand_done(&d, 1005 * MS, MS, 1); /* began before that was asked */
	EXPECT(demand_due(&d, 1007 * MS) == 1007 * MS);
	demand_done(&d, 1007 * MS, MS, 0); /* a scheduled one does as well */
	EXPECT(demand_due(&d, 1008 * MS) == DEMAND_NEVER);
}

/* Someone who asks all the time gets at most the share, whatever a pass costs. */
TEST(budget)
{
	static const uint64_t costs[] = { MS / 10, MS, 7 * MS, 150 * MS };

	for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++) {
		uint64_t start = 5000 * MS, now = start, spent = 0;
		struct demand d;

		demand_init(&d, 10, now);
		demand_done(&d, now, costs[i], 0);
		while (now < start + 60000 * MS) {
			uint64_t due;

			demand_ask(&d, now);
			due = demand_due(&d, now);
			REQUIRE(due != DEMAND_NEVER && due >= now);
			EXPECT(due == now || demand_due(&d, due - 200) > due - 200);
			EXPECT(demand_due(&d, due) == due);
			demand_done(&d, due, costs[i], 1);
			spent += costs[i];
			now = due + costs[i];
		}
		/* 10 % of a minute, the bucket that was full at the start, and one pass more */
		EXPECT(spent <= 6000 * MS + 100 * MS + 2 * costs[i], "%llu ms",
		       (unsigned long long)(spent / MS));
		EXPECT(spent >= 5500 * MS, "%llu ms", (unsigned long long)(spent / MS));
	}
}

TEST(scheduled_passes_are_free)
{
	struct demand d;

	demand_init(&d, 10, 1000 * MS);
	for (int i = 0; i < 100; i++)
		demand_done(&d, 1000 * MS, 90 * MS, 0);
	demand_ask(&d, 1001 * MS);
	EXPECT(demand_due(&d, 1001 * MS) == 1001 * MS);
}

TEST(failed_pass_keeps_the_request)
{
	struct demand d;

	demand_init(&d, 10, 1000 * MS);
	demand_ask(&d, 1000 * MS);
	demand_failed(&d, 1000 * MS, 200 * MS, 1);
	EXPECT(demand_due(&d, 1000 * MS) == 3000 * MS, "the budget is spent");
}

/* Passes that fail at once and cost nothing are not made as fast as the budget lets them. */
TEST(cheap_failures_are_spaced)
{
	uint64_t now = 1000 * MS;
	struct demand d;

	demand_init(&d, 10, now);
	demand_ask(&d, now);
	for (int on_demand = 0; on_demand < 2; on_demand++) {
		demand_failed(&d, now, 0, on_demand);
		EXPECT(demand_due(&d, now) == now + 1000 * MS);
		now += 1000 * MS;
		EXPECT(demand_due(&d, now) == now);
	}
	demand_failed(&d, now, 0, 1);
	demand_done(&d, now + 1, 0, 0);
	demand_ask(&d, now + 2);
	EXPECT(demand_due(&d, now + 2) == now + 2, "it works again");
}

TEST(zero_percent_is_never)
{
	struct demand d;

	demand_init(&d, 0, 1000 * MS);
	demand_ask(&d, 1000 * MS);
	EXPECT(demand_due(&d, 1000 * MS) == DEMAND_NEVER);
}

/* The clock may stand still or the calls come late: no overflow, no debt forgiven twice. */
TEST(odd_clocks)
{
	struct demand d;

	demand_init(&d, 100, 1000 * MS);
	demand_ask(&d, 1);
	demand_failed(&d, 1000 * MS, UINT64_MAX, 1);
	EXPECT(demand_due(&d, 1000 * MS) > 3600000 * MS);
	EXPECT(demand_due(&d, 10) > 3600000 * MS);
	EXPECT(demand_due(&d, UINT64_MAX - 1) == UINT64_MAX - 1);
}

TAP_MAIN
