/* SPDX-License-Identifier: BSD-3-Clause */
/* datagram_plan.c -- the hosts of a run of datagrams: properties, memory, queue pairs. */
#include <stdlib.h>
#include <string.h>

#include "datagram.h"

#define GUARD      16
#define SLOT_ROOM  (UD_GRH_LEN + d->plan.len_max + DG_PIECES * GUARD)
#define PORT_FIRST 40000

static void plan_make(struct datagrams *d, const struct sim_options *opt)
{
	struct prng *rng = dg_rng(d);
	bool clean = prng_chance(rng, 25);

	d->plan = (struct dg_plan){
		.mode = opt->mode,
		.ports = clean ? 1 : (unsigned)prng_between(rng, 1, DG_PORTS),
		.loss = clean || prng_chance(rng, 50) ? 0 : (unsigned)prng_between(rng, 1, 30),
		.doubles = clean || prng_chance(rng, 60) ? 0 : (unsigned)prng_between(rng, 1, 20),
		.forged = clean || prng_chance(rng, 50) ? 0 : (unsigned)prng_between(rng, 1, 30),
		.restarts = !clean && prng_chance(rng, 30),
		.pauses = !clean && prng_chance(rng, 25),
		.other_host_only = clean,
		.deregisters = !clean && prng_chance(rng, 15),
		.len_max =
			prng_chance(rng, 10) ? UD_PAYLOAD_MAX : (uint32_t)prng_between(rng, 1, 300),
		.socket = (uint32_t)prng_between(rng, UD_WINDOW, DG_SOCKET_MAX),
		.latency_ns = prng_between(rng, 1000, 200000),
		.jitter_ns = prng_chance(rng, 50) ? 0 : prng_between(rng, 1, 300000),
		.read_ns = prng_between(rng, 1, 400000),
		.tick_ns = prng_between(rng, 1000, 100000),
	};
}

/* --- memory --------------------------------------------------------------------------------- */

static uint64_t host_place(uint64_t *at, uint64_t len)
{
	uint64_t off = *at + GUARD;

	*at = off + len;
	return off;
}

static void box_place(struct datagrams *d, struct dg_box *b, uint64_t *at)
{
	for (int i = 0; i < DG_SLOTS; i++) {
		b->slot[i].off[0] = host_place(at, SLOT_ROOM);
		b->slot[i].busy = false;
	}
	b->count = 0;
}

static void host_place_all(struct datagrams *d, struct dg_host *h)
{
	uint64_t at = 0;

	h->recv_from = at + GUARD;
	box_place(d, &h->box, &at);
	for (int i = 0; i < DG_QPS; i++)
		box_place(d, &h->qp[i].own_box, &at);
	h->recv_to = at;
	h->send_from = at + GUARD;
	for (int i = 0; i < DG_QPS; i++)
		h->qp[i].source = host_place(&at, (uint64_t)DG_DEPTH * d->plan.len_max);
	h->send_to = at;
	h->size = at + GUARD;
}

static struct mr *host_register(struct dg_host *h, uint64_t from, uint64_t to)
{
	uint8_t *start = h->arena + from;
	struct mr *mr;

	if (mr_new(h->mrs, &h->pd, start, to - from, (uintptr_t)start, IBV_ACCESS_LOCAL_WRITE, NULL,
		   &mr))
		abort();
	return mr;
}

static void host_make_memory(struct datagrams *d, struct dg_host *h)
{
	host_place_all(d, h);
	h->arena = realloc(h->arena, h->size);
	h->shadow = realloc(h->shadow, h->size);
	if (!h->arena || !h->shadow || mr_table_new(&h->mrs))
		abort();
	memcpy(h->arena, memory_pool() + prng_below(dg_rng(d), POOL_LEN - h->size), h->size);
	memcpy(h->shadow, h->arena, h->size);
	h->recv_mr = host_register(h, h->recv_from, h->recv_to);
	h->send_mr = host_register(h, h->send_from, h->send_to);
	h->recv_key = h->recv_mr->ibv.lkey;
	h->send_key = h->send_mr->ibv.lkey;
}

/* --- queue pairs ---------------------------------------------------------------------------- */

