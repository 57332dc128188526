/* SPDX-License-Identifier: BSD-3-Clause */
/* latency.h -- samples of one kind of operation, and their statistics. */
#ifndef TOOL_LATENCY_H
#define TOOL_LATENCY_H

#include <stddef.h>
#include <stdint.h>

struct latency {
	uint64_t *ns;
	size_t count, room;
};

struct latency_summary {
	size_t count;
	double min_us, median_us, p99_us, max_us;
};

/* 0 or -ENOMEM. */
int latency_init(struct latency *l, size_t room);
void latency_fini(struct latency *l);
/* At most room samples are kept. */
void latency_add(struct latency *l, uint64_t ns);
/* Sorts the samples. At least one is needed. */
struct latency_summary latency_summarise(struct latency *l);
uint64_t latency_now_ns(void);

#endif
