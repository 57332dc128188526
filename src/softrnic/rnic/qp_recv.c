/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends from the peer and the receives they go to. A Send that finds none is parked, and
 * every Send after it queues behind it; Writes, responses and Terminate pass by, requests
 * wait in the IRQ (D8). Only when the room for parking is used up does the stream stall.
 */
#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic/rnic/qp_impl.h"

/* --- waiting on a SRQ --------------------------------------------------------------------- */

/* Not a part of struct qp: a kick may be on its way when the QP is deleted. */
struct qp_waiter {
	struct srq_waiter srq;
	atomic_uint refs;
	void (*kick)(void *owner);
	void (*get)(void *owner);
	void *owner;
};

static void waiter_put(struct qp_waiter *w)
{
	if (atomic_fetch_sub(&w->refs, 1) == 1)
		free(w);
}

static void waiter_get(struct srq_waiter *srq)
{
	struct qp_waiter *w = container_of(srq, struct qp_waiter, srq);

	atomic_fetch_add(&w->refs, 1);
	if (w->get)
		w->get(w->owner);
}

static void waiter_kick(struct srq_waiter *srq)
{
	struct qp_waiter *w = container_of(srq, struct qp_waiter, srq);

	if (w->kick)
		w->kick(w->owner);
	waiter_put(w);
}

int qp_recv_init(struct qp *qp)
{
	struct qp_waiter *w;

	if (!qp->cfg.srq)
		return rq_init(&qp->recv.rq, qp->cfg.cap.max_recv_wr, qp->cfg.cap.max_recv_sge);
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	list_init(&w->srq.link);
	w->srq.get = waiter_get;
	w->srq.kick = waiter_kick;
	atomic_init(&w->refs, 1);
	w->kick = qp->cfg.kick;
	w->get = qp->cfg.get;
	w->owner = qp->cfg.owner;
	qp->recv.waiter = w;
	return 0;
}

static void stop_waiting(struct qp *qp)
{
	if (qp->recv.waiter)
		srq_cancel(qp->cfg.srq, &qp->recv.waiter->srq);
}

void qp_recv_fini(struct qp *qp)
{
	stop_waiting(qp);
	if (qp->recv.waiter)
		waiter_put(qp->recv.waiter);
	qp_park_clear(qp);
	rq_fini(&qp->recv.rq);
}

/* --- receives ----------------------------------------------------------------------------- */

static uint64_t room_of(const struct rq_wr *wr)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < wr->num_sge; i++)
		sum += wr->sge[i].length;
	return sum;
}

/* A receive for a Send that begins now. */
static bool take(struct qp *qp)
{
	struct recv_msg *msg = &qp->recv.msg;
	bool taken = qp->cfg.srq ? srq_take(qp->cfg.srq, &msg->wr, &qp->recv.waiter->srq)
				 : rq_take(&qp->recv.rq, &msg->wr);

	if (!taken)
		return false;
	msg->has_wr = true;
	msg->room = room_of(&msg->wr);
	msg->received = 0;
	return true;
}

static void complete(struct qp *qp, struct ibv_wc *wc, bool solicited)
{
	wc->wr_id = qp->recv.msg.wr.wr_id;
	qp->recv.msg.has_wr = false;
	qp_complete(qp, qp->cfg.recv_cq, wc, solicited, NULL);
}

static void flush_one(struct qp *qp, enum ibv_wc_status status)
{
	struct ibv_wc wc = {.status = status, .opcode = IBV_WC_RECV, .vendor_err = qp->cause};

	if (qp->recv.msg.has_wr)
		complete(qp, &wc, false);
}

void qp_recv_fail(struct qp *qp, enum ibv_wc_status status, int err)
{
	qp_blame_local(qp, NULL, status, err);
	flush_one(qp, status);
}

bool qp_recv_is_open(const struct qp *qp)
{
	return !qp_is_failed(qp) || qp->recv.last_words;
}

void qp_recv_flush(struct qp *qp)
{
	if (qp->recv.last_words)
		return;
	stop_waiting(qp);
	qp_park_clear(qp);
	flush_one(qp, IBV_WC_WR_FLUSH_ERR);
	while (rq_take(&qp->recv.rq, &qp->recv.msg.wr)) {
		qp->recv.msg.has_wr = true;
		flush_one(qp, IBV_WC_WR_FLUSH_ERR);
	}
}

/*
 * The peer's Sends were complete for it when they were here, and then it said good-bye. Losing them
 * would be telling it a lie. Of receives there are none posted, or they would not be parked.
 */
