/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/latency.h"

#include <string.h>

#define LATENCY_TURN_MS    10000
#define LATENCY_TURN_COUNT 1000

void latency_tick(struct latency *l, uint64_t now_ms)
{
	if (!l->now.count ||
	    (l->now.count < LATENCY_TURN_COUNT && now_ms - l->turned_ms < LATENCY_TURN_MS))
		return;
	l->last = l->now;
	memset(&l->now, 0, sizeof(l->now));
	l->turned_ms = now_ms;
}

uint32_t latency_percentile(const struct latency *l, unsigned percent)
{
	struct resync_latencies both = l->last;

	for (unsigned i = 0; i < RESYNC_LATENCIES; i++)
		both.classes[i] += l->now.classes[i];
	both.count += l->now.count;
	return (uint32_t)resync_latencies_percentile(&both, percent);
}
