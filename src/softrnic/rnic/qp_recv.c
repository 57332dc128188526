/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds receives for the peer's Sends. A Send that finds no receive is parked (its bytes are copied
 * and kept), and every later Send is parked after it. Writes, responses and Terminate do not wait
 * for a receive; requests wait in the IRQ. The stream stalls only when the limit of parked Sends is
 * reached.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "softrnic/rnic/qp_impl.h"

/* --- waiting on a SRQ --------------------------------------------------------------------- */

/* The QP's entry in its SRQ's list of waiters. It is separate from struct qp, because a
 * notification may be in progress when the QP is deleted. */
struct qp_waiter {
	struct srq_waiter srq;
	atomic_uint refs;
	void (*notify)(void *owner);
	void (*get)(void *owner);
	void *owner;
};

static void recv_waiter_put(struct qp_waiter *w)
{
	if (atomic_fetch_sub(&w->refs, 1) == 1)
		free(w);
}

static void recv_waiter_get(struct srq_waiter *srq)
{
	struct qp_waiter *w = container_of(srq, struct qp_waiter, srq);

	atomic_fetch_add(&w->refs, 1);
	if (w->get)
		w->get(w->owner);
}

static void recv_waiter_notify(struct srq_waiter *srq)
{
	struct qp_waiter *w = container_of(srq, struct qp_waiter, srq);

	if (w->notify)
		w->notify(w->owner);
	recv_waiter_put(w);
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
	w->srq.get = recv_waiter_get;
	w->srq.notify = recv_waiter_notify;
	atomic_init(&w->refs, 1);
	w->notify = qp->cfg.notify;
	w->get = qp->cfg.get;
	w->owner = qp->cfg.owner;
	qp->recv.waiter = w;
	return 0;
}

static void recv_stop_waiting(struct qp *qp)
{
	if (qp->recv.waiter)
		srq_cancel(qp->cfg.srq, &qp->recv.waiter->srq);
}

void qp_recv_fini(struct qp *qp)
{
	recv_stop_waiting(qp);
	if (qp->recv.waiter)
		recv_waiter_put(qp->recv.waiter);
	park_clear(&qp->recv.park);
	rq_fini(&qp->recv.rq);
}

/* --- receives ----------------------------------------------------------------------------- */

bool qp_recv_take(struct qp *qp)
{
	struct recv_msg *msg = &qp->recv.msg;
	bool taken = qp->cfg.srq ? srq_take(qp->cfg.srq, &msg->wr, &qp->recv.waiter->srq)
				 : rq_take(&qp->recv.rq, &msg->wr);

	if (!taken)
		return false;
	msg->has_wr = true;
	msg->room = rq_wr_room(&msg->wr);
	msg->received = 0;
	return true;
}

static void recv_complete(struct qp *qp, struct ibv_wc *wc, bool solicited)
{
	wc->wr_id = qp->recv.msg.wr.wr_id;
	qp->recv.msg.has_wr = false;
	qp_complete(qp, qp->cfg.recv_cq, wc, solicited, NULL);
}

static void recv_flush_one(struct qp *qp, enum ibv_wc_status status)
{
	struct ibv_wc wc = {.status = status, .opcode = IBV_WC_RECV, .vendor_err = qp->cause};

	if (qp->recv.msg.has_wr)
		recv_complete(qp, &wc, false);
}

void qp_recv_fail(struct qp *qp, enum ibv_wc_status status, int err)
{
	qp_set_local_cause(qp, NULL, status, err);
	qp->fault.recv = status;
}

void qp_recv_end(struct qp *qp, enum ibv_wc_status status)
{
	if (status != IBV_WC_SUCCESS)
		recv_flush_one(qp, status);
}

bool qp_recv_is_open(const struct qp *qp)
{
	return !qp_is_failed(qp) || qp->recv.after_close;
}

void qp_recv_flush(struct qp *qp)
{
	if (qp->recv.after_close)
		return;
	recv_stop_waiting(qp);
	park_clear(&qp->recv.park);
	recv_flush_one(qp, IBV_WC_WR_FLUSH_ERR);
	while (rq_take(&qp->recv.rq, &qp->recv.msg.wr)) {
		qp->recv.msg.has_wr = true;
		recv_flush_one(qp, IBV_WC_WR_FLUSH_ERR);
	}
	if (qp->cfg.srq && !qp->recv.last_reported) {
		qp->recv.last_reported = true;
		qp_event(qp,
			 /* the QP takes no more receives from the SRQ */
			 IBV_EVENT_QP_LAST_WQE_REACHED);
	}
}

