/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "softrnic/rnic/qp_impl.h"

_Static_assert(sizeof(struct qp) < 8192, "an idle QP is small; its rings come on top");

/* --- state -------------------------------------------------------------------------------- */

static const char *qp_state_str(enum ibv_qp_state state)
{
	static const char *const names[] = {
		[IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT", [IBV_QPS_RTR] = "RTR",
		[IBV_QPS_RTS] = "RTS",     [IBV_QPS_SQD] = "SQD",   [IBV_QPS_SQE] = "SQE",
		[IBV_QPS_ERR] = "ERR",
	};

	return names[state];
}

static void qp_set_state(struct qp *qp, enum ibv_qp_state state, const char *why)
{
	LOG_DEBUG("qp %u: %s -> %s (%s)", qp->cfg.qp_num, qp_state_str(qp->ibv.state),
		  qp_state_str(state), why);
	qp->ibv.state = state;
}

enum ibv_qp_state qp_state(const struct qp *qp)
{
	return qp->ibv.state;
}

bool qp_is_failed(const struct qp *qp)
{
	return qp->ibv.state == IBV_QPS_ERR;
}

void qp_fault(struct qp *qp, enum ibv_wc_status first, uint32_t vendor_err, const char *why)
{
	if (qp_is_failed(qp)) { /* after an orderly end; see qp_recv_keep() */
		qp_recv_keep_no_more(qp);
		return;
	}
	if (!qp->cause)
		qp->cause = vendor_err;
	if (qp->ibv.state == IBV_QPS_INIT || qp->tx.held)
		qp->tx.term_due = false; /* no FPDU may go, not even this one */
	qp_set_state(qp, IBV_QPS_ERR, why);
	qp_rx_stop(qp);
	qp_tx_stop(qp);
	qp_requests_stop(qp);
	qp_sq_flush(qp, first);
	qp_recv_flush(qp);
}

static enum ibv_event_type qp_event_of(unsigned error)
{
	switch (error >> 8) {
	case TERM_RDMAP << 4 | TERM_RDMAP_PROTECTION:
	case TERM_DDP << 4 | TERM_DDP_TAGGED:
		return IBV_EVENT_QP_ACCESS_ERR;
	case TERM_RDMAP << 4 | TERM_RDMAP_OPERATION:
	case TERM_DDP << 4 | TERM_DDP_UNTAGGED:
		return IBV_EVENT_QP_REQ_ERR;
	default:
		return IBV_EVENT_QP_FATAL;
	}
}

void qp_async(struct qp *qp, enum ibv_event_type event)
{
	if (qp->cfg.async)
		qp->cfg.async(qp->cfg.owner, event);
}

void qp_refuse(struct qp *qp, unsigned error, const struct ddp_hdr *ddp, uint32_t segment_len,
	       const struct rdmap_read_req *read)
{
	if (qp_is_failed(qp)) {
		qp_recv_keep_no_more(qp);
		return;
	}
	if (!qp->has_term) {
		qp->term = terminate_of(error);
		terminate_echo(&qp->term, ddp, (uint16_t)segment_len, read);
		qp->has_term = qp->term_sent_by_us = qp->tx.term_due = true;
	}
	LOG_INFO("qp %u: terminates the stream: %s", qp->cfg.qp_num, term_str(error));
	qp_async(qp, qp_event_of(error));
	qp_fault(qp, IBV_WC_WR_FLUSH_ERR, vext_vendor_err(VEXT_REASON_TERMINATE_OUT, error),
		 term_str(error));
}

void qp_refuse_seg(struct qp *qp, unsigned error, const struct rx_seg *seg)
{
	qp_refuse(qp, error, &seg->hdr, seg->ulpdu, NULL);
}

void qp_set_local_cause(struct qp *qp, struct sq_wr *wr, enum ibv_wc_status status, int err)
{
	uint32_t vendor_err = vext_vendor_err(VEXT_REASON_LOCAL, (uint32_t)err);

	if (wr) {
		wr->status = status;
		wr->vendor_err = vendor_err;
	}
	if (!qp->cause)
		qp->cause = vendor_err;
}

bool qp_cause_is_local(const struct qp *qp)
{
	return qp->cause >> 24 == VEXT_REASON_LOCAL;
}

void qp_set_link_cause(struct qp *qp, int err)
{
	if (!qp->cause)
		qp->cause = vext_vendor_err(VEXT_REASON_LINK, (uint32_t)err);
}

void qp_fail(struct qp *qp, enum ibv_wc_status status)
{
	qp_set_link_cause(qp, ECONNABORTED);
	qp_fault(qp, status, qp->cause, "failed by its owner");
	qp_tx_shut(qp);
}

void qp_drain(struct qp *qp)
{
	if (qp->ibv.state == IBV_QPS_RTS)
		qp_set_state(qp, IBV_QPS_SQD, "drain");
}

void qp_on_eof(struct qp *qp)
{
	bool inside = qp->rx.seg.active || qp->rx.head != qp->rx.tail;

	qp->rx.eof = true;
	if (!qp_is_failed(qp) && inside)
		qp_async(qp, IBV_EVENT_QP_FATAL);
	qp_set_link_cause(qp, inside ? ECONNRESET : ENOTCONN);
	if (!inside)
		qp_recv_keep(qp);
	qp_fault(qp, IBV_WC_WR_FLUSH_ERR, qp->cause,
		 inside ? "end of stream inside an FPDU" : "end of stream");
	qp_tx_shut(qp);
}

int qp_start(struct qp *qp, const struct qp_stream *stream)
{
	uint32_t depth = stream->ird < RNIC_MAX_RD_ATOM ? stream->ird : RNIC_MAX_RD_ATOM;
	int err;

	if (qp->ibv.state != IBV_QPS_INIT)
		return -EINVAL;
	err = irq_init(&qp->irq, depth);
	if (err)
		return err;
	qp->stream = *stream;
	qp->orq.ord = stream->ord < RNIC_MAX_RD_ATOM ? stream->ord : RNIC_MAX_RD_ATOM;
	qp->tx.mulpdu = stream->consent ? MPA_ULPDU_MAX : mpa_mulpdu(stream->mss, stream->markers);
	qp->tx.held = stream->hold_tx;
	qp->tx.rtr_due = stream->rtr_out != QP_RTR_NONE;
	qp->rtr_in = stream->rtr_in;
	hello_begin(qp);
	qp_set_state(qp, IBV_QPS_RTS, "start");
	qp_rx_resume(qp); /* bytes may be here already */
	return 0;
}

/* --- life --------------------------------------------------------------------------------- */

static void qp_init_ibv(struct qp *qp)
{
	qp->ibv = (struct ibv_qp){
		.context = qp->cfg.pd->context,
		.pd = qp->cfg.pd,
		.send_cq = &qp->cfg.send_cq->ibv,
		.recv_cq = &qp->cfg.recv_cq->ibv,
		.srq = qp->cfg.srq ? &qp->cfg.srq->ibv : NULL,
		.handle = qp->cfg.qp_num,
		.qp_num = qp->cfg.qp_num,
		.state = IBV_QPS_INIT,
		.qp_type = IBV_QPT_RC,
	};
}

int qp_new(const struct qp_config *cfg, struct qp **out)
{
	struct qp *qp = calloc(1, sizeof(*qp));
	int err;

	if (!qp)
		return -ENOMEM;
	qp->cfg = *cfg;
	qp_init_ibv(qp);
	for (int q = 0; q < DDP_QN_COUNT; q++)
		qp->tx.msn[q] = qp->rx.msn[q] = DDP_FIRST_MSN;
	park_init(&qp->recv.park);
	err = sq_init(&qp->sq, &qp->cfg.cap);
	if (!err)
		err = qp_recv_init(qp);
	if (err) {
		qp_delete(qp);
		return err;
	}
	*out = qp;
	return 0;
}

void qp_delete(struct qp *qp)
{
	if (!qp)
		return;
	assert(qp->requests.state != REQUEST_RUNNING);
	qp_rx_fini(qp);
	qp_tx_shut(qp);
	qp_requests_stop(qp);
	qp_recv_fini(qp);
	irq_fini(&qp->irq);
	sq_fini(&qp->sq);
	dirty_fini(&qp->dirty);
	dirty_fini(&qp->requests.all);
	cq_purge(qp->cfg.send_cq, qp->cfg.qp_num);
	cq_purge(qp->cfg.recv_cq, qp->cfg.qp_num);
	free(qp);
}

/* --- small answers ------------------------------------------------------------------------ */

struct ibv_qp *qp_ibv(struct qp *qp)
{
	return &qp->ibv;
}

struct qp *qp_of(struct ibv_qp *ibv)
{
	return container_of(ibv, struct qp, ibv);
}

void *qp_owner(const struct qp *qp)
{
	return qp->cfg.owner;
}

const struct qp_counters *qp_counters(const struct qp *qp)
{
	return &qp->counters;
}

bool qp_has_received(const struct qp *qp)
{
	return qp->rx.any;
}

const struct terminate *qp_terminate(const struct qp *qp, bool *sent)
{
	if (sent)
		*sent = qp->has_term && qp->term_sent_by_us;
	return qp->has_term ? &qp->term : NULL;
}

enum rdmap_level qp_level(const struct qp *qp)
{
	if (qp->stream.consent)
		return RDMAP_LEVEL_OURS;
	return qp->cfg.peer_rfc7306 ? RDMAP_LEVEL_7306 : RDMAP_LEVEL_BASE;
}

uint32_t qp_caps(const struct qp *qp)
{
	bool asks = qp->orq.ord > 0;
	uint32_t caps = 0;

	if (qp->stream.consent)
		caps |= VEXT_CAP_SOFTRNIC;
	if (asks)
		caps |= qp->hello.caps;
	if (qp_level(qp) >= RDMAP_LEVEL_7306)
		caps |= VEXT_CAP_IMM | (asks ? VEXT_CAP_ATOMICS : 0);
	return caps;
}

/* --- completions and error codes ---------------------------------------------------------- */

void qp_complete(struct qp *qp, struct cq *cq, struct ibv_wc *wc, bool solicited,
		 atomic_uint *uncollected)
{
	wc->qp_num = qp->cfg.qp_num;
	if (cq_push(cq, wc, solicited, uncollected) == 0)
		return;
	if (!qp_is_failed(qp)) {
		qp_async(qp, IBV_EVENT_QP_FATAL);
		qp_set_local_cause(qp, NULL, IBV_WC_SUCCESS, EOVERFLOW);
	}
	qp_fault(qp, IBV_WC_WR_FLUSH_ERR, qp->cause, "completion queue overrun");
}

int qp_local_errno(enum mr_verdict verdict)
{
	return verdict == MR_BAD_BOUNDS || verdict == MR_TO_WRAP ? ERANGE : EACCES;
}

unsigned qp_rdmap_error(enum mr_verdict verdict)
{
	static const unsigned errors[] = {
		[MR_BAD_STAG] = TERM_RDMAP_INVALID_STAG,
		[MR_BAD_PD] = TERM_RDMAP_STAG_NOT_ASSOCIATED,
		[MR_BAD_ACCESS] = TERM_RDMAP_ACCESS,
		[MR_BAD_BOUNDS] = TERM_RDMAP_BASE_BOUNDS,
		[MR_TO_WRAP] = TERM_RDMAP_TO_WRAP,
	};

	return errors[verdict];
}

/* DDP has no code for missing rights; that check is RDMAP's (RFC 5040 s7.2). */
unsigned qp_ddp_error(enum mr_verdict verdict)
{
	static const unsigned errors[] = {
		[MR_BAD_STAG] = TERM_DDP_INVALID_STAG, [MR_BAD_PD] = TERM_DDP_STAG_NOT_ASSOCIATED,
		[MR_BAD_ACCESS] = TERM_RDMAP_ACCESS,   [MR_BAD_BOUNDS] = TERM_DDP_BASE_BOUNDS,
		[MR_TO_WRAP] = TERM_DDP_TO_WRAP,
	};

	return errors[verdict];
}
