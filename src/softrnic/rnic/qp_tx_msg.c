/* SPDX-License-Identifier: BSD-3-Clause */
/* What each message looks like as FPDUs: our work requests, our answers, RTR and Terminate. */
#include <errno.h>
#include <string.h>

#include "softrnic/rnic/qp_impl.h"

/* RFC 5041 s5.2 has the STag of an empty message unchecked; some hardware refuses zero. */
#define DUMMY_STAG 1

static struct tx_fpdu fpdu_of(struct qp *qp)
{
	return (struct tx_fpdu){
		.b = qp->tx.batch,
		.pos = qp->tx.built,
		.crc = qp->stream.crc,
		.markers = qp->stream.markers,
		.is_response = qp->tx.source == TX_FROM_IRQ,
	};
}

static void fpdu_done(struct qp *qp, struct tx_fpdu *f)
{
	qp->tx.built += tx_fpdu_close(f);
	qp->counters.tx_copied_bytes += f->copied;
	qp->counters.tx_fpdus++;
}

static struct ddp_hdr untagged(struct qp *qp, enum rdmap_opcode code)
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

static struct ddp_hdr tagged(enum rdmap_opcode code, uint32_t stag, uint64_t to)
{
	return (struct ddp_hdr){
		.tagged = true,
		.version = DDP_VERSION,
		.last = true,
		.ulp = rdmap_ctrl(code),
		.stag = stag,
		.to = to,
	};
}

/* A whole message of one FPDU whose payload is `len` bytes of our own. */
static bool build_small(struct qp *qp, const struct ddp_hdr *hdr, const void *bytes, int len)
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

static uint32_t segment_of(struct qp *qp, struct ddp_hdr *hdr, uint64_t at, uint32_t left)
{
	uint32_t len = ddp_segment(ddp_payload_max(qp->tx.mulpdu, hdr->tagged), at, left);

	hdr->last = len == left;
	return len;
}

/* --- work requests ------------------------------------------------------------------------ */

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
	if (!build_small(qp, &hdr, bytes, rdmap_imm_encode(bytes, sizeof(bytes), &imm)))
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

	if (!build_small(qp, &hdr, bytes, len))
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

static bool build_wr(struct qp *qp)
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

/* --- answers ------------------------------------------------------------------------------ */

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

static void put_digest(struct wcursor *c, const struct softrnic_digest *digest)
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
	if (!build_small(qp, &hdr, bytes, (int)wcursor_len(&c)))
		return false;
	answered(qp);
	return true;
}

static bool build_atomic_resp(struct qp *qp, const struct irq_entry *e)
{
	struct ddp_hdr hdr = untagged(qp, RDMAP_ATOMIC_RESP);
	uint8_t bytes[RDMAP_ATOMIC_RESP_LEN];

	if (!build_small(qp, &hdr, bytes, rdmap_atomic_resp_encode(bytes, sizeof(bytes), &e->was)))
		return false;
	answered(qp);
	return true;
}

static bool build_answer(struct qp *qp)
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

/* --- first and last ----------------------------------------------------------------------- */

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
	if (!build_small(qp, &hdr, bytes, len))
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

	if (!build_small(qp, &hdr, bytes, terminate_encode(bytes, sizeof(bytes), &qp->term)))
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

	if (!build_small(qp, &hdr, bytes, rdmap_engine_encode(bytes, sizeof(bytes), &msg)))
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
		return build_wr(qp);
	case TX_FROM_IRQ:
		return build_answer(qp);
	case TX_NONE:
		break;
	}
	return false;
}
