/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/slices.h"

/* In the order of their beginning. */
static struct list running = LIST_INIT(running);
static unsigned all, readers;

void slices_begin(struct slice *slice, bool reading)
{
	*slice = (struct slice){.start_ns = clock_now_ns(), .reading = reading};
	list_add_tail(&running, &slice->node);
	all++;
	readers += reading;
}

void slices_end(struct slice *slice)
{
	list_del(&slice->node);
	all--;
	readers -= slice->reading;
}

static uint64_t stuck_at(const struct slice *s, bool reading)
{
	return s->start_ns + (reading ? READER_STUCK_NS : STUCK_NS);
}

bool slices_below(unsigned max, bool reading)
{
	unsigned n = reading ? readers : all;
	struct list *it;
	uint64_t now_ns;

	if (n < max)
		return true;
	now_ns = clock_now_ns();
	list_for_each (it, &running) {
		const struct slice *s = container_of(it, struct slice, node);

		if (stuck_at(s, reading) > now_ns)
			break;
		n -= !reading || s->reading;
	}
	return n < max;
}

uint64_t slices_next_stuck(void)
{
	uint64_t now_ns = clock_now_ns(), next_ns = CLOCK_NEVER;
	struct list *it;

	list_for_each (it, &running) {
		const struct slice *s = container_of(it, struct slice, node);

		for (int reading = 0; reading <= s->reading; reading++) {
			uint64_t at_ns = stuck_at(s, reading);

			if (at_ns > now_ns && at_ns < next_ns)
				next_ns = at_ns;
		}
	}
	return next_ns == CLOCK_NEVER ? 0 : next_ns;
}

void slices_forget(void)
{
	list_init(&running);
	all = readers = 0;
}
