/* SPDX-License-Identifier: MIT */
/*
 * After fork(): the child lets go of its parent's trees. Its updates end by themselves (the selector
 * reads 0, inline.h); here it closes what would keep a tree's locks after the parent's death, so that
 * readers see that the producer is gone. fork() waits while a tree is opened or closed: the child
 * would have descriptors that it knows nothing of.
 */
#include <pthread.h>
#include <string.h>

#include "engine/tree.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list; taken before a tree's */
static struct freshet_tree *first;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	for (struct freshet_tree *t = first; t; t = t->next) {
		writer_disown(t->writer);
		/* Already so, but under an emulator that ignores MADV_WIPEONFORK: qemu-user. */
		memset(t->hot, 0, sizeof(*t->hot));
	}
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

void fork_hold(void)
{
	pthread_mutex_lock(&lock);
}

void fork_let(void)
{
	pthread_mutex_unlock(&lock);
}

void fork_register(struct freshet_tree *t)
{
	t->next = first;
	t->link = &first;
	if (first)
		first->link = &t->next;
	first = t;
}

void fork_unregister(struct freshet_tree *t)
{
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
}