/* Keep parked Sends when the stream ends. They have completed at the peer before it closed, so they
 * are delivered after the close. No receive is in the queue at this time, because a parked Send
 * would have taken it. */
void qp_recv_keep(struct qp *qp)
{
	qp->recv.after_close = !park_is_empty(&qp->recv.park);
}

void qp_recv_keep_no_more(struct qp *qp)
{
	if (!qp->recv.after_close)
		return;
	qp->recv.after_close = false;
	qp_recv_flush(qp);
}

/* Prepare for another stream. Posted receives stay in the queue, even one that a Send has begun to
 * fill. */
void qp_recv_rewind(struct qp *qp)
{
	struct qp_recv *r = &qp->recv;

	recv_stop_waiting(qp);
	park_clear(&r->park);
	r->open = r->lost = r->after_close = false;
	r->ulp = 0;
	r->mo = r->seen_sends = r->delivered_sends = 0;
	r->msg.received = 0;
}

static int recv_post_one(struct qp *qp, const struct ibv_recv_wr *wr)
{
	struct ibv_wc wc = {.wr_id = wr->wr_id,
			    .status = IBV_WC_WR_FLUSH_ERR,
			    .opcode = IBV_WC_RECV,
			    .vendor_err = qp->cause};

	if (qp->cfg.srq || qp->ibv.state == IBV_QPS_RESET)
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
		err = recv_post_one(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	qp_settle(qp);
	return err;
}

bool qp_rx_waits_for_receive(const struct qp *qp)
{
	return !park_is_empty(&qp->recv.park) || qp->rx.stalled;
}

/* --- messages ----------------------------------------------------------------------------- */

bool qp_recv_is_in_order(struct qp *qp, const struct rx_seg *seg)
{
	const struct qp_recv *r = &qp->recv;
	unsigned error = 0;

	if (seg->hdr.msn != qp->rx.msn[DDP_QN_SEND])
		error = TERM_DDP_BAD_MSN;
	else if (seg->hdr.mo != (r->open ? r->mo : 0))
		error = TERM_DDP_BAD_MO;
	else if (r->open && seg->hdr.ulp != r->ulp)
		error = TERM_RDMAP_UNEXPECTED_OPCODE;
	if (error)
		qp_refuse_seg(qp, error, seg);
	return !error;
}

void qp_recv_lose(struct qp *qp, bool last)
{
	qp->recv.lost = !last;
	qp->recv.msg.received = 0;
	qp->counters.lost_in += last;
}

void qp_recv_complete(struct qp *qp, const struct rx_seg *seg, struct ibv_wc *wc)
{
	qp->recv.delivered_sends++;
	qp->counters.sends_in++;
	recv_complete(qp, wc, rdmap_ctrl_is_solicited(seg->hdr.ulp));
	qp_requests_run(qp);
}

void qp_recv_park(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct park_seg *p = park_add(&qp->recv.park, &seg->hdr, bytes, seg->payload);

	if (!p) {
		qp_refuse_seg(qp, TERM_DDP_LOCAL_CATASTROPHIC, seg);
		return;
	}
	p->written = seg->written;
	p->writes_before = qp->counters.writes_in;
	qp->counters.parked_sends += p->hdr.last;
}

static bool recv_deliver_one(struct qp *qp, struct park_seg *p)
{
	struct rx_seg seg = {
		.rx = op_of_request(rdmap_ctrl_opcode(p->hdr.ulp), 0)->message,
		.hdr = p->hdr,
		.ulpdu = DDP_UNTAGGED_HDR + p->len,
		.payload = p->len,
		.written = p->written,
	};

	return seg.rx->deliver(qp, &seg, p);
}

void qp_recv_deliver(struct qp *qp)
{
	struct park_seg *p;

	while ((p = park_first(&qp->recv.park)) && (qp->recv.msg.has_wr || qp_recv_take(qp))) {
		ack_update(qp); /* a refused Send delays the count of all later messages */
		if (!recv_deliver_one(qp, p))
			break;
	}
	mr_release_near(&qp->rx.near);
	if (!qp->fault.due)
		ack_update(qp);
	if (!p)
		qp_recv_keep_no_more(qp);
}
