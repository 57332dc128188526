/* SPDX-License-Identifier: BSD-3-Clause */
/* Our work requests as FPDUs. */
#include <errno.h>

#include "softrnic/rnic/qp_tx_msg.h"

/* Our memory cannot be read. What was built before it goes out first, so that it completes. */
static bool source_failed(struct qp *qp, struct sq_wr *wr, int err)
{
	if (qp->tx.batch->len > 0)
		return false;
	qp_blame_local(qp, wr, IBV_WC_LOC_PROT_ERR, err);
	qp_refuse(qp, TERM_RDMAP_LOCAL_CATASTROPHIC, NULL, 0, NULL);
	return false;
}

static void wr_begun(struct qp *qp, struct sq_wr *wr)
{
	wr->end_pos = qp->tx.built;
	qp->sq.next++;
	qp->tx.source = TX_NONE;
	qp->tx.imm_due = false;
	qp->tx.off = 0;
}

static int add_sges(struct qp *qp, struct tx_fpdu *f, const struct sq_wr *wr, uint64_t off,
		    uint64_t len)
{
	for (uint32_t i = 0; i < wr->num_sge && len > 0; i++) {
		const struct ibv_sge *sge = &wr->sge[i];
		uint64_t part = sge->length - off;
		enum mr_verdict verdict;
		struct mr *mr;
		void *ptr;

		if (off >= sge->length) {
			off -= sge->length;
			continue;
		}
		part = part < len ? part : len;
		verdict = mr_hold(qp->cfg.mrs, qp->cfg.pd, sge->lkey, sge->addr + off, part, 0, &mr,
				  &ptr);
		if (verdict != MR_OK)
			return -qp_local_errno(verdict);
		if (tx_fpdu_add(f, ptr, part, mr))
			return -EFAULT;
		len -= part;
		off = 0;
	}
	return 0;
}

static bool build_data(struct qp *qp, struct sq_wr *wr, struct ddp_hdr *hdr, uint64_t at)
{
	uint32_t left = (uint32_t)wr->length - qp->tx.off;
	uint32_t len = segment_of(qp, hdr, at, left);
	struct tx_fpdu f = fpdu_of(qp);
	int err;

	if (!tx_fpdu_open(&f, hdr, len, wr->is_inline ? 1 : wr->num_sge))
		return false;
	if (wr->is_inline)
		err = tx_fpdu_copy(&f, qp_sq_inline(wr) + qp->tx.off, len);
	else
		err = add_sges(qp, &f, wr, qp->tx.off, len);
	if (err) {
		tx_fpdu_abort(&f);
		return source_failed(qp, wr, -err);
	}
	fpdu_done(qp, &f);
	qp->tx.off += len;
	if (!hdr->last)
		return true;
	if (!hdr->tagged)
		qp->tx.msn[hdr->qn]++;
	qp->tx.imm_due = wr->op == SQ_WRITE_IMM;
	if (!qp->tx.imm_due)
		wr_begun(qp, wr);
	return true;
}

static bool build_write(struct qp *qp, struct sq_wr *wr)
{
	uint64_t at = wr->raddr + qp->tx.off;
	struct ddp_hdr hdr = tagged(RDMAP_WRITE, wr->rkey ? wr->rkey : DUMMY_STAG, at);

	return build_data(qp, wr, &hdr, at);
}

/* RFC 7306 s6: a Write and then Immediate Data; nothing comes between them. */
static bool build_write_imm(struct qp *qp, struct sq_wr *wr)
{
	struct ddp_hdr hdr = untagged(qp, wr->solicited ? RDMAP_IMM_SE : RDMAP_IMM);
	struct rdmap_imm imm = {.data = (uint64_t)wr->imm << 32};
	uint8_t bytes[RDMAP_IMM_LEN];

	if (!qp->tx.imm_due)
		return build_write(qp, wr);
	if (!tx_build_small(qp, &hdr, bytes, rdmap_imm_encode(bytes, sizeof(bytes), &imm)))
		return false;
	wr_begun(qp, wr);
	return true;
}

static bool build_send(struct qp *qp, struct sq_wr *wr)
{
	static const enum rdmap_opcode codes[][2] = {
		[SQ_SEND] = {RDMAP_SEND, RDMAP_SEND_SE},
		[SQ_SEND_INV] = {RDMAP_SEND_INV, RDMAP_SEND_SE_INV},
		[SQ_SEND_IMM] = {RDMAP_SEND_IMM, RDMAP_SEND_IMM},
	};
	struct ddp_hdr hdr = untagged(qp, codes[wr->op][wr->solicited]);

	if (wr->op == SQ_SEND_IMM && wr->solicited)
		hdr.ulp |= RDMAP_CTRL_SEND_IMM_SE;
	hdr.ulp_word = wr->op == SQ_SEND_INV ? wr->rkey : wr->op == SQ_SEND_IMM ? wr->imm : 0;
	hdr.mo = qp->tx.off;
	return build_data(qp, wr, &hdr, hdr.mo);
}