static void qp_make(struct datagrams *d, struct dg_host *h, unsigned i)
{
	struct dg_qp *q = &h->qp[i];
	struct ud_qp_config cfg = {
		.mrs = h->mrs,
		.pd = &h->pd,
		.send_cq = &q->send_cq,
		.recv_cq = &q->recv_cq,
		.srq = h->box.has_srq ? &h->box.srq : NULL,
		.cap = {.max_send_wr = DG_DEPTH,
			.max_recv_wr = DG_SLOTS,
			.max_send_sge = 1,
			.max_recv_sge = DG_PIECES,
			.max_inline_data = 64},
	};

	q->host = h;
	q->port = &h->port[i % d->plan.ports];
	q->index = i;
	q->qpn = (uint32_t)q->port->number << 8 | (uint32_t)(7 * i + 1);
	q->box = h->box.has_srq ? &h->box : &q->own_box;
	q->own_box.has_srq = false;
	q->taken = -1;
	q->posted = q->left = q->done = 0;
	q->planned = (unsigned)prng_below(dg_rng(d), DG_MSGS + 1);
	q->held = q->waits = false;
	q->idle = 0;
	cfg.qp_num = q->qpn;
	memset(&q->send_cq, 0, sizeof(q->send_cq));
	memset(&q->recv_cq, 0, sizeof(q->recv_cq));
	if (cq_init(&q->send_cq, 2 * DG_DEPTH) || cq_init(&q->recv_cq, 2 * DG_SLOTS) ||
	    ud_qp_new(&cfg, &q->qp))
		abort();
	dg_at(d, prng_below(dg_rng(d), d->plan.tick_ns), EV_APP, h->index * DG_QPS + i, 0);
}

static void port_make(struct datagrams *d, struct dg_host *h, unsigned i)
{
	struct dg_port *p = &h->port[i];

	*p = (struct dg_port){
		.host = h, .index = h->index * DG_PORTS + i, .number = (uint16_t)(PORT_FIRST + i)};
	if (d->plan.pauses && prng_chance(dg_rng(d), 50))
		p->paused_until = prng_below(dg_rng(d), 2500 * NSEC_PER_MS);
}

static void host_make(struct datagrams *d, unsigned index, bool v6)
{
	struct dg_host *h = &d->host[index];

	h->index = index;
	memset(h->gid, 0, sizeof(h->gid));
	h->gid[0] = v6 ? 0xfd : 0;
	h->gid[10] = h->gid[11] = v6 ? 0 : 0xff;
	h->gid[12] = 10;
	h->gid[15] = (uint8_t)(index + 1);
	h->pd = (struct ibv_pd){.handle = index};
	h->box.has_srq = prng_chance(dg_rng(d), 30);
	host_make_memory(d, h);
	if (h->box.has_srq && srq_init(&h->box.srq, DG_SLOTS, DG_PIECES))
		abort();
	for (unsigned i = 0; i < DG_PORTS; i++)
		port_make(d, h, i);
	for (unsigned i = 0; i < DG_QPS; i++)
		qp_make(d, h, i);
	if (d->plan.deregisters && prng_chance(dg_rng(d), 60))
		dg_at(d, prng_below(dg_rng(d), 20 * d->plan.tick_ns), EV_DEREG, index, 0);
}

void dg_start(struct datagrams *d, const struct sim_options *opt)
{
	bool v6 = prng_chance(dg_rng(d), 40);

	plan_make(d, opt);
	for (int i = 0; i < DG_FLIGHTS; i++)
		d->flight[i].used = false;
	d->holds = 0;
	host_make(d, 0, v6);
	host_make(d, 1, v6);
	datagram_seen.lossless_runs += dg_is_lossless(d);
}

/* --- the end -------------------------------------------------------------------------------- */

static void host_unregister(struct datagrams *d, struct mr *mr)
{
	if (!mr)
		return;
	mr_kill(mr);
	if (!mr_is_idle(mr))
		dg_violate(d, NULL, "a region is held, and no packet is built or placed");
	else
		mr_delete(mr);
}

static void host_stop(struct datagrams *d, struct dg_host *h)
{
	for (int i = 0; i < DG_QPS; i++) {
		ud_qp_delete(h->qp[i].qp);
		cq_fini(&h->qp[i].send_cq);
		cq_fini(&h->qp[i].recv_cq);
	}
	if (h->box.has_srq)
		srq_fini(&h->box.srq);
	host_unregister(d, h->send_mr);
	host_unregister(d, h->recv_mr);
	mr_table_delete(h->mrs);
}

void dg_stop(struct datagrams *d)
{
	host_stop(d, &d->host[0]);
	host_stop(d, &d->host[1]);
}
