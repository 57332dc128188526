/* SPDX-License-Identifier: BSD-3-Clause */
/* datagram_check.c -- checks the content of each packet, and the effects of its arrival. */
#include <string.h>

#include "datagram.h"

void dg_check_memory(struct datagrams *d, struct dg_host *h)
{
	if (memcmp(h->arena, h->shadow, h->size) == 0)
		return;
	for (uint64_t i = 0; i < h->size; i++) {
		if (h->arena[i] == h->shadow[i])
			continue;
		world_violate(d->world, "host %u: byte %llu of %llu must not have changed",
			      h->index, (unsigned long long)i, (unsigned long long)h->size);
		return;
	}
}

/* --- sent ----------------------------------------------------------------------------------- */

void dg_check_packet(struct datagrams *d, struct dg_qp *q, const struct dg_msg *m,
		     const struct ud_packet *p)
{
	struct ud_header h;

	if (q->left >= q->posted)
		dg_violate(d, q, "a packet leaves without a request");
	else if (ud_header_decode(p->bytes, p->len, &h))
		dg_violate(d, q, "a packet is malformed");
	else if (h.from_qpn != q->qpn || h.to_qpn != m->to->qpn || h.qkey != m->qkey ||
		 h.solicited != m->solicited || (h.opcode == UD_SEND_IMM) != m->has_imm ||
		 h.opcode == UD_CREDIT || (m->has_imm && h.imm != m->imm))
		dg_violate(d, q, "a packet's header is not that of its request");
	else if (p->len != UD_HEADER_LEN + m->len ||
		 memcmp(p->bytes + UD_HEADER_LEN, m->bytes, m->len) != 0)
		dg_violate(d, q, "a packet's payload is not that of its request");
}

/* --- received ------------------------------------------------------------------------------- */

static bool check_is_open(const struct dg_qp *q)
{
	enum ibv_qp_state state = dg_state(q);

	return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
	       state == IBV_QPS_SQE;
}

static void check_take(struct dg_qp *q)
{
	struct dg_box *b = q->box;

	if (q->taken >= 0 || b->count == 0)
		return;
	q->taken = (int)b->fifo[0];
	b->count--;
	memmove(b->fifo, b->fifo + 1, b->count * sizeof(b->fifo[0]));
}

static uint64_t check_room(const struct dg_slot *s)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < s->pieces; i++)
		sum += s->len[i];
	return sum;
}

/* Returns the receive that the message must fill, or -1 if it must fill none. */
static int check_expect(struct dg_qp *q, const struct ud_header *h, size_t len)
{
	if (!check_is_open(q)) {
		datagram_seen.not_ready++;
	} else if (h->qkey != q->qkey) {
		datagram_seen.bad_keys++;
	} else {
		check_take(q);
		if (q->taken >= 0 && check_room(&q->box->slot[q->taken]) >= UD_GRH_LEN + len)
			return q->taken;
		datagram_seen.too_long += q->taken >= 0;
		datagram_seen.no_receive += q->taken < 0;
	}
	return -1;
}

/* Store the bytes that the receive must have in the host's shadow memory. */
static void check_fill(struct dg_host *h, const struct dg_slot *s, const uint8_t *bytes, size_t len)
{
	for (unsigned i = 0; i < s->pieces && len > 0; i++) {
		size_t n = len < s->len[i] ? len : s->len[i];

		memcpy(h->shadow + s->off[i], bytes, n);
		bytes += n;
		len -= n;
	}
}

static void check_filled(struct datagrams *d, struct dg_qp *q, const struct ud_header *h,
			 const struct ud_packet *p, int slot, const struct ibv_wc *wc)
{
	uint8_t bytes[UD_GRH_LEN + UD_PAYLOAD_MAX];
	size_t len = p->len - UD_HEADER_LEN;
	bool has_imm = h->opcode == UD_SEND_IMM;

	ud_grh_encode(bytes, &p->path, len);
	memcpy(bytes + UD_GRH_LEN, p->bytes + UD_HEADER_LEN, len);
	check_fill(q->host, &q->box->slot[slot], bytes, UD_GRH_LEN + len);
	if (wc->status != IBV_WC_SUCCESS || wc->opcode != IBV_WC_RECV ||
	    wc->wr_id != (uint64_t)slot || wc->byte_len != UD_GRH_LEN + len ||
	    wc->src_qp != h->from_qpn || wc->qp_num != q->qpn || !(wc->wc_flags & IBV_WC_GRH) ||
	    !(wc->wc_flags & IBV_WC_WITH_IMM) == has_imm || (has_imm && wc->imm_data != h->imm))
		dg_violate(d, q, "a receive does not have the fields of its message");
	datagram_seen.received++;
	datagram_seen.empty_messages += len == 0;
	datagram_seen.immediates += has_imm;
	datagram_seen.shared_receives += q->box->has_srq;
	q->box->slot[slot].busy = false;
	q->taken = -1;
}

