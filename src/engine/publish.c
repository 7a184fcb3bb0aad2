/* SPDX-License-Identifier: MIT */
/*
 * Publishing a tree's rows and shape as a pass of its segment.
 *
 * Between two publications lie at least SPACING times the former's duration, from its begin to its
 * end, flush included: so a reader, whose work is less than a flush's, meets at most a few, and the
 * two that bank_whole() lets pass are enough.
 */
#include <errno.h>
#include <time.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "engine/tree.h"

#define SPACING     4
#define SPIN_BELOW_NS 20000 /* a sleep takes longer than that */

uint64_t publish_wait(struct freshet_tree *t)
{
	uint64_t now = clock_ns();

	while (now < t->not_before_ns) {
		if (t->not_before_ns - now > SPIN_BELOW_NS) {
			struct timespec until = {
				.tv_sec = (time_t)(t->not_before_ns / NSEC_PER_SEC),
				.tv_nsec = (long)(t->not_before_ns % NSEC_PER_SEC),
			};

			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		}
		now = clock_ns();
	}
	return now;
}

/* The node after n in pre-order; NO_NODE at the end. */
static uint32_t next_node(const struct freshet_tree *t, uint32_t n)
{
	if (t->nodes[n].first_child != NO_NODE)
		return t->nodes[n].first_child;
	while (n != NO_NODE && t->nodes[n].next == NO_NODE)
		n = t->nodes[n].parent;
	return n == NO_NODE ? NO_NODE : t->nodes[n].next;
}

static void give_shape(struct freshet_tree *t)
{
	uint32_t count = 0, overflowed;

	for (uint32_t n = 0; n != NO_NODE; n = next_node(t, n)) {
		const struct node *node = &t->nodes[n];

		t->scratch[n] = count;
		t->order[count++] = (struct writer_node){
			.id = node->id,
			.name = node->name,
			.parent = node->parent == NO_NODE ? 0 : t->scratch[node->parent],
			.slot = n,
		};
	}
	/* Nothing can overflow: every node has its slot. */
	writer_shape(t->writer, t->order, count, &overflowed);
	t->shape_changed = false;
}

void publish(struct freshet_tree *t, uint64_t began)
{
	uint64_t end;

	writer_begin(t->writer, began);
	if (t->shape_changed)
		give_shape(t);
	end = clock_ns();
	writer_publish(t->writer, end);
	end = clock_ns();
	t->not_before_ns = end + SPACING * (end - began);
}
