/* SPDX-License-Identifier: MIT */
/* Implements ledger.h. */
#include "source/ledger.h"

#include <string.h>

#include "source/counters.h"

bool ledger_reading(struct ledger *l, const struct pass_counters *flushed,
		    const struct pass_counters *handed)
{
	struct pass_counters left = *flushed;
	bool agrees;

	if (!counters_sub(&left, handed)) { /* below zero: torn */
		l->read = false;
		return false;
	}
	agrees = l->read && memcmp(&left, &l->left, sizeof(left)) == 0;
	l->left = left;
	l->read = true;
	return agrees;
}
