/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * samples.h -- keeps the duration of each operation, in memory that is allocated before the first
 * operation.
 *
 * The memory is shared with processes that are forked later. Only one process may add samples.
 */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#define SAMPLES_MAX (2u << 20)

struct samples {
	size_t count;   /* number of samples that are kept */
	uint64_t total; /* number of all samples, including those for which there was no space */
	uint32_t ns[SAMPLES_MAX];
};

struct samples *samples_new(void);
void samples_delete(struct samples *s);
void samples_clear(struct samples *s);
/* Add a time. A time of more than 4 s counts as 4 s. */
static inline void samples_add(struct samples *s, uint64_t ns)
{
	s->total++;
	if (s->count < SAMPLES_MAX)
		s->ns[s->count++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}
/* Call this before samples_percentile_us(). */
void samples_sort(struct samples *s);
/* Returns the smallest sample that is at least as large as `percent` of all samples. */
double samples_percentile_us(const struct samples *s, double percent);
double samples_mean_us(const struct samples *s);

#endif
