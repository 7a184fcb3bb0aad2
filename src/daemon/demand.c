/* SPDX-License-Identifier: MIT */
/* Implements demand.h. */
#include "daemon/demand.h"

#include "base/clock.h"

/* A pass that fails at once costs next to nothing: the budget alone would let it fail all the time. */
#define RETRY_NS NSEC_PER_SEC

void demand_init(struct demand *d, uint32_t percent, uint64_t now_ns)
{
	int64_t share = (int64_t)(NSEC_PER_SEC / 100 * percent);

	*d = (struct demand){
		.percent = percent, .tokens_ns = share, .capacity_ns = share, .filled_ns = now_ns
	};
}

void demand_ask(struct demand *d, uint64_t since_ns)
{
	if (since_ns > d->since_ns)
		d->since_ns = since_ns;
}

static void fill(struct demand *d, uint64_t now_ns)
{
	/* In whole percents of 100 ns, so that many small steps lose nothing. */
	uint64_t hundreds = now_ns > d->filled_ns ? (now_ns - d->filled_ns) / 100 : 0;
	uint64_t room = (uint64_t)(d->capacity_ns - d->tokens_ns);

	if (!d->percent || hundreds > room / d->percent) {
		d->tokens_ns = d->capacity_ns;
		d->filled_ns = now_ns;
		return;
	}
	d->tokens_ns += (int64_t)(hundreds * d->percent);
	d->filled_ns += hundreds * 100;
}

uint64_t demand_due(struct demand *d, uint64_t now_ns)
{
	int64_t need;
	uint64_t due;

	if (!d->since_ns || !d->percent)
		return DEMAND_NEVER;
	fill(d, now_ns);
	/* A pass dearer than the bucket is deep may start when it is full. */
	need = d->cost_ns < (uint64_t)d->capacity_ns ? (int64_t)d->cost_ns : d->capacity_ns;
	if (d->tokens_ns >= need)
		due = now_ns;
	else
		due = d->filled_ns +
		      ((uint64_t)(need - d->tokens_ns) + d->percent - 1) / d->percent * 100;
	return due > d->retry_ns ? due : d->retry_ns;
}

static void spend(struct demand *d, uint64_t cpu_ns, int on_demand)
{
	if (cpu_ns > NSEC_PER_SEC * 3600)
		cpu_ns = NSEC_PER_SEC * 3600;
	d->cost_ns = cpu_ns;
	if (on_demand)
		d->tokens_ns -= (int64_t)cpu_ns;
}

void demand_failed(struct demand *d, uint64_t now_ns, uint64_t cpu_ns, int on_demand)
{
	spend(d, cpu_ns, on_demand);
	d->retry_ns = now_ns < UINT64_MAX - RETRY_NS ? now_ns + RETRY_NS : UINT64_MAX;
}

void demand_done(struct demand *d, uint64_t begin_ns, uint64_t cpu_ns, int on_demand)
{
	spend(d, cpu_ns, on_demand);
	d->retry_ns = 0;
	if (d->since_ns <= begin_ns)
		d->since_ns = 0;
}
