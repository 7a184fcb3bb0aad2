/* SPDX-License-Identifier: MIT */
/* Implements ledger.h, where the rule is argued. */
#include "source/ledger.h"

#include "source/counters.h"

bool ledger_reading(struct ledger *l, const struct pass_ledger *of,
		    const struct pass_counters *handed, bool has_subtree, uint64_t at_ns)
{
	bool unmoved = l->read && counters_equal(&l->all, &of->all) &&
		       counters_equal(&l->own, &of->own) && counters_equal(&l->handed, handed) &&
		       counters_equal(&l->subtree, &of->subtree);
	struct pass_counters left = of->all;
	bool sound, proved;

	l->all = of->all;
	l->own = of->own;
	l->handed = *handed;
	l->subtree = of->subtree;
	l->read = true;
	sound = counters_sub(&left, &of->own);
	sound &= counters_sub(&left, handed);
	if (!sound || !l->same || !counters_equal(&left, &l->left)) {
		l->left = left;
		l->since_ns = at_ns;
		l->same = sound;
		return sound && counters_equal(&left, &l->believed);
	}
	l->same++;
	proved = (has_subtree && unmoved && counters_equal(&of->all, &of->subtree)) ||
		 (l->same >= 3 && at_ns - l->since_ns >= LEDGER_SPAN_NS);
#ifdef PLANT_TWO_READINGS /* for the test with a simulated kernel, which must notice it */
	proved = true;
#endif
	if (!proved)
		return counters_equal(&left, &l->believed);
	l->believed = left;
	return true;
}
