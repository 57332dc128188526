/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures the transfer of ranges, which begin a page apart, from one process to another. Each
 * range is copied into a ring in shared memory and out of it. The other process answers after it
 * has all ranges. Both processes spin, and check nothing.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/clock.h"
#include "lib/die.h"
#include "lib/ends.h"
#include "lib/result.h"
#include "limit_impl.h"

#define RANGES_PAGE  4096
#define RANGES_LINE  64
#define RANGES_SLOTS 1024 /* a power of two */

struct ranges_head {
	uint64_t offset, len;
};

struct ranges_ring {
	/* there: number of ranges that the initiator has put into the ring */
	_Alignas(RANGES_LINE) _Atomic uint64_t there;
	/* back: number of ranges that the target has taken */
	_Alignas(RANGES_LINE) _Atomic uint64_t back;
	_Alignas(RANGES_LINE) _Atomic uint32_t end;
	_Alignas(RANGES_LINE) char slots[];
};

struct ranges {
	const struct bench_case *c;
	struct ranges_ring *ring;
	size_t slot_len;
	char *memory; /* the memory of this process */
	uint64_t count;
};

static char *ranges_slot(const struct ranges *r, uint64_t i)
{
	return r->ring->slots + (i & (RANGES_SLOTS - 1)) * r->slot_len;
}

static void ranges_open(struct ranges *r, const struct bench_case *c)
{
	*r = (struct ranges){.c = c};
	if (c->every > RANGES_SLOTS || c->size > RANGES_PAGE)
		die("at most every=%d and size=%d", RANGES_SLOTS, RANGES_PAGE);
	r->slot_len = (sizeof(struct ranges_head) + c->size + RANGES_LINE - 1) / RANGES_LINE *
		      RANGES_LINE;
	r->ring = mmap(NULL, sizeof(*r->ring) + RANGES_SLOTS * r->slot_len, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (r->ring == MAP_FAILED)
		die_errno("shared memory");
}

/* ---- the target ---- */

static void ranges_take(struct ranges *r)
{
	const char *slot = ranges_slot(r, r->count++);
	struct ranges_head head;

	memcpy(&head, slot, sizeof(head));
	memcpy(r->memory + head.offset, slot + sizeof(head), head.len);
}

static void ranges_target(const struct bench_case *c, int fd, void *arg)
{
	struct ranges *r = arg;

	r->memory = limit_buffer((size_t)c->every * RANGES_PAGE);
	while (!atomic_load_explicit(&r->ring->end, memory_order_relaxed)) {
		uint64_t there = atomic_load_explicit(&r->ring->there, memory_order_acquire);

		if (r->count == there)
			continue;
		while (r->count < there)
			ranges_take(r);
		if (r->count % c->every == 0)
			atomic_store_explicit(&r->ring->back, r->count, memory_order_release);
	}
}

/* ---- the initiator ---- */

static void ranges_put(struct ranges *r, uint64_t offset)
{
	struct ranges_head head = {offset, r->c->size};
	char *slot = ranges_slot(r, r->count++);

	memcpy(slot, &head, sizeof(head));
	memcpy(slot + sizeof(head), r->memory + offset, r->c->size);
	atomic_store_explicit(&r->ring->there, r->count, memory_order_release);
}

static uint64_t ranges_for(struct ranges *r, uint64_t ns, struct samples *s)
{
	uint64_t begin = clock_now_ns(), then = begin, now = begin;

	samples_clear(s);
	while (now - begin < ns) {
		for (uint64_t i = 0; i < r->c->every; i++)
			ranges_put(r, i * RANGES_PAGE);
		while (atomic_load_explicit(&r->ring->back, memory_order_acquire) != r->count)
			;
		now = clock_now_ns();
		samples_add(s, now - then);
		then = now;
	}
	return now - begin;
}

void limit_ranges(const struct bench_case *c)
{
	struct samples *s = samples_new();
	struct result result = {0};
	struct ranges r;
	struct ends e;

	ranges_open(&r, c);
	ends_start(&e, c, ranges_target, &r);
	r.memory = limit_buffer((size_t)c->every * RANGES_PAGE);
	ranges_for(&r, case_warmup_ns(c), s);
	result.ns = ranges_for(&r, case_ns(c), s);
	result.count = s->total;
	result.bytes = result.count * c->every * c->size;
	atomic_store(&r.ring->end, 1);
	ends_finish(&e);
	result_print(c, &result, s);
	samples_delete(s);
}
