/* SPDX-License-Identifier: MIT */
/*
 * Publishing a tree's rows and shape as a pass of its segment.
 *
 * Between two publications lie at least SPACING times the CPU time that the former took, flush
 * included: so a reader, whose work is less than a flush's, meets at most a few, and the two that
 * bank_whole() lets pass are enough. (CPU time: a flusher that was preempted disturbed nobody.) Nobody
 * else waits for that: who only looks up a group, or makes one for later.
 */
#include <errno.h>
#include <time.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "engine/tree.h"

#define SPACING     4
#define SPIN_BELOW_NS 20000 /* a sleep takes longer than that */

static uint64_t cpu_ns(void)
{
	struct timespec ts = { 0 }; /* a system call, which a sandbox may forbid */

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static bool sleeps(uint64_t until_ns)
{
	return until_ns > clock_ns() + SPIN_BELOW_NS;
}

static void sleep_until(uint64_t ns)
{
	struct timespec until = {
		.tv_sec = (time_t)(ns / NSEC_PER_SEC),
		.tv_nsec = (long)(ns % NSEC_PER_SEC),
	};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

void publish_turn(struct freshet_tree *t)
{
	while (sleeps(t->not_before_ns)) {
		uint64_t until = t->not_before_ns;

		pthread_mutex_unlock(&t->lock);
		sleep_until(until);
		pthread_mutex_lock(&t->lock);
	}
}

uint64_t publish_wait(struct freshet_tree *t)
{
	uint64_t now;

	if (sleeps(t->not_before_ns))
		sleep_until(t->not_before_ns);
	while ((now = clock_ns()) < t->not_before_ns)
		;
	t->work_began_ns = cpu_ns();
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
	writer_begin(t->writer, began);
	if (t->shape_changed)
		give_shape(t);
	writer_publish(t->writer, clock_ns());
	t->not_before_ns = clock_ns() + SPACING * (cpu_ns() - t->work_began_ns);
}
