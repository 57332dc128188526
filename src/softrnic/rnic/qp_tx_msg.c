/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds messages as FPDUs. This is the common part of all operations. */
#include <errno.h>

#include "softrnic/rnic/qp_impl.h"

struct ddp_hdr tx_untagged(const struct qp *qp, enum rdmap_opcode code)
{
	uint8_t qn = rdmap_ops[code].qn;

	return (struct ddp_hdr){
		.version = DDP_VERSION,
		.last = true,
		.ulp = rdmap_ctrl(code),
		.qn = qn,
		.msn = qp->tx.msn[qn],
	};
}

uint32_t tx_segment(const struct qp *qp, struct ddp_hdr *hdr, uint64_t at, uint32_t left)
{
	uint32_t len = ddp_segment(ddp_payload_max(qp->tx.mulpdu, hdr->tagged), at, left);

	hdr->last = len == left;
	return len;
}

void tx_fpdu_done(struct qp *qp, struct tx_fpdu *f)
{
	qp->tx.built += tx_fpdu_close(f);
	qp->counters.tx_copied_bytes += f->copied;
	qp->counters.tx_fpdus++;
}

/* Is it enough to copy the payload? This holds for most FPDUs. */
static inline bool tx_is_short(const struct qp *qp, uint32_t len)
{
	return len < TX_REFER_MIN && !qp->stream.crc && !qp->stream.markers;
}

/* Returns 0 or -errno. */
static inline int tx_put(struct qp *qp, const struct ddp_hdr *hdr, const void *payload,
			 uint32_t len)
{
	struct qp_tx *tx = &qp->tx;
	ssize_t whole =
		tx->at ? tx_put_at(tx->at, (size_t)(tx->end - tx->at), hdr, payload, len)
		       : tx_batch_put(tx->batch, hdr, payload, len, tx->source == TX_FROM_IRQ);

	if (whole < 0)
		return (int)whole;
	if (tx->at)
		tx->at += whole;
	qp->tx.built += (size_t)whole;
	qp->counters.tx_copied_bytes += len;
	qp->counters.tx_fpdus++;
	return 0;
}

static bool tx_build_own(struct qp *qp, const struct ddp_hdr *hdr, const void *bytes, uint32_t len)
{
	struct tx_fpdu f;

	if (tx_is_short(qp, len))
		return tx_put(qp, hdr, bytes, len) == 0;
	if (!tx_fpdu_begin(&f, qp, hdr, len, 1))
		return false;
	tx_fpdu_put(&f, bytes, len);
	tx_fpdu_done(qp, &f);
	return true;
}

bool tx_build_small(struct qp *qp, const struct ddp_hdr *hdr, const void *bytes, int len)
{
	if (len < 0 || !tx_build_own(qp, hdr, bytes, (uint32_t)len))
		return false;
	if (!hdr->tagged)
		qp->tx.msn[hdr->qn]++;
	return true;
}

bool tx_build_control(struct qp *qp, enum rdmap_opcode code, const void *bytes, int len)
{
	struct ddp_hdr hdr = tx_untagged(qp, code);

	hdr.qn = DDP_QN_CONTROL;
	hdr.msn = qp->tx.msn[DDP_QN_CONTROL];
	return tx_build_small(qp, &hdr, bytes, len);
}

/* --- messages of work requests ------------------------------------------------------------ */

bool tx_source_failed(struct qp *qp, struct sq_wr *wr, int err)
{
	return tx_wr_failed(qp, wr, IBV_WC_LOC_PROT_ERR, err);
}

bool tx_wr_failed(struct qp *qp, struct sq_wr *wr, enum ibv_wc_status status, int err)
{
	if (qp->tx.at || qp->tx.batch->len > 0)
		return false;
	/* The peer's Acks must first complete earlier requests. But a half-sent message cannot
	 * wait, because no other bytes may come between its segments. */
	if (qp->acks.on && qp->sq.head != qp->sq.next && qp->tx.off == 0 && !qp->tx.imm_due) {
		wr->fence = SQ_FENCE_ALL;
		qp->tx.source = TX_NONE;
		return false;
	}
	qp_set_local_cause(qp, wr, status, err);
	qp_refuse(qp, TERM_RDMAP_LOCAL_CATASTROPHIC, NULL, 0, NULL);
	return false;
}

static int tx_check_sge(struct qp *qp, const struct ibv_sge *sge)
{
	enum mr_verdict verdict;
	struct mr *mr;
	void *ptr;

	if (sge->length == 0)
		return 0;
	verdict = mr_hold(qp->cfg.mrs, qp->cfg.pd, sge->lkey, sge->addr, sge->length,
			  IBV_ACCESS_LOCAL_WRITE, &mr, &ptr);
	if (verdict != MR_OK)
		return qp_local_errno(verdict);
	mr_release(mr);
	return 0;
}

