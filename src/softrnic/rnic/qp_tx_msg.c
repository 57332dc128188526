/* SPDX-License-Identifier: BSD-3-Clause */
/* The next message as FPDUs: whose turn it is, RTR, Terminate and heartbeats. */
#include "softrnic/rnic/qp_tx_msg.h"

bool tx_build_small(struct qp *qp, const struct ddp_hdr *hdr, const void *bytes, int len)
{
	struct tx_fpdu f = fpdu_of(qp);

	if (len < 0 || !tx_fpdu_open(&f, hdr, (uint32_t)len, 1))
		return false;
	(void)tx_fpdu_copy(&f, bytes, (size_t)len); /* our own memory does not vanish */
	fpdu_done(qp, &f);
	if (!hdr->tagged)
		qp->tx.msn[hdr->qn]++;
	return true;
}

/* The agreed ready-to-receive FPDU goes before anything of the user's (RFC 6581 s9). */
static bool build_rtr(struct qp *qp)
{
	struct rdmap_read_req req = {.sink_stag = DUMMY_STAG, .src_stag = DUMMY_STAG};
	uint8_t bytes[RDMAP_READ_REQ_LEN];
	struct ddp_hdr hdr;
	int len = 0;

	switch (qp->stream.rtr_out) {
	case QP_RTR_SEND:
		hdr = untagged(qp, RDMAP_SEND);
		break;
	case QP_RTR_READ:
		hdr = untagged(qp, RDMAP_READ_REQ);
		len = rdmap_read_req_encode(bytes, sizeof(bytes), &req);
		break;
	default:
		hdr = tagged(RDMAP_WRITE, DUMMY_STAG, 0);
		break;
	}
	if (!tx_build_small(qp, &hdr, bytes, len))
		return false;
	if (qp->stream.rtr_out == QP_RTR_READ)
		qp_orq_push(qp, ORQ_RTR);
	qp->tx.rtr_due = false;
	return true;
}

static bool build_terminate(struct qp *qp)
{
	struct ddp_hdr hdr = untagged(qp, RDMAP_TERMINATE);
	uint8_t bytes[TERM_MAX_LEN];

	if (!tx_build_small(qp, &hdr, bytes, terminate_encode(bytes, sizeof(bytes), &qp->term)))
		return false;
	qp->tx.term_due = false;
	qp->counters.terminates_out++;
	return true;
}

static bool build_engine(struct qp *qp)
{
	struct ddp_hdr hdr = untagged(qp, RDMAP_ENGINE);
	struct rdmap_engine msg = qp_engine_next(qp);
	uint8_t bytes[RDMAP_ENGINE_LEN];

	if (!tx_build_small(qp, &hdr, bytes, rdmap_engine_encode(bytes, sizeof(bytes), &msg)))
		return false;
	qp_engine_sent(qp);
	return true;
}

/* Messages do not interleave; between two of them, answers and requests take turns. */
static void pick_source(struct qp *qp)
{
	bool sq = qp_sq_is_ready(qp), irq = qp_irq_is_ready(qp);

	if (sq && irq)
		qp->tx.source = qp->tx.last == TX_FROM_SQ ? TX_FROM_IRQ : TX_FROM_SQ;
	else
		qp->tx.source = sq ? TX_FROM_SQ : irq ? TX_FROM_IRQ : TX_NONE;
	qp->tx.last = qp->tx.source;
}

bool qp_tx_build(struct qp *qp)
{
	if (qp->tx.term_due)
		return build_terminate(qp);
	if (qp->tx.rtr_due)
		return build_rtr(qp);
	if (qp->tx.source == TX_NONE) {
		if (qp_engine_is_due(qp))
			return build_engine(qp);
		pick_source(qp);
	}
	switch (qp->tx.source) {
	case TX_FROM_SQ:
		return tx_build_wr(qp);
	case TX_FROM_IRQ:
		return tx_build_answer(qp);
	case TX_NONE:
		break;
	}
	return false;
}
