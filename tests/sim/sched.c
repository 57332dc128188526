/* SPDX-License-Identifier: BSD-3-Clause */
#include "sched.h"

#include <stdlib.h>

static bool sched_is_earlier(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void sched_swap(struct event *a, struct event *b)
{
	struct event t = *a;

	*a = *b;
	*b = t;
}

void sched_fini(struct sched *s)
{
	free(s->heap);
	*s = (struct sched){0};
}

void sched_clear(struct sched *s)
{
	s->count = 0;
	s->order = 0;
}

void sched_add(struct sched *s, uint64_t at, enum event_kind kind, int node, uint64_t arg)
{
	size_t i = s->count++;

	if (s->count > s->room) {
		s->room = s->room ? 2 * s->room : 256;
		s->heap = realloc(s->heap, s->room * sizeof(*s->heap));
		if (!s->heap)
			abort();
	}
	s->heap[i] = (struct event){
		.at = at, .order = s->order++, .kind = kind, .node = node, .arg = arg};
	for (; i > 0 && sched_is_earlier(&s->heap[i], &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		sched_swap(&s->heap[i], &s->heap[(i - 1) / 2]);
}

void sched_drop(struct sched *s, enum event_kind kind, unsigned conn)
{
	struct event *old = s->heap;
	size_t count = s->count;

	s->heap = NULL;
	s->count = s->room = 0;
	for (size_t i = 0; i < count; i++) {
		if (old[i].kind != kind || (unsigned)old[i].node / 2 != conn)
			sched_add(s, old[i].at, old[i].kind, old[i].node, old[i].arg);
	}
	free(old);
}

bool sched_pop(struct sched *s, struct event *out)
{
	size_t i = 0, child;

	if (s->count == 0)
		return false;
	*out = s->heap[0];
	s->heap[0] = s->heap[--s->count];
	while ((child = 2 * i + 1) < s->count) {
		if (child + 1 < s->count && sched_is_earlier(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!sched_is_earlier(&s->heap[child], &s->heap[i]))
			break;
		sched_swap(&s->heap[i], &s->heap[child]);
		i = child;
	}
	return true;
}
