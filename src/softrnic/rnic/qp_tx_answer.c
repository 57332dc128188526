/* SPDX-License-Identifier: BSD-3-Clause */
/* Our answers to the peer's requests as FPDUs. */
#include <string.h>

#include "softrnic/rnic/qp_tx_msg.h"

static void answered(struct qp *qp)
{
	qp->tx.source = TX_NONE;
	qp->tx.off = 0;
	qp_irq_answered(qp);
}

static bool response_failed(struct qp *qp, unsigned error)
{
	if (qp->tx.batch->len == 0)
		qp_irq_refuse(qp, error, qp->tx.off);
	return false;
}

static bool build_read_resp(struct qp *qp, const struct irq_entry *e)
{
	const struct rdmap_read_req *req = &e->read;
	uint64_t at = req->sink_to + qp->tx.off;
	struct ddp_hdr hdr = tagged(RDMAP_READ_RESP, req->sink_stag, at);
	uint32_t len = segment_of(qp, &hdr, at, req->size - qp->tx.off);
	struct tx_fpdu f = fpdu_of(qp);
	enum mr_verdict verdict;
	struct mr *mr;
	void *ptr;

	if (!tx_fpdu_open(&f, &hdr, len, 1))
		return false;
	if (len > 0) {
		verdict = mr_hold(qp->cfg.mrs, qp->cfg.pd, req->src_stag, req->src_to + qp->tx.off,
				  len, IBV_ACCESS_REMOTE_READ, &mr, &ptr);
		if (verdict != MR_OK || tx_fpdu_add(&f, ptr, len, mr)) {
			tx_fpdu_abort(&f);
			return response_failed(qp, verdict != MR_OK ? qp_rdmap_error(verdict)
								    : TERM_RDMAP_BASE_BOUNDS);
		}
	}
	fpdu_done(qp, &f);
	qp->tx.off += len;
	if (hdr.last)
		answered(qp);
	return true;
}

static void put_digest(struct wcursor *c, const struct vext_digest *digest)
{
	struct rdmap_flush_digest msg = {
		.source = digest->source,
		.durability = digest->durability,
		.alg = digest->alg,
		.len = digest->len,
	};

	memcpy(msg.bytes, digest->bytes, sizeof(msg.bytes));
	rdmap_flush_digest_put(c, &msg);
}

static bool build_flush_resp(struct qp *qp, const struct irq_entry *e)
{
	struct ddp_hdr hdr = untagged(qp, RDMAP_FLUSH_RESP);
	uint8_t bytes[RDMAP_FLUSH_RESP_LEN + RDMAP_FLUSH_DIGEST_LEN];
	struct wcursor c = wcursor_init(bytes, sizeof(bytes));

	rdmap_flush_resp_put(&c, &e->flushed);
	if (!e->flushed.status && rdmap_flush_kind(&e->flush) == RDMAP_FLUSH_KIND_DIGEST)
		put_digest(&c, &qp->irq.digest);
	if (!tx_build_small(qp, &hdr, bytes, (int)wcursor_len(&c)))
		return false;
	answered(qp);
	return true;
}

static bool build_atomic_resp(struct qp *qp, const struct irq_entry *e)
{
	struct ddp_hdr hdr = untagged(qp, RDMAP_ATOMIC_RESP);
	uint8_t bytes[RDMAP_ATOMIC_RESP_LEN];

	if (!tx_build_small(qp, &hdr, bytes,
			    rdmap_atomic_resp_encode(bytes, sizeof(bytes), &e->was)))
		return false;
	answered(qp);
	return true;
}

bool tx_build_answer(struct qp *qp)
{
	const struct irq_entry *e = qp_irq_head(qp);

	switch (e->code) {
	case RDMAP_FLUSH_REQ:
		return build_flush_resp(qp, e);
	case RDMAP_ATOMIC_REQ:
		return build_atomic_resp(qp, e);
	default:
		return build_read_resp(qp, e);
	}
}