void qp_recv_keep(struct qp *qp)
{
	if (!qp_is_failed(qp))
		qp->recv.last_words = !list_empty(&qp->recv.parked);
}

void qp_recv_keep_no_more(struct qp *qp)
{
	if (!qp->recv.last_words)
		return;
	qp->recv.last_words = false;
	qp_recv_flush(qp);
}

static int post_one(struct qp *qp, const struct ibv_recv_wr *wr)
{
	struct ibv_wc wc = {.wr_id = wr->wr_id,
			    .status = IBV_WC_WR_FLUSH_ERR,
			    .opcode = IBV_WC_RECV,
			    .vendor_err = qp->cause};

	if (qp->cfg.srq)
		return EINVAL;
	if (qp_recv_is_open(qp))
		return rq_post(&qp->recv.rq, wr);
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cfg.cap.max_recv_sge)
		return EINVAL;
	qp_complete(qp, qp->cfg.recv_cq, &wc, false, NULL);
	return 0;
}

int qp_post_recv(struct qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = 0;

	for (; wr; wr = wr->next) {
		err = post_one(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	return err;
}

bool qp_rx_waits_for_receive(const struct qp *qp)
{
	return !list_empty(&qp->recv.parked) || qp->rx.stalled;
}

/* --- Sends -------------------------------------------------------------------------------- */

static enum rx_verdict check_order(struct qp *qp, const struct rx_seg *seg)
{
	const struct qp_recv *r = &qp->recv;
	unsigned error = 0;

	if (seg->hdr.msn != qp->rx.msn[DDP_QN_SEND])
		error = TERM_DDP_BAD_MSN;
	else if (seg->hdr.mo != (r->open ? r->mo : 0))
		error = TERM_DDP_BAD_MO;
	else if (r->open && seg->hdr.ulp != r->ulp)
		error = TERM_RDMAP_UNEXPECTED_OPCODE;
	if (!error)
		return RX_DONE;
	qp_refuse_seg(qp, error, seg);
	return RX_DEAD;
}

static bool fits(struct qp *qp, const struct rx_seg *seg)
{
	struct recv_msg *msg = &qp->recv.msg;

	if (msg->received + (uint64_t)seg->payload <= msg->room)
		return true;
	qp_recv_fail(qp, IBV_WC_LOC_LEN_ERR, EMSGSIZE);
	qp_refuse_seg(qp, TERM_DDP_TOO_LONG, seg);
	return false;
}

static enum rx_verdict accept_send(struct qp *qp, struct rx_seg *seg, bool whole)
{
	if (check_order(qp, seg) != RX_DONE)
		return RX_DEAD;
	if (seg->rtr_send)
		return RX_DONE;
	if (list_empty(&qp->recv.parked) && (qp->recv.msg.has_wr || take(qp)))
		return fits(qp, seg) ? RX_DONE : RX_DEAD;
	if (!qp_park_has_room(qp, seg->payload))
		return RX_STALL;
	seg->keep = true;
	return whole ? RX_DONE : RX_MORE;
}

/* Where in the receive's SGEs the next byte goes. */
static uint32_t send_target(struct qp *qp, const struct rx_seg *seg, uint32_t max, struct mr **mr,
			    void **ptr)
{
	const struct rq_wr *wr = &qp->recv.msg.wr;
	uint64_t off = qp->recv.msg.received + (uint64_t)seg->done;
	enum mr_verdict verdict;
	uint32_t i = 0, n;

	while (off >= wr->sge[i].length) /* fits() has seen that there is room */
		off -= wr->sge[i++].length;
	n = wr->sge[i].length - (uint32_t)off;
	n = n < max ? n : max;
	verdict = mr_hold(qp->cfg.mrs, qp->cfg.pd, wr->sge[i].lkey, wr->sge[i].addr + off, n,
			  IBV_ACCESS_LOCAL_WRITE, mr, ptr);
	if (verdict == MR_OK)
		return n;
	qp_recv_fail(qp, IBV_WC_LOC_PROT_ERR, qp_local_errno(verdict));
	qp_refuse_seg(qp, TERM_DDP_LOCAL_CATASTROPHIC, seg);
	return 0;
}

static void complete_message(struct qp *qp, const struct rx_seg *seg, struct ibv_wc *wc)
{
	qp->recv.delivered_sends++;
	qp->counters.sends_in++;
	complete(qp, wc, rdmap_ctrl_is_solicited(seg->hdr.ulp));
	qp_irq_run(qp);
}

/* The last segment is in its receive: the user may see it. */
static void delivered(struct qp *qp, const struct rx_seg *seg)
{
	const struct rdmap_op *op = &rdmap_ops[rdmap_ctrl_opcode(seg->hdr.ulp)];
	struct ibv_wc wc = {.opcode = IBV_WC_RECV, .byte_len = qp->recv.msg.received};

	if (op->invalidate) {
		if (mr_invalidate(qp->cfg.mrs, qp->cfg.pd, seg->hdr.ulp_word) != MR_OK) {
			qp_refuse_seg(qp, TERM_RDMAP_STAG_NOT_INVALIDATED, seg);
			return;
		}
		wc.wc_flags = IBV_WC_WITH_INV;
		wc.invalidated_rkey = seg->hdr.ulp_word;
	} else if (op->immediate) {
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = htobe32(seg->hdr.ulp_word);
	}
	complete_message(qp, seg, &wc);
}

static void finish_send(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct qp_recv *r = &qp->recv;

	r->open = !seg->hdr.last;
	r->ulp = seg->hdr.ulp;
	r->mo = seg->hdr.last ? 0 : r->mo + seg->payload;
	if (seg->hdr.last)
		qp->rx.msn[DDP_QN_SEND]++;
	if (seg->rtr_send)
		return;
	qp->rx.written = 0;
	r->seen_sends += seg->hdr.last;
	if (seg->keep) {
		if (qp_park_add(qp, seg, bytes))
			qp_refuse_seg(qp, TERM_DDP_LOCAL_CATASTROPHIC, seg);
		return;
	}
	r->msg.received += seg->payload;
	if (seg->hdr.last)
		delivered(qp, seg);
}

const struct rx_op qp_rx_send = {accept_send, send_target, finish_send};

/* --- Immediate Data (RFC 7306 s6) --------------------------------------------------------- */

/* Its receive's memory stays as it is; behind a Write it tells how long that was. */
static void delivered_imm(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct ibv_wc wc = {
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.byte_len = seg->written,
		.wc_flags = IBV_WC_WITH_IMM,
	};
	struct rdmap_imm imm;

	rdmap_imm_decode(bytes, seg->payload, &imm);
	wc.imm_data = htobe32((uint32_t)(imm.data >> 32));
	complete_message(qp, seg, &wc);
}

static enum rx_verdict accept_imm(struct qp *qp, struct rx_seg *seg, bool whole)
{
	if (check_order(qp, seg) != RX_DONE)
		return RX_DEAD;
	if (list_empty(&qp->recv.parked) && take(qp))
		return RX_DONE;
	seg->keep = true;
	return qp_park_has_room(qp, seg->payload) ? RX_DONE : RX_STALL;
}

static void finish_imm(struct qp *qp, const struct rx_seg *received, const uint8_t *bytes)
{
	struct rx_seg seg = *received;

	seg.written = qp->rx.written;
	qp->rx.written = 0;
	qp->rx.msn[DDP_QN_SEND]++;
	qp->recv.seen_sends++;
	if (!seg.keep)
		delivered_imm(qp, &seg, bytes);
	else if (qp_park_add(qp, &seg, bytes))
		qp_refuse_seg(qp, TERM_DDP_LOCAL_CATASTROPHIC, &seg);
}

const struct rx_op qp_rx_imm = {accept_imm, NULL, finish_imm};

/* --- parked Sends ------------------------------------------------------------------------- */

static bool deliver_one(struct qp *qp, struct park_seg *p)
{
	struct rx_seg seg = {
		.op = qp_rx_ops[rdmap_ctrl_opcode(p->hdr.ulp)],
		.hdr = p->hdr,
		.ulpdu = DDP_UNTAGGED_HDR + p->len,
		.payload = p->len,
		.written = p->written,
	};

	if (seg.op == &qp_rx_imm) {
		uint8_t bytes[RDMAP_IMM_LEN];

		memcpy(bytes, p->bytes, sizeof(bytes));
		qp_park_drop(qp, p);
		delivered_imm(qp, &seg, bytes);
		return qp_recv_is_open(qp);
	}
	if (!fits(qp, &seg) || qp_rx_place(qp, &seg, p->bytes, p->len))
		return false; /* the QP failed, and p is gone */
	qp_park_drop(qp, p);
	qp->recv.msg.received += seg.payload;
	if (seg.hdr.last)
		delivered(qp, &seg);
	return qp_recv_is_open(qp);
}

void qp_recv_deliver(struct qp *qp)
{
	struct list *node;

	while ((node = list_first(&qp->recv.parked)) && (qp->recv.msg.has_wr || take(qp))) {
		if (!deliver_one(qp, container_of(node, struct park_seg, link)))
			return;
	}
	if (!node)
		qp_recv_keep_no_more(qp);
}
