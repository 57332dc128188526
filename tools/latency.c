/* SPDX-License-Identifier: BSD-3-Clause */
#include "latency.h"

#include <string.h>

void latency_reset(struct latency *l)
{
	memset(l, 0, sizeof(*l));
}

void latency_add(struct latency *l, uint64_t ns)
{
	/* the number of bits by which to shift the value right so that 8 bits remain */
	unsigned shift = ns < 256 ? 0 : 56 - (unsigned)__builtin_clzll(ns);

	l->buckets[shift * 128 + (ns >> shift)]++;
	if (l->count++ == 0 || ns < l->min_ns)
		l->min_ns = ns;
	if (ns > l->max_ns)
		l->max_ns = ns;
}

/* Returns the middle of a bucket. */
static uint64_t latency_of_bucket(size_t bucket)
{
	uint64_t shift = bucket < 256 ? 0 : bucket / 128 - 1;
	uint64_t low = (bucket - shift * 128) << shift;

	return low + (shift ? 1ull << (shift - 1) : 0);
}

double latency_permille_us(const struct latency *l, unsigned permille)
{
	uint64_t rank = (l->count * permille + 999) / 1000, below = 0, ns;
	size_t bucket = 0;

	if (rank <= 1)
		return (double)l->min_ns / 1e3;
	if (rank == l->count)
		return (double)l->max_ns / 1e3;
	while ((below += l->buckets[bucket]) < rank)
		bucket++;
	ns = latency_of_bucket(bucket);
	ns = ns < l->min_ns ? l->min_ns : ns > l->max_ns ? l->max_ns : ns;
	return (double)ns / 1e3;
}
