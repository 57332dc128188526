/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/pool.h"

/* Running slices, in the order of their start. */
static struct list slices_running = LIST_INIT(slices_running);
static unsigned slices_all, slices_readers;

void slices_begin(struct slice *slice, bool reading)
{
	*slice = (struct slice){.start_ns = clock_now_ns(), .reading = reading};
	list_add_tail(&slices_running, &slice->node);
	slices_all++;
	slices_readers += reading;
}

void slices_end(struct slice *slice)
{
	list_del(&slice->node);
	slices_all--;
	slices_readers -= slice->reading;
}

static uint64_t slice_stalls_at(const struct slice *s, bool reading)
{
	return s->start_ns + (reading ? SLICE_READER_STALLED_NS : SLICE_STALLED_NS);
}

bool slices_below(unsigned max, bool reading)
{
	unsigned n = reading ? slices_readers : slices_all;
	struct list *it;
	uint64_t now_ns;

	if (n < max)
		return true;
	now_ns = clock_now_ns();
	list_for_each (it, &slices_running) {
		const struct slice *s = container_of(it, struct slice, node);

		if (slice_stalls_at(s, reading) > now_ns)
			break;
		n -= !reading || s->reading;
	}
	return n < max;
}

uint64_t slices_next_stall(void)
{
	uint64_t now_ns = clock_now_ns(), next_ns = CLOCK_NEVER;
	struct list *it;

	list_for_each (it, &slices_running) {
		const struct slice *s = container_of(it, struct slice, node);

		for (int reading = 0; reading <= s->reading; reading++) {
			uint64_t at_ns = slice_stalls_at(s, reading);

			if (at_ns > now_ns && at_ns < next_ns)
				next_ns = at_ns;
		}
	}
	return next_ns == CLOCK_NEVER ? 0 : next_ns;
}

void slices_forget(void)
{
	list_init(&slices_running);
	slices_all = slices_readers = 0;
}
