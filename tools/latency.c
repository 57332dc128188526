/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "latency.h"

int latency_init(struct latency *l, size_t room)
{
	*l = (struct latency){.ns = calloc(room, sizeof(*l->ns)), .room = room};
	return l->ns ? 0 : -ENOMEM;
}

void latency_fini(struct latency *l)
{
	free(l->ns);
	*l = (struct latency){0};
}

void latency_add(struct latency *l, uint64_t ns)
{
	if (l->count < l->room)
		l->ns[l->count++] = ns;
}

uint64_t latency_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int latency_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Nearest rank: the smallest sample that at least that share of all samples does not exceed. */
static double latency_rank_us(const struct latency *l, unsigned percent)
{
	size_t rank = (l->count * percent + 99) / 100;

	return (double)l->ns[rank ? rank - 1 : 0] / 1e3;
}

struct latency_summary latency_summarise(struct latency *l)
{
	qsort(l->ns, l->count, sizeof(*l->ns), latency_compare);
	return (struct latency_summary){
		.count = l->count,
		.min_us = latency_rank_us(l, 0),
		.median_us = latency_rank_us(l, 50),
		.p99_us = latency_rank_us(l, 99),
		.max_us = latency_rank_us(l, 100),
	};
}
