/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * span.h -- chooses the offsets of operations: one after the other, and after the end of the region
 * again from its beginning.
 *
 * In memory the ranges of operations are adjacent, except those of a batch, which begin at least a
 * page apart. In a file all ranges begin at least a page apart, so that each flush writes back its
 * own pages, as the measurement of the limit (limit_disk.c) does. With apart=N they begin at least
 * N bytes apart.
 */
#ifndef BENCH_SPAN_H
#define BENCH_SPAN_H

#include <stddef.h>
#include <stdint.h>

#include "case.h"

#define SPAN_LINE  64u
#define SPAN_PAGE  4096u
#define SPAN_SLOTS 64u

struct span {
	size_t stride, size, at;
	size_t base; /* offset of the span in the region */
};

/*
 * Make a span in which each operation begins at a multiple of `step`. It has space for all
 * operations that may be under way at the same time, and, unless the operations are large, for at
 * least SPAN_SLOTS operations. The writes of one unit never wrap around.
 */
static inline struct span span_of_step(const struct bench_case *c, size_t step)
{
	size_t room = c->apart > c->size ? c->apart : c->size;
	size_t stride = (room + step - 1) / step * step;
	size_t slots = (size_t)c->depth * c->every;

	if (slots < SPAN_SLOTS && stride < ((size_t)1 << 20))
		slots = (SPAN_SLOTS + c->every - 1) / c->every * c->every;
	return (struct span){.stride = stride, .size = stride * slots};
}

static inline struct span span_of(const struct bench_case *c)
{
	bool is_dense = case_is_memory(c) && !case_is_work(c, "batch");

	return span_of_step(c, is_dense ? SPAN_LINE : SPAN_PAGE);
}

/*
 * Returns the span of one connection. In a file each connection has its own part; in memory all
 * connections share one span.
 */
static inline struct span span_of_conn(const struct bench_case *c, unsigned number)
{
	struct span s = span_of(c);

	s.base = case_is_memory(c) ? 0 : number * s.size;
	return s;
}

/* Returns the size of a region for all spans. */
static inline size_t span_region(const struct bench_case *c)
{
	return span_of_conn(c, c->conns - 1).base + span_of(c).size;
}

/* Returns the offset of the next operation. */
static inline size_t span_next(struct span *s)
{
	size_t at = s->at;

	s->at = at + s->stride < s->size ? at + s->stride : 0;
	return s->base + at;
}

#endif