static bool build_request(struct qp *qp, struct sq_wr *wr, enum rdmap_opcode code,
			  const void *bytes, int len)
{
	struct ddp_hdr hdr = untagged(qp, code);

	if (!tx_build_small(qp, &hdr, bytes, len))
		return false;
	qp_orq_push(qp, qp->sq.next);
	wr_begun(qp, wr);
	return true;
}

/* May the answer be written where the work request says? 0, or an errno value. */
static int check_sink(struct qp *qp, const struct sq_wr *wr)
{
	enum mr_verdict verdict;
	struct mr *mr;
	void *ptr;

	if (wr->length == 0)
		return 0;
	verdict = mr_hold(qp->cfg.mrs, qp->cfg.pd, wr->sge[0].lkey, wr->sge[0].addr, wr->length,
			  IBV_ACCESS_LOCAL_WRITE, &mr, &ptr);
	if (verdict != MR_OK)
		return qp_local_errno(verdict);
	mr_release(mr);
	return 0;
}

static bool build_read(struct qp *qp, struct sq_wr *wr)
{
	struct rdmap_read_req req = {
		.sink_stag = wr->num_sge ? wr->sge[0].lkey : DUMMY_STAG,
		.sink_to = wr->num_sge ? wr->sge[0].addr : 0,
		.size = (uint32_t)wr->length,
		.src_stag = wr->rkey,
		.src_to = wr->raddr,
	};
	uint8_t bytes[RDMAP_READ_REQ_LEN];
	int err = check_sink(qp, wr);

	if (err)
		return source_failed(qp, wr, err);
	return build_request(qp, wr, RDMAP_READ_REQ, bytes,
			     rdmap_read_req_encode(bytes, sizeof(bytes), &req));
}

static bool build_flush(struct qp *qp, struct sq_wr *wr)
{
	struct rdmap_flush_req req = {
		.flags = wr->flush_flags,
		.stag = wr->rkey,
		.to = wr->raddr,
		.len = wr->length,
	};
	uint8_t bytes[RDMAP_FLUSH_REQ_LEN];

	return build_request(qp, wr, RDMAP_FLUSH_REQ, bytes,
			     rdmap_flush_req_encode(bytes, sizeof(bytes), &req));
}

/* RFC 7306 s5.2: unused data is 0, an unused mask all ones; a mask of 0 adds 64 bits as one. */
static bool build_atomic(struct qp *qp, struct sq_wr *wr)
{
	static const uint8_t ops[] = {
		[SQ_FETCH_ADD] = RDMAP_FETCH_ADD,
		[SQ_CMP_SWAP] = RDMAP_CMP_SWAP,
		[SQ_ATOMIC_WRITE] = RDMAP_ATOMIC_WRITE,
	};
	struct rdmap_atomic_req req = {
		.op = ops[wr->op],
		.id = (uint32_t)qp->sq.next,
		.stag = wr->rkey,
		.to = wr->raddr,
		.data = wr->operand,
		.data_mask = wr->op == SQ_FETCH_ADD ? 0 : UINT64_MAX,
		.compare = wr->compare,
		.compare_mask = UINT64_MAX,
	};
	uint8_t bytes[RDMAP_ATOMIC_REQ_LEN];
	int err = wr->op == SQ_ATOMIC_WRITE ? 0 : check_sink(qp, wr);

	if (err)
		return source_failed(qp, wr, err);
	return build_request(qp, wr, RDMAP_ATOMIC_REQ, bytes,
			     rdmap_atomic_req_encode(bytes, sizeof(bytes), &req));
}

bool tx_build_wr(struct qp *qp)
{
	static bool (*const build[])(struct qp *, struct sq_wr *) = {
		[SQ_WRITE] = build_write,      [SQ_WRITE_IMM] = build_write_imm,
		[SQ_SEND] = build_send,        [SQ_SEND_INV] = build_send,
		[SQ_SEND_IMM] = build_send,    [SQ_READ] = build_read,
		[SQ_FETCH_ADD] = build_atomic, [SQ_CMP_SWAP] = build_atomic,
		[SQ_FLUSH] = build_flush,      [SQ_VERIFY] = build_flush,
		[SQ_QUERY] = build_flush,      [SQ_ATOMIC_WRITE] = build_atomic,
	};
	struct sq_wr *wr = qp_sq_at(qp, qp->sq.next);

	return build[wr->op](qp, wr);
}
