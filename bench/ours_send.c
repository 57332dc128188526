/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures a message to the target and its answer; the two programs receive them. Each connection
 * has `depth` exchanges under way. At each end a message stays in the slot of the receive that took
 * it.
 */
#include <stdint.h>

#include "lib/clock.h"
#include "lib/ends.h"
#include "ours_impl.h"

#define SEND_WCS 16
/* One in this many sends requests a completion. Taking this completion frees the send queue on
 * every device. */
#define SEND_SIGNALLED 8

/* The wr_id of a receive is its connection and slot; that of each send is SEND_ID. */
#define SEND_ID UINT64_MAX

static const void *send_id(unsigned conn, unsigned slot)
{
	return (const void *)((uintptr_t)conn << 32 | slot);
}

static size_t send_at(const struct ours *o, unsigned slot)
{
	return slot * span_of(o->c).stride;
}

static void send_prepare(struct ours *o, struct rpma_conn_req *req, unsigned conn)
{
	for (unsigned slot = 0; slot < o->c->depth; slot++)
		ours_must(rpma_conn_req_recv(req, o->mr, send_at(o, slot), o->c->size,
					     send_id(conn, slot)),
			  "post a receive");
}

static void send_recv(struct ours *o, unsigned conn, unsigned slot)
{
	ours_must(rpma_recv(o->conns[conn].conn, o->mr, send_at(o, slot), o->c->size,
			    send_id(conn, slot)),
		  "post a receive");
}

static void send_send(struct ours *o, unsigned conn, unsigned slot)
{
	unsigned *sent = &o->conns[conn].first;
	int flags =
		++*sent % SEND_SIGNALLED ? RPMA_F_COMPLETION_ON_ERROR : RPMA_F_COMPLETION_ALWAYS;

	ours_must(rpma_send(o->conns[conn].conn, o->mr, send_at(o, slot), o->c->size, flags,
			    (const void *)(uintptr_t)SEND_ID),
		  "send");
}

/* The target's program: answer each message until the initiator disconnects. */
static void send_serve(struct ours *o, void *arg)
{
	struct ibv_wc wc[SEND_WCS];
	int got;

	while (ours_completions(o->cq, o->c->tgt_polls, wc, SEND_WCS, &got)) {
		for (int i = 0; i < got; i++) {
			unsigned conn = (unsigned)(wc[i].wr_id >> 32), slot = (unsigned)wc[i].wr_id;

			if (wc[i].wr_id == SEND_ID)
				continue;
			send_recv(o, conn, slot);
			send_send(o, conn, slot);
		}
	}
}

static void send_begin(struct ours *o, unsigned conn, unsigned slot, uint64_t now)
{
	o->conns[conn].begun[slot] = now;
	send_recv(o, conn, slot);
	send_send(o, conn, slot);
}

static void send_start(struct ours *o)
{
	for (unsigned slot = 0; slot < o->c->depth; slot++)
		for (unsigned i = 0; i < o->c->conns; i++)
			send_begin(o, i, slot, clock_now_ns());
}

static uint64_t send_for(struct ours *o, uint64_t ns, struct samples *s)
{
	uint64_t begin = clock_now_ns(), now = begin, busy = (uint64_t)o->c->conns * o->c->depth;
	struct ibv_wc wc[SEND_WCS];
	int got;

	samples_clear(s);
	send_start(o);
	while (busy) {
		if (!ours_completions(o->cq, o->c->ini_polls, wc, SEND_WCS, &got))
			ours_broke(o->conns[0].conn, &wc[got - 1]);
		now = clock_now_ns();
		for (int i = 0; i < got; i++) {
			unsigned conn = (unsigned)(wc[i].wr_id >> 32), slot = (unsigned)wc[i].wr_id;

			if (wc[i].wr_id == SEND_ID)
				continue;
			samples_add(s, now - o->conns[conn].begun[slot]);
			if (now - begin < ns)
				send_begin(o, conn, slot, now);
			else
				busy--;
		}
	}
	return now - begin;
}

void ours_send(const struct bench_case *c)
{
	struct ours_target target = {.serve = send_serve, .prepare = send_prepare};
	struct samples *s = samples_new();
	struct result r = {0};
	struct ends e;
	struct ours o;

	ends_start(&e, c, ours_target_run, &target);
	ours_connect(&o, c, e.fd);
	send_for(&o, case_warmup_ns(c), s);
	r.ns = send_for(&o, case_ns(c), s);
	r.count = s->total;
	r.bytes = s->total * c->size * 2;
	ours_disconnect(&o, e.fd, &r);
	ends_finish(&e);
	result_print(c, &r, s);
	samples_delete(s);
}
