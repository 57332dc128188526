/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * datagram_app.c -- the applications: they post, poll, restart queue pairs and deregister regions.
 */
#include <string.h>

#include "datagram.h"

#define KEYS        3
#define INLINE_MAX  64
#define SIGNAL_EACH 4
#define BURIED      0xdb
#define IDLE_MAX    8 /* limit: the time between two turns doubles at most this many times */

/* --- completions of Sends ------------------------------------------------------------------- */

/* The application reuses the source of a completed Send. */
static void app_reuse(struct datagrams *d, struct dg_qp *q, unsigned id)
{
	uint64_t off = q->source + (uint64_t)(id % DG_DEPTH) * d->plan.len_max;
	uint8_t value = (uint8_t)prng_next(dg_rng(d));

	if (!q->host->send_mr)
		return;
	memset(q->host->arena + off, value, d->plan.len_max);
	memset(q->host->shadow + off, value, d->plan.len_max);
}

static void app_on_error(struct datagrams *d, struct dg_qp *q, const struct ibv_wc *wc)
{
	const struct dg_msg *m = &q->msg[wc->wr_id];

	if (m->left)
		dg_violate(d, q, "a Send fails although its packet left");
	if (wc->status == IBV_WC_LOC_PROT_ERR && (q->host->send_mr || m->is_inline))
		dg_violate(d, q, "the memory of a Send is there, and it fails");
	datagram_seen.bad_sources += wc->status == IBV_WC_LOC_PROT_ERR;
	datagram_seen.flushed += wc->status == IBV_WC_WR_FLUSH_ERR;
}

static void app_on_send(struct datagrams *d, struct dg_qp *q, const struct ibv_wc *wc)
{
	if (wc->wr_id < q->done || wc->wr_id >= q->posted) {
		dg_violate(d, q, "a Send completes twice, or was never posted");
		return;
	}
	for (; q->done < wc->wr_id; q->done++) {
		if (q->msg[q->done].signalled || !q->msg[q->done].left)
			dg_violate(d, q, "a Send has no completion");
		app_reuse(d, q, q->done);
	}
	if (wc->status != IBV_WC_SUCCESS)
		app_on_error(d, q, wc);
	else if (!q->msg[q->done].left)
		dg_violate(d, q, "a Send succeeds before its packet left");
	app_reuse(d, q, q->done++);
	if (q->left < q->done)
		q->left = q->done;
}

void dg_poll_sends(struct datagrams *d, struct dg_qp *q)
{
	struct ibv_wc wc[2 * DG_DEPTH];
	int n = cq_poll(&q->send_cq, 2 * DG_DEPTH, wc);

	for (int i = 0; i < n; i++)
		app_on_send(d, q, &wc[i]);
}

/* --- posts ---------------------------------------------------------------------------------- */

static uint32_t app_key(struct datagrams *d)
{
	return 0x11111111u * (uint32_t)prng_between(dg_rng(d), 1, KEYS);
}

static struct dg_qp *app_destination(struct datagrams *d, const struct dg_qp *q)
{
	unsigned host = 1 - q->host->index;

	if (!d->plan.other_host_only && prng_chance(dg_rng(d), 20))
		host = q->host->index;
	return &d->host[host].qp[prng_below(dg_rng(d), DG_QPS)];
}

static void app_choose(struct datagrams *d, const struct dg_qp *q, struct dg_msg *m)
{
	struct prng *rng = dg_rng(d);

	*m = (struct dg_msg){
		.to = app_destination(d, q),
		.bytes = memory_pool() + prng_below(rng, POOL_LEN - UD_PAYLOAD_MAX),
		.len = prng_chance(rng, 10) ? 0 : (uint32_t)prng_below(rng, d->plan.len_max + 1),
		.imm = (uint32_t)prng_next(rng),
		.has_imm = prng_chance(rng, 30),
		.solicited = prng_chance(rng, 20),
		.signalled = q->posted % SIGNAL_EACH == 0 || prng_chance(rng, 50),
	};
	m->qkey = prng_chance(rng, 85) ? m->to->qkey : app_key(d);
	m->is_inline = m->len <= INLINE_MAX && prng_chance(rng, 30);
	datagram_seen.inlines += m->is_inline;
}

static void app_address(const struct dg_qp *q, const struct dg_msg *m, struct ud_ah *ah)
{
	*ah = (struct ud_ah){.path = {.traffic_class = 3, .hop_limit = 64}};
	memcpy(ah->path.from, q->host->gid, UD_GID_LEN);
	memcpy(ah->path.to, m->to->host->gid, UD_GID_LEN);
}

