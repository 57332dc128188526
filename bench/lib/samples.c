/* SPDX-License-Identifier: BSD-3-Clause */
#include "samples.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "die.h"

struct samples *samples_new(void)
{
	struct samples *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (s == MAP_FAILED)
		die_errno("memory for samples");
	return s;
}

void samples_delete(struct samples *s)
{
	munmap(s, sizeof(*s));
}

void samples_clear(struct samples *s)
{
	s->count = 0;
	s->total = 0;
}

static int samples_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

void samples_sort(struct samples *s)
{
	qsort(s->ns, s->count, sizeof(s->ns[0]), samples_compare);
}

double samples_percentile_us(const struct samples *s, double percent)
{
	size_t rank = (size_t)ceil((double)s->count * percent / 100);

	if (!s->count)
		return 0;
	return (double)s->ns[rank ? rank - 1 : 0] / 1e3;
}

double samples_mean_us(const struct samples *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->count; i++)
		sum += s->ns[i];
	return s->count ? sum / (double)s->count / 1e3 : 0;
}
