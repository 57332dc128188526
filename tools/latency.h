/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * latency.h -- collects the times of operations of one kind, and computes statistics.
 *
 * The samples are kept in a histogram: its memory does not depend on the number of samples, and a
 * percentile is off by 0.4 % at most. The minimum and the maximum are exact.
 */
#ifndef TOOL_LATENCY_H
#define TOOL_LATENCY_H

#include <stddef.h>
#include <stdint.h>

/* 128 buckets for each power of two: the 8 leading bits of a value select its bucket. */
#define LATENCY_BUCKETS (57 * 128 + 128)

struct latency {
	uint64_t count, min_ns, max_ns;
	uint64_t buckets[LATENCY_BUCKETS];
};

/* Forget all samples. Call this also before the first use. */
void latency_reset(struct latency *l);
void latency_add(struct latency *l, uint64_t ns);
/* Returns the nearest rank: the smallest value that `permille` of 1000 samples do not exceed.
 * permille 0: the minimum. Returns 0 without samples. */
double latency_permille_us(const struct latency *l, unsigned permille);

#endif
