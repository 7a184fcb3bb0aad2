/* SPDX-License-Identifier: MIT */
/*
 * freshet-bench-prometheus-cpp: what Counter::Increment() of prometheus-cpp costs, for `freshet-bench
 * update` (peer.h). The counters' references are kept, as a program in a hurry does; finding one by
 * its labels costs much more.
 */
#include <cinttypes>
#include <cstdio>
#include <string>

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include "loops.h"
#include "workers.h"

static prometheus::Counter *counters[LOOPS_CELLS];

#define GET(cells, i)   (static_cast<prometheus::Counter **>(cells)[i])
#define INCREMENT(c, i) ((c)->Increment())

LOOPS(prometheus_cpp, prometheus::Counter *, GET, INCREMENT)

int main()
{
	prometheus::Registry registry;
	auto &family = prometheus::BuildCounter().Name("updates").Register(registry);
	contender c = {};
	unsigned threads, cells;
	uint64_t ns;

	for (unsigned i = 0; i < LOOPS_CELLS; i++)
		counters[i] = &family.Add({ { "tenant", std::to_string(i) } });
	c.what = "prometheus-cpp";
	c.one = prometheus_cpp_one;
	c.many = prometheus_cpp_many;
	c.cells[0] = c.cells[1] = counters;
	if (workers_begin() < 0)
		return 1;
	while (std::scanf("%u %u %" SCNu64, &threads, &cells, &ns) == 3) {
		std::printf("%.6f\n", workers_measure(&c, threads, cells, ns));
		std::fflush(stdout);
	}
	workers_end();
	return 0;
}
