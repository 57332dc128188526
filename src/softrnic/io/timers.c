/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timers.c -- a pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986): no timer is earlier than
 * its parent. Setting a timer takes constant time. Removing a timer takes logarithmic time on
 * average.
 */
#include "softrnic/io/timers.h"

#include <stddef.h>

#include "base/clock.h"

static void timers_link(struct eng_timer **ref, struct eng_timer *timer)
{
	*ref = timer;
	if (timer)
		timer->ref = ref;
}

/* Merge two heaps without siblings. */
static struct eng_timer *timers_merge(struct eng_timer *a, struct eng_timer *b)
{
	struct eng_timer *first = a, *second = b;

	if (!a || !b)
		return a ? a : b;
	if (b->at < a->at) {
		first = b;
		second = a;
	}
	timers_link(&second->next, first->child);
	timers_link(&first->child, second);
	return first;
}

/* Merge a list of siblings into one heap: first merge neighbours into pairs, then merge the pairs,
 * from the last to the first. */
static struct eng_timer *timers_merge_all(struct eng_timer *list)
{
	struct eng_timer *pairs = NULL, *heap = NULL;

	while (list) {
		struct eng_timer *a = list, *b = a->next, *pair;

		list = b ? b->next : NULL;
		a->next = NULL;
		if (b)
			b->next = NULL;
		pair = timers_merge(a, b);
		pair->next = pairs;
		pairs = pair;
	}
	while (pairs) {
		struct eng_timer *pair = pairs;

		pairs = pair->next;
		pair->next = NULL;
		heap = timers_merge(heap, pair);
	}
	return heap;
}

static void timers_remove(struct timers *t, struct eng_timer *timer)
{
	timers_link(timer->ref, timer->next);
	timer->next = NULL;
	timer->ref = NULL;
	timers_link(&t->first, timers_merge(t->first, timers_merge_all(timer->child)));
	timer->child = NULL;
}

void timers_set(struct timers *t, struct eng_timer *timer, uint64_t at)
{
	if (timer->ref)
		timers_remove(t, timer);
	timer->at = at;
	if (at != CLOCK_NEVER)
		timers_link(&t->first, timers_merge(t->first, timer));
}

uint64_t timers_next(const struct timers *t)
{
	return t->first ? t->first->at : CLOCK_NEVER;
}

struct eng_timer *timers_expired(struct timers *t, uint64_t now)
{
	struct eng_timer *timer = t->first;

	if (timers_next(t) > now)
		return NULL;
	timers_remove(t, timer);
	timer->at = CLOCK_NEVER;
	return timer;
}