int tx_check_sink(struct qp *qp, const struct sq_wr *wr)
{
	int err = 0;

	for (uint32_t i = 0; i < wr->num_sge && !err; i++)
		err = tx_check_sge(qp, &wr->sge[i]);
	return err;
}

static int tx_add_sges(struct qp *qp, struct tx_fpdu *f, const struct sq_wr *wr, uint64_t off,
		       uint64_t len)
{
	for (uint32_t i = 0; i < wr->num_sge && len > 0; i++) {
		const struct ibv_sge *sge = &wr->sge[i];
		uint64_t part = sge->length - off;
		enum mr_verdict verdict;
		void *ptr;

		if (off >= sge->length) {
			off -= sge->length;
			continue;
		}
		part = part < len ? part : len;
		verdict = mr_hold_near(qp->cfg.mrs, &qp->tx.near, qp->cfg.pd, sge->lkey,
				       sge->addr + off, part, 0, 0, &ptr);
		if (verdict != MR_OK)
			return -qp_local_errno(verdict);
		if (tx_fpdu_add(f, ptr, part, qp->tx.near.mr))
			return -EFAULT;
		len -= part;
		off = 0;
	}
	return 0;
}

/* Build an FPDU whose payload is one piece of memory. Returns 0 or -errno. */
static inline int tx_put_sge(struct qp *qp, const struct sq_wr *wr, const struct ddp_hdr *hdr,
			     uint32_t len)
{
	const struct ibv_sge *sge = &wr->sge[0];
	enum mr_verdict verdict;
	void *ptr;

	verdict = mr_hold_near(qp->cfg.mrs, &qp->tx.near, qp->cfg.pd, sge->lkey,
			       sge->addr + qp->tx.off, len, 0, 0, &ptr);
	return verdict == MR_OK ? tx_put(qp, hdr, ptr, len) : -qp_local_errno(verdict);
}

static int tx_put_data(struct qp *qp, struct sq_wr *wr, const struct ddp_hdr *hdr, uint32_t len)
{
	struct tx_fpdu f;
	int err = 0;

	if (wr->num_sge == 1 && len > 0 && tx_is_short(qp, len))
		return tx_put_sge(qp, wr, hdr, len);
	if (wr->is_inline && tx_is_short(qp, len))
		return tx_put(qp, hdr, sq_inline(wr) + qp->tx.off, len);
	if (!tx_fpdu_begin(&f, qp, hdr, len, wr->is_inline ? 1 : wr->num_sge))
		return -ENOBUFS;
	if (wr->is_inline)
		tx_fpdu_put(&f, sq_inline(wr) + qp->tx.off, len);
	else
		err = tx_add_sges(qp, &f, wr, qp->tx.off, len);
	if (err)
		tx_fpdu_abort(&f);
	else
		tx_fpdu_done(qp, &f);
	return err;
}

bool tx_build_data(struct qp *qp, struct sq_wr *wr, struct ddp_hdr *hdr, uint64_t at)
{
	uint32_t left = (uint32_t)wr->length - qp->tx.off;
	uint32_t len = tx_segment(qp, hdr, at, left);
	int err = tx_put_data(qp, wr, hdr, len);

	if (err == -ENOBUFS)
		return false;
	if (err)
		return tx_source_failed(qp, wr, -err);
	qp->tx.off += len;
	if (hdr->last && !hdr->tagged)
		qp->tx.msn[hdr->qn]++;
	return true;
}

bool tx_build_request(struct qp *qp, struct sq_wr *wr, enum rdmap_opcode code, const void *bytes,
		      int len)
{
	struct ddp_hdr hdr = tx_untagged(qp, code);

	if (!tx_build_small(qp, &hdr, bytes, len))
		return false;
	orq_push(&qp->orq, qp->sq.next);
	tx_wr_built(qp, wr);
	return true;
}

/* --- answers ------------------------------------------------------------------------------ */

void tx_answer_built(struct qp *qp)
{
	qp->tx.source = TX_NONE;
	qp->tx.off = 0;
	qp_request_answered(qp);
}

bool tx_build_answer(struct qp *qp, enum rdmap_opcode code, const void *bytes, int len)
{
	struct ddp_hdr hdr = tx_untagged(qp, code);

	if (!tx_build_small(qp, &hdr, bytes, len))
		return false;
	tx_answer_built(qp);
	return true;
}