/* The receives must be flushed in order, beginning with the taken one. */
static void check_flushed(struct datagrams *d, struct dg_qp *q, const struct ibv_wc *wc, int n)
{
	struct dg_box *b = q->box;
	unsigned own = b->has_srq ? 0 : b->count;
	int expected = (q->taken >= 0) + (int)own;

	if (n != expected)
		dg_violate(d, q, "not every posted receive came back, or one came twice");
	if (q->taken < 0 && own > 0)
		check_take(q);
	for (int i = 0; i < n && q->taken >= 0; i++) {
		if (wc[i].status != IBV_WC_WR_FLUSH_ERR || wc[i].wr_id != (uint64_t)q->taken)
			dg_violate(d, q, "a receive came back in the wrong order or state");
		b->slot[q->taken].busy = false;
		q->taken = -1;
		if (!b->has_srq)
			check_take(q);
		datagram_seen.flushed++;
	}
}

void dg_check_flushed(struct datagrams *d, struct dg_qp *q)
{
	struct ibv_wc wc[2 * DG_SLOTS];

	check_flushed(d, q, wc, cq_poll(&q->recv_cq, 2 * DG_SLOTS, wc));
}

/* The application has deregistered the memory of a receive, so that the receive must fail. */
static void check_failed(struct datagrams *d, struct dg_qp *q, const struct ibv_wc *wc, int n)
{
	if (wc->status != IBV_WC_LOC_PROT_ERR || wc->wr_id != (uint64_t)q->taken ||
	    dg_state(q) != IBV_QPS_ERR)
		dg_violate(d, q, "a receive without memory does not fail");
	q->box->slot[q->taken].busy = false;
	q->taken = -1;
	datagram_seen.bad_receives++;
	check_flushed(d, q, wc + 1, n - 1);
	dg_poll_sends(d, q);
}

/* Broken on purpose: replace the received key by the queue pair's key. */
static struct ud_header check_header(struct datagrams *d, const struct dg_qp *q,
				     const struct ud_header *h)
{
	struct ud_header given = *h;

	if (d->plan.mode == SIM_ANY_KEY)
		given.qkey = q->qkey;
	return given;
}

/* Broken on purpose: the last byte of the payload is not placed. */
static void check_tear(struct datagrams *d, struct dg_qp *q, int slot, size_t len)
{
	const struct dg_slot *s = slot >= 0 ? &q->box->slot[slot] : NULL;

	if (d->plan.mode == SIM_TORN && s && s->len[0] >= UD_GRH_LEN + len && len > 0)
		q->host->arena[s->off[0] + UD_GRH_LEN + len - 1] ^= 1;
}

void dg_receive(struct datagrams *d, struct dg_qp *q, const struct ud_header *h,
		const struct ud_packet *p, bool forged)
{
	size_t len = p->len - UD_HEADER_LEN;
	int slot = check_expect(q, h, len), n;
	struct ud_header given = check_header(d, q, h);
	struct ibv_wc wc[2 * DG_SLOTS];

	ud_qp_receive(q->qp, &given, &p->path, p->bytes + UD_HEADER_LEN, len);
	check_tear(d, q, slot, len);
	n = cq_poll(&q->recv_cq, 2 * DG_SLOTS, wc);
	if (slot < 0 && n > 0)
		dg_violate(d, q, "a message completes a receive that it must not have");
	else if (slot >= 0 && n == 0)
		dg_violate(d, q, "a message completes no receive");
	else if (slot >= 0 && !q->host->recv_mr)
		check_failed(d, q, wc, n);
	else if (slot >= 0 && n > 1)
		dg_violate(d, q, "a message completes several receives");
	else if (slot >= 0)
		check_filled(d, q, h, p, slot, wc);
	datagram_seen.forged_received += forged && slot >= 0;
	dg_check_memory(d, q->host);
}
