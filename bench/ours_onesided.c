/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures one-sided operations, which the target's program does not notice. Each connection has
 * `depth` units of work under way; when one completes, the next is posted.
 */
#include "lib/clock.h"
#include "lib/device.h"
#include "lib/die.h"
#include "lib/ends.h"
#include "ours_impl.h"

#define ONESIDED_WCS 16

struct onesided {
	struct ours o;
	struct samples *samples;
	void (*post)(struct ours *o, struct ours_conn *oc);
	unsigned ops; /* number of operations that are counted for a unit */
};

static enum rpma_flush_type onesided_type(const struct bench_case *c)
{
	return case_is_persistent(c) ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY;
}

static void onesided_post_write(struct ours *o, struct ours_conn *oc)
{
	const struct bench_case *c = o->c;
	size_t first = oc->span.base + oc->span.at;

	for (unsigned i = 0; i < c->every; i++) {
		size_t at = span_next(&oc->span);

		ours_must(rpma_write(oc->conn, oc->there, at, o->mr, at, c->size,
				     RPMA_F_COMPLETION_ON_ERROR, oc),
			  "write");
	}
	ours_must(rpma_flush(oc->conn, oc->there, first, (c->every - 1) * oc->span.stride + c->size,
			     onesided_type(c), RPMA_F_COMPLETION_ALWAYS, oc),
		  "flush");
}

static void onesided_post_batch(struct ours *o, struct ours_conn *oc)
{
	const struct bench_case *c = o->c;
	size_t first = oc->span.base + oc->span.at;

	for (unsigned i = 0; i < c->every; i++) {
		size_t at = span_next(&oc->span);

		ours_must(rpma_batch_write(oc->batch, oc->there, at, o->mr, at, c->size,
					   RPMA_F_COMPLETION_ON_ERROR, oc),
			  "write");
	}
	ours_must(rpma_batch_flush(oc->batch, oc->there, first,
				   (c->every - 1) * oc->span.stride + c->size, onesided_type(c),
				   RPMA_F_COMPLETION_ALWAYS, oc),
		  "flush");
	ours_must(rpma_batch_post(oc->batch), "post the batch");
}

static void onesided_post_read(struct ours *o, struct ours_conn *oc)
{
	size_t at = span_next(&oc->span);

	ours_must(rpma_read(oc->conn, o->mr, at, oc->there, at, o->c->size,
			    RPMA_F_COMPLETION_ALWAYS, oc),
		  "read");
}

static void onesided_post_atomic(struct ours *o, struct ours_conn *oc)
{
	size_t at = span_next(&oc->span);

	ours_must(rpma_atomic_write(oc->conn, oc->there, at, o->mem + at, RPMA_F_COMPLETION_ALWAYS,
				    oc),
		  "atomic write");
}

static void onesided_choose(struct onesided *s, const struct bench_case *c)
{
	bool reads = case_is_work(c, "read"), atomic = case_is_work(c, "atomic_write");

	s->ops = case_is_work(c, "write") ? c->every : 1;
	s->post = reads                      ? onesided_post_read
		  : atomic                   ? onesided_post_atomic
		  : case_is_work(c, "batch") ? onesided_post_batch
					     : onesided_post_write;
	if (atomic && c->size != RPMA_ATOMIC_WRITE_ALIGNMENT)
		die("an atomic write has size=8");
	if ((reads || atomic) && c->every != 1)
		die("work=%s has no every", c->work);
}

static void onesided_begin(struct onesided *s, struct ours_conn *oc, unsigned slot, uint64_t now)
{
	oc->begun[slot] = now;
	s->post(&s->o, oc);
}

/* Count the oldest unit of this connection as complete, because units complete in order. */
static void onesided_complete(struct onesided *s, struct ours_conn *oc, uint64_t now, bool more)
{
	unsigned slot = oc->first;

	samples_add(s->samples, now - oc->begun[slot]);
	oc->first = slot + 1 < s->o.c->depth ? slot + 1 : 0;
	if (more)
		onesided_begin(s, oc, slot, now);
}

static struct ours_conn *onesided_conn(const struct ibv_wc *wc)
{
	return (struct ours_conn *)(uintptr_t)wc->wr_id;
}

/* Keep all connections busy for `ns` nanoseconds, then wait for the units under way. Returns how
 * long it took. */
static uint64_t onesided_for(struct onesided *s, uint64_t ns)
{
	const struct bench_case *c = s->o.c;
	uint64_t begin = clock_now_ns(), now = begin, busy = (uint64_t)c->conns * c->depth;
	struct ibv_wc wc[ONESIDED_WCS];
	int got;

	samples_clear(s->samples);
	for (unsigned slot = 0; slot < c->depth; slot++)
		for (unsigned i = 0; i < c->conns; i++)
			onesided_begin(s, &s->o.conns[i], (s->o.conns[i].first + slot) % c->depth,
				       clock_now_ns());
	while (busy) {
		if (!ours_completions(s->o.cq, c->ini_polls, wc, ONESIDED_WCS, &got))
			ours_broke(onesided_conn(&wc[got - 1])->conn, &wc[got - 1]);
		now = clock_now_ns();
		for (int i = 0; i < got; i++)
			onesided_complete(s, onesided_conn(&wc[i]), now, now - begin < ns);
		if (now - begin >= ns)
			busy -= (uint64_t)got;
	}
	return now - begin;
}

void ours_onesided(const struct bench_case *c)
{
	struct onesided s = {.samples = samples_new()};
	struct ours_target target = {0};
	struct result r = {0};
	uint64_t written;
	struct ends e;

	onesided_choose(&s, c);
	ends_start(&e, c, ours_target_run, &target);
	ours_connect(&s.o, c, e.fd);
	onesided_for(&s, case_warmup_ns(c));
	written = device_written(case_target_where(c));
	r.ns = onesided_for(&s, case_ns(c));
	r.disk_bytes = device_written(case_target_where(c)) - written;
	r.count = s.samples->total * s.ops;
	r.bytes = s.samples->total * c->every * c->size;
	ours_disconnect(&s.o, e.fd, &r);
	ends_finish(&e);
	result_print(c, &r, s.samples);
	samples_delete(s.samples);
}
