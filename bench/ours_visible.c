/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes that nobody follows up: no flush, no poll, the initiator's program sleeps. Each carries
 * the time of its posting, and the target's program looks at its memory until it sees that.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/die.h"
#include "lib/ends.h"
#include "ours_impl.h"

#define VISIBLE_LAST UINT64_MAX
/* Between two writes, chosen at random; so each finds both ends idle. */
#define VISIBLE_PAUSE_US_MIN 200
#define VISIBLE_PAUSE_US_MAX 1000
/* Of so many writes one is followed by a flush, long after it, which frees the send queue. */
#define VISIBLE_FLUSHED 64

/* The last word of each write is the time; one aligned word arrives at once. */
static size_t visible_word(const struct bench_case *c)
{
	return (c->size - 1) / sizeof(uint64_t) * sizeof(uint64_t);
}

static uint64_t visible_await(const _Atomic uint64_t *word, uint64_t before)
{
	uint64_t stamp;

	while ((stamp = atomic_load_explicit(word, memory_order_acquire)) == before)
		;
	return stamp;
}

/* The target's program. */
static void visible_serve(struct ours *o, void *arg)
{
	struct span span = span_of(o->c);
	struct samples *s = arg;
	uint64_t before[2 * SPAN_SLOTS] = {0}, stamp;
	size_t word = visible_word(o->c);

	if (span.size / span.stride > 2 * SPAN_SLOTS)
		die("work=visible has neither depth nor every");
	for (;;) {
		size_t at = span_next(&span);
		uint64_t *last = &before[at / span.stride];

		stamp = visible_await((const _Atomic uint64_t *)(o->mem + at + word), *last);
		if (stamp == VISIBLE_LAST)
			return;
		samples_add(s, clock_now_ns() - stamp);
		*last = stamp;
	}
}

static void visible_write(struct ours *o, uint64_t stamp)
{
	struct ours_conn *oc = &o->conns[0];
	size_t at = span_next(&oc->span);

	memcpy(o->mem + at + visible_word(o->c), &stamp, sizeof(stamp));
	ours_must(rpma_write(oc->conn, oc->there, at, o->mr, at, o->c->size,
			     RPMA_F_COMPLETION_ON_ERROR, NULL),
		  "write");
}

static void visible_flush(struct ours *o)
{
	struct ibv_wc wc;
	int got;

	ours_must(rpma_flush(o->conns[0].conn, o->conns[0].there, 0, o->c->size,
			     RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, NULL),
		  "flush");
	ours_completions(o->cq, false, &wc, 1, &got);
}

static void visible_pause(unsigned *seed)
{
	unsigned range = VISIBLE_PAUSE_US_MAX - VISIBLE_PAUSE_US_MIN;

	usleep(VISIBLE_PAUSE_US_MIN + (unsigned)rand_r(seed) % range);
}

static uint64_t visible_for(struct ours *o, uint64_t ns)
{
	uint64_t begin = clock_now_ns();
	unsigned seed = 1;

	for (unsigned n = 1; clock_now_ns() - begin < ns; n++) {
		visible_write(o, clock_now_ns());
		visible_pause(&seed);
		if (n % VISIBLE_FLUSHED == 0)
			visible_flush(o);
	}
	visible_write(o, VISIBLE_LAST);
	return clock_now_ns() - begin;
}

void ours_visible(const struct bench_case *c)
{
	struct samples *s = samples_new();
	struct ours_target target = {.serve = visible_serve, .arg = s};
	struct result r = {0};
	struct ends e;
	struct ours o;

	if (c->size % sizeof(uint64_t) || c->conns != 1)
		die("work=visible has conns=1 and a size that is a multiple of 8");
	ends_start(&e, c, ours_target_run, &target);
	ours_connect(&o, c, e.fd);
	r.ns = visible_for(&o, case_ns(c));
	ours_disconnect(&o, e.fd, &r);
	ends_finish(&e);
	r.count = s->total;
	result_print(c, &r, s);
	samples_delete(s);
}
