/* SPDX-License-Identifier: BSD-3-Clause */
/* latency.h -- measures how long the last flushes took, with two histograms that are used
 * alternately. */
#ifndef MIRROR_LATENCY_H
#define MIRROR_LATENCY_H

#include "mirror/core/resync_rate.h"

struct latency {
	struct resync_latencies now, last;
	uint64_t turned_ms;
};

static inline void latency_add(struct latency *l, uint64_t took_us)
{
	resync_latencies_add(&l->now, took_us);
}

/* Forget old times, if there are enough new times. */
void latency_tick(struct latency *l, uint64_t now_ms);
/* Returns the time within which `percent` percent of the flushes completed. The value is at most an
 * eighth too high. 0: no flush was measured. */
uint32_t latency_percentile(const struct latency *l, unsigned percent);

#endif
