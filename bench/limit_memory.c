/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures copies of `size` bytes in memory (one copy, or two in a row as through a ring), and the
 * time in which a cache line moves to another process and back.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/clock.h"
#include "lib/die.h"
#include "lib/ends.h"
#include "lib/result.h"
#include "limit_impl.h"

static void limit_copies(const struct bench_case *c, unsigned copies)
{
	char *buf[3] = {limit_buffer(c->size), limit_buffer(c->size), limit_buffer(c->size)};
	struct samples *s = samples_new();
	uint64_t warm = clock_now_ns() + case_warmup_ns(c), begin = 0, then = 0, now;
	struct result r = {0};

	while (!begin || then - begin < case_ns(c)) {
		for (unsigned i = 0; i < copies; i++) {
			memcpy(buf[i + 1], buf[i], c->size);
			/* This keeps the compiler from removing the copy. */
			__asm__ volatile("" : : "r"(buf[i + 1]) : "memory");
		}
		now = clock_now_ns();
		if (begin)
			samples_add(s, now - then);
		else if (now > warm)
			begin = now;
		then = now;
	}
	r.count = s->total;
	r.ns = then - begin;
	r.bytes = r.count * c->size;
	result_print(c, &r, s);
	samples_delete(s);
}

void limit_memcpy(const struct bench_case *c)
{
	limit_copies(c, 1);
}

void limit_memcpy2(const struct bench_case *c)
{
	limit_copies(c, 2);
}

struct limit_lines {
	_Alignas(64) _Atomic uint32_t there;
	_Alignas(64) _Atomic uint32_t back;
	_Alignas(64) _Atomic uint32_t end;
};

static void limit_cacheline_target(const struct bench_case *c, int fd, void *arg)
{
	struct limit_lines *l = arg;
	uint32_t turn = 0;

	while (!atomic_load_explicit(&l->end, memory_order_relaxed)) {
		uint32_t now = atomic_load_explicit(&l->there, memory_order_acquire);

		if (now != turn) {
			turn = now;
			atomic_store_explicit(&l->back, turn, memory_order_release);
		}
	}
}

static uint64_t limit_cacheline_for(struct limit_lines *l, uint32_t *turn, uint64_t ns,
				    struct samples *s)
{
	uint64_t begin = clock_now_ns(), then = begin, now = begin;

	samples_clear(s);
	while (now - begin < ns) {
		atomic_store_explicit(&l->there, ++*turn, memory_order_release);
		while (atomic_load_explicit(&l->back, memory_order_acquire) != *turn)
			;
		now = clock_now_ns();
		samples_add(s, now - then);
		then = now;
	}
	return now - begin;
}

void limit_cacheline(const struct bench_case *c)
{
	struct samples *s = samples_new();
	struct limit_lines *l = mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct result r = {0};
	uint32_t turn = 0;
	struct ends e;

	if (l == MAP_FAILED)
		die_errno("shared memory");
	ends_start(&e, c, limit_cacheline_target, l);
	limit_cacheline_for(l, &turn, case_warmup_ns(c), s);
	r.ns = limit_cacheline_for(l, &turn, case_ns(c), s);
	r.count = s->total;
	atomic_store(&l->end, 1);
	ends_finish(&e);
	result_print(c, &r, s);
	samples_delete(s);
}
