/* SPDX-License-Identifier: BSD-3-Clause */
/* sched.c -- events ordered by time, random numbers, and the hosts' clocks. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

static bool sched_is_before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sched_add(struct world *w, uint64_t delay, sim_fn *fn, uint32_t host, uint32_t uid,
	       uint64_t arg, void *data)
{
	size_t i = w->heap_count++;

	if (w->heap_count > w->heap_room) {
		w->heap_room = w->heap_room ? 2 * w->heap_room : 1024;
		w->heap = realloc(w->heap, w->heap_room * sizeof(*w->heap));
		if (!w->heap)
			abort();
	}
	struct event e = {w->now + delay, w->order++, fn, host, uid, arg, data};

	while (i > 0 && sched_is_before(&e, &w->heap[(i - 1) / 2])) {
		w->heap[i] = w->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	w->heap[i] = e;
}

bool sched_next(struct world *w, struct event *e)
{
	size_t i = 0;

	if (w->heap_count == 0)
		return false;
	*e = w->heap[0];
	struct event last = w->heap[--w->heap_count];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < w->heap_count &&
		    sched_is_before(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (child >= w->heap_count || !sched_is_before(&w->heap[child], &last))
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	w->heap[i] = last;
	w->now = e->at;
	return true;
}

void sched_clear(struct world *w)
{
	for (size_t i = 0; i < w->heap_count; i++)
		free(w->heap[i].data);
	w->heap_count = 0;
}

uint64_t sim_random(void *world)
{
	struct world *w = world;

	return prng_next(&w->rng) | 1;
}

bool sim_chance(struct world *w, unsigned permille)
{
	return prng_below(&w->rng, 1000) < permille;
}

uint64_t sim_between(struct world *w, uint64_t lo, uint64_t hi)
{
	return prng_between(&w->rng, lo, hi);
}

uint64_t sim_delay(struct world *w)
{
	if (w->healing || plan_is_smooth(w) || !sim_chance(w, 30))
		return sim_between(w, 20, 900);
	return sim_chance(w, 200) ? sim_between(w, 50 * MS, 600 * MS) : sim_between(w, MS, 20 * MS);
}

uint64_t host_us(const struct world *w, const struct host *h)
{
	return (uint64_t)((double)w->now * h->clock_rate + (double)h->clock_offset);
}

uint64_t host_ms(const struct world *w, const struct host *h)
{
	return host_us(w, h) / MS;
}

void sim_trace(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (!w->trace)
		return;
	printf("%9llu ", (unsigned long long)w->now);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}
