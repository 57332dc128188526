/* SPDX-License-Identifier: BSD-3-Clause */
/* prng.h -- the only source of random choices in a run; the same seed gives the same run. */
#ifndef SIM_PRNG_H
#define SIM_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
	uint64_t state;
};

static inline uint64_t prng_next(struct prng *p)
{
	uint64_t z = p->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Returns a number in 0 .. n-1; n > 0. */
static inline uint64_t prng_below(struct prng *p, uint64_t n)
{
	return prng_next(p) % n;
}

static inline uint64_t prng_between(struct prng *p, uint64_t lo, uint64_t hi)
{
	return lo + prng_below(p, hi - lo + 1);
}

static inline bool prng_chance(struct prng *p, unsigned percent)
{
	return prng_below(p, 100) < percent;
}

#endif
