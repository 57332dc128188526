/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/engine/timers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

static void timers_put(struct timers *t, unsigned slot, struct eng_timer *timer)
{
	t->heap[slot] = timer;
	timer->slot = slot;
}

static void timers_up(struct timers *t, unsigned slot, struct eng_timer *timer)
{
	while (slot > 1 && t->heap[slot / 2]->at > timer->at) {
		timers_put(t, slot, t->heap[slot / 2]);
		slot /= 2;
	}
	timers_put(t, slot, timer);
}

static void timers_down(struct timers *t, unsigned slot, struct eng_timer *timer)
{
	for (;;) {
		unsigned child = 2 * slot;

		if (child < t->count && t->heap[child + 1]->at < t->heap[child]->at)
			child++;
		if (child > t->count || t->heap[child]->at >= timer->at)
			break;
		timers_put(t, slot, t->heap[child]);
		slot = child;
	}
	timers_put(t, slot, timer);
}

static int timers_grow(struct timers *t)
{
	unsigned room = t->room ? 2 * t->room : 64;
	struct eng_timer **heap = realloc(t->heap, (room + 1) * sizeof(*heap));

	if (!heap)
		return -ENOMEM;
	t->heap = heap;
	t->room = room;
	return 0;
}

static void timers_remove(struct timers *t, struct eng_timer *timer)
{
	unsigned slot = timer->slot;
	struct eng_timer *last = t->heap[t->count--];

	timer->slot = 0;
	if (last == timer)
		return;
	if (slot > 1 && t->heap[slot / 2]->at > last->at)
		timers_up(t, slot, last);
	else
		timers_down(t, slot, last);
}

int timers_set(struct timers *t, struct eng_timer *timer, uint64_t at)
{
	if (timer->slot)
		timers_remove(t, timer);
	timer->at = at;
	if (at == CLOCK_NEVER)
		return 0;
	if (t->count == t->room && timers_grow(t))
		return -ENOMEM;
	t->count++;
	timers_up(t, t->count, timer);
	return 0;
}

uint64_t timers_next(const struct timers *t)
{
	return t->count ? t->heap[1]->at : CLOCK_NEVER;
}

struct eng_timer *timers_expired(struct timers *t, uint64_t now)
{
	struct eng_timer *timer;

	if (timers_next(t) > now)
		return NULL;
	timer = t->heap[1];
	timers_remove(t, timer);
	timer->at = CLOCK_NEVER;
	return timer;
}

void timers_clear(struct timers *t)
{
	free(t->heap);
	*t = (struct timers){0};
}