/* The source keeps the message's bytes until the Send completes. An inline source keeps them only
 * until the post returns. */
static uint8_t *app_source(struct datagrams *d, struct dg_qp *q, const struct dg_msg *m)
{
	uint64_t off = q->source + (uint64_t)(q->posted % DG_DEPTH) * d->plan.len_max;

	if (q->host->send_mr) {
		memcpy(q->host->arena + off, m->bytes, m->len);
		memcpy(q->host->shadow + off, m->bytes, m->len);
	}
	return q->host->arena + off;
}

/* If the highest bit of the request's Q_Key is set, the sender's own Q_Key replaces it. */
static void app_post_send(struct datagrams *d, struct dg_qp *q)
{
	struct dg_msg *m = &q->msg[q->posted];
	struct ibv_sge sge = {.lkey = q->host->send_key};
	struct ibv_send_wr wr = {.wr_id = q->posted, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ud_ah ah;
	bool own = prng_chance(dg_rng(d), 5);

	app_choose(d, q, m);
	if (!q->host->send_mr && m->is_inline)
		m->len = 0;
	m->qkey = own ? q->qkey : m->qkey;
	sge.addr = (uintptr_t)app_source(d, q, m);
	sge.length = m->len;
	app_address(q, m, &ah);
	wr.opcode = m->has_imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
	wr.imm_data = m->imm;
	wr.send_flags = (m->signalled ? IBV_SEND_SIGNALED : 0u) |
			(m->solicited ? IBV_SEND_SOLICITED : 0u) |
			(m->is_inline ? IBV_SEND_INLINE : 0u);
	wr.wr.ud.ah = &ah.ibv;
	wr.wr.ud.remote_qpn = m->to->qpn;
	wr.wr.ud.remote_qkey = own ? m->qkey | 0x80000000u : m->qkey;
	if (ud_qp_post_send(q->qp, &wr, &bad)) {
		dg_violate(d, q, "a Send is refused");
		return;
	}
	if (m->is_inline)
		app_reuse(d, q, q->posted);
	q->posted++;
	datagram_seen.posted++;
}

static void app_lay_out(struct datagrams *d, struct dg_slot *s, struct ibv_sge *sge)
{
	struct prng *rng = dg_rng(d);
	uint32_t room = UD_GRH_LEN + d->plan.len_max;
	uint64_t at = s->off[0];

	if (prng_chance(rng, 5))
		room = (uint32_t)prng_below(rng, room + 1);
	s->pieces = (unsigned)prng_between(rng, 1, DG_PIECES);
	for (unsigned i = 0; i < s->pieces; i++) {
		bool last = i + 1 == s->pieces;

		s->off[i] = at;
		s->len[i] = last ? room : (uint32_t)prng_below(rng, room + 1);
		room -= s->len[i];
		at += s->len[i] + prng_below(rng, 4);
		sge[i].length = s->len[i];
	}
}

static void app_post_recv(struct datagrams *d, struct dg_qp *q)
{
	struct dg_box *b = q->box;
	struct ibv_sge sge[DG_PIECES];
	struct ibv_recv_wr wr = {.sg_list = sge}, *bad;
	unsigned i = 0;

	while (i < DG_SLOTS && b->slot[i].busy)
		i++;
	if (i == DG_SLOTS || b->count == DG_SLOTS)
		return;
	app_lay_out(d, &b->slot[i], sge);
	for (unsigned k = 0; k < b->slot[i].pieces; k++) {
		sge[k].addr = (uintptr_t)q->host->arena + b->slot[i].off[k];
		sge[k].lkey = q->host->recv_key;
	}
	wr.wr_id = i;
	wr.num_sge = (int)b->slot[i].pieces;
	if (b->has_srq ? srq_post(&b->srq, &wr, &bad) : ud_qp_post_recv(q->qp, &wr, &bad)) {
		dg_violate(d, q, "a receive is refused");
		return;
	}
	b->slot[i].busy = true;
	b->fifo[b->count++] = i;
}

/* --- states --------------------------------------------------------------------------------- */

/* A reset drops all posted requests without completions. */
static void app_reset(struct datagrams *d, struct dg_qp *q)
{
	struct dg_box *b = q->box;

	ud_qp_move(q->qp, IBV_QPS_RESET, false);
	datagram_seen.dropped += q->posted - q->done;
	q->left = q->done = q->posted;
	if (q->taken >= 0)
		b->slot[q->taken].busy = false;
	q->taken = -1;
	for (; !b->has_srq && b->count > 0; b->count--)
		b->slot[b->fifo[b->count - 1]].busy = false;
	if (!cq_is_empty(&q->send_cq) || !cq_is_empty(&q->recv_cq))
		dg_violate(d, q, "a reset leaves a completion");
}

static void app_fail(struct datagrams *d, struct dg_qp *q)
{
	ud_qp_move(q->qp, IBV_QPS_ERR, false);
	dg_check_flushed(d, q);
	dg_poll_sends(d, q);
	for (; q->done < q->posted; q->done++) {
		if (q->msg[q->done].signalled || !q->msg[q->done].left)
			dg_violate(d, q, "a posted Send did not come back");
	}
}

/* Move the queue pair one state towards RTS, or from RTS to ERR or RESET. */
static void app_move(struct datagrams *d, struct dg_qp *q)
{
	switch (dg_state(q)) {
	case IBV_QPS_RESET:
		q->qkey = app_key(d);
		ud_qp_set_qkey(q->qp, q->qkey);
		ud_qp_move(q->qp, IBV_QPS_INIT, false);
		break;
	case IBV_QPS_INIT:
		ud_qp_move(q->qp, IBV_QPS_RTR, false);
		break;
	case IBV_QPS_RTR:
	case IBV_QPS_SQE:
		ud_qp_move(q->qp, IBV_QPS_RTS, false);
		break;
	case IBV_QPS_ERR:
		app_reset(d, q);
		break;
	default:
		if (!d->plan.restarts || !prng_chance(dg_rng(d), 4))
			break;
		if (prng_chance(dg_rng(d), 50))
			app_fail(d, q);
		else
			app_reset(d, q);
		break;
	}
}

/* The memory of a deregistered region is used for something else, so no byte of it must change any
 * more. */
static void app_bury(struct dg_host *h, struct mr **mr, uint64_t from, uint64_t to)
{
	mr_kill(*mr);
	mr_delete(*mr);
	*mr = NULL;
	memset(h->arena + from, BURIED, to - from);
	memset(h->shadow + from, BURIED, to - from);
}

void dg_deregister(struct datagrams *d, struct dg_host *h)
{
	struct mr **mr = prng_chance(dg_rng(d), 50) ? &h->send_mr : &h->recv_mr;

	if (!*mr)
		return;
	if (!mr_is_idle(*mr))
		dg_violate(d, NULL, "a region is held between two packets");
	else if (mr == &h->send_mr)
		app_bury(h, mr, h->send_from, h->send_to);
	else
		app_bury(h, mr, h->recv_from, h->recv_to);
}

/* --- a turn --------------------------------------------------------------------------------- */

static bool app_has_room(const struct dg_qp *q)
{
	return q->posted < q->planned && q->posted - q->done < DG_DEPTH;
}

/* Schedule the next turn, later if the application only waits. */
static void app_again(struct datagrams *d, struct dg_qp *q)
{
	uint64_t tick = d->plan.tick_ns << q->idle;

	if (app_has_room(q) || dg_state(q) != IBV_QPS_RTS)
		q->idle = 0;
	else if (q->idle < IDLE_MAX)
		q->idle++;
	if (q->posted < q->planned || dg_state(q) != IBV_QPS_RTS)
		dg_at(d, 1 + prng_below(dg_rng(d), tick), EV_APP,
		      q->host->index * DG_QPS + q->index, 0);
}

void dg_tick(struct datagrams *d, struct dg_qp *q)
{
	struct prng *rng = dg_rng(d);
	enum ibv_qp_state state;

	dg_poll_sends(d, q);
	if (prng_chance(rng, 60))
		app_move(d, q);
	state = dg_state(q);
	for (unsigned n = (unsigned)prng_below(rng, DG_SLOTS); n > 0; n--) {
		if (state == IBV_QPS_INIT || state == IBV_QPS_RTR || state == IBV_QPS_RTS)
			app_post_recv(d, q);
	}
	for (unsigned n = (unsigned)prng_below(rng, DG_DEPTH); n > 0 && app_has_room(q); n--) {
		if (state == IBV_QPS_RTS)
			app_post_send(d, q);
	}
	dg_send(d, q);
	dg_check_memory(d, q->host);
	if (prng_chance(rng, d->plan.forged))
		dg_forge(d);
	app_again(d, q);
}
