/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures when a Write becomes visible if neither a flush nor a poll follows it, because the
 * initiator's program sleeps. Each Write contains the time of its post, and the target's program
 * spins on its memory until it reads that time.
 *
 * One in `every` Writes is of this kind, and is posted directly after the last flush has completed.
 * A flush follows each of the remaining Writes. A program that writes a log, and sometimes a word
 * on which a reader spins, behaves in this way.
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
/* Length of the random pause between two writes, which lets both ends become idle. */
#define VISIBLE_PAUSE_US_MIN 200
#define VISIBLE_PAUSE_US_MAX 1000
/* After this many writes a flush is posted, which frees the send queue. */
#define VISIBLE_FLUSHED 64

/* Returns the offset of the time, the last word of each write. An aligned word arrives as a
 * whole. */
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
	uint64_t *before = calloc(span.size / span.stride, sizeof(*before)), stamp;
	size_t word = visible_word(o->c);

	if (!before)
		die_errno("memory");
	for (;;) {
		size_t at = span_next(&span);
		uint64_t *last = &before[at / span.stride];

		stamp = visible_await((const _Atomic uint64_t *)(o->mem + at + word), *last);
		if (stamp == VISIBLE_LAST)
			break;
		samples_add(s, clock_now_ns() - stamp);
		*last = stamp;
	}
	free(before);
}

static void visible_post(struct ours *o, size_t at)
{
	struct ours_conn *oc = &o->conns[0];

	ours_must(rpma_write(oc->conn, oc->there, at, o->mr, at, o->c->size,
			     RPMA_F_COMPLETION_ON_ERROR, NULL),
		  "write");
}

static void visible_write(struct ours *o, uint64_t stamp)
{
	size_t at = span_next(&o->conns[0].span);

	memcpy(o->mem + at + visible_word(o->c), &stamp, sizeof(stamp));
	visible_post(o, at);
}

static void visible_flush(struct ours *o, bool poll)
{
	struct ibv_wc wc;
	int got;

	ours_must(rpma_flush(o->conns[0].conn, o->conns[0].there, 0, o->c->size,
			     RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, NULL),
		  "flush");
	ours_completions(o->cq, poll, &wc, 1, &got);
}

/* Repeat the write to memory that no program reads at this time. */
static void visible_pairs(struct ours *o, unsigned count)
{
	const struct span *span = &o->conns[0].span;
	size_t at = (span->at ? span->at : span->size) - span->stride;

	while (count-- > 0) {
		visible_post(o, at);
		visible_flush(o, o->c->ini_polls);
	}
}

static uint64_t visible_for(struct ours *o, uint64_t ns)
{
	const unsigned pause_range = VISIBLE_PAUSE_US_MAX - VISIBLE_PAUSE_US_MIN;
	uint64_t begin = clock_now_ns();
	unsigned seed = 1;

	for (unsigned n = 1; clock_now_ns() - begin < ns; n++) {
		visible_pairs(o, o->c->every - 1);
		visible_write(o, clock_now_ns());
		usleep(VISIBLE_PAUSE_US_MIN + (unsigned)rand_r(&seed) % pause_range);
		if (n % VISIBLE_FLUSHED == 0)
			visible_flush(o, false);
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

	if (c->size % sizeof(uint64_t) || c->conns != 1 || c->depth != 1)
		die("work=visible has conns=1, depth=1 and a size that is a multiple of 8");
	ends_start(&e, c, ours_target_run, &target);
	ours_connect(&o, c, e.fd);
	/* Zero means that no time has arrived yet, also in the target's memory. */
	memset(o.mem, 0, o.size);
	r.ns = visible_for(&o, case_ns(c));
	ours_disconnect(&o, e.fd, &r);
	ends_finish(&e);
	r.count = s->total;
	result_print(c, &r, s);
	samples_delete(s);
}
