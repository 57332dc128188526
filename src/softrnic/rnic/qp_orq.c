/* SPDX-License-Identifier: BSD-3-Clause */
/* Our requests that the peer has to answer: Reads, Flushes and atomics. */
#include <errno.h>
#include <string.h>

#include "softrnic/rnic/place.h"
#include "softrnic/rnic/qp_impl.h"

void qp_orq_push(struct qp *qp, uint64_t index)
{
	qp->orq.wr[(qp->orq.head + qp->orq.count++) % RNIC_MAX_RD_ATOM] = index;
}

/* The work request that the next response answers; NULL: none, or the RTR. */
static struct sq_wr *head_wr(struct qp *qp, enum sq_op op)
{
	struct qp_orq *orq = &qp->orq;
	struct sq_wr *wr;

	if (orq->count == 0 || orq->wr[orq->head] == ORQ_RTR)
		return NULL;
	wr = qp_sq_at(qp, orq->wr[orq->head]);
	return wr->op == op ? wr : NULL;
}

static bool head_is_rtr(const struct qp *qp)
{
	return qp->orq.count > 0 && qp->orq.wr[qp->orq.head] == ORQ_RTR;
}

static void pop(struct qp *qp)
{
	qp->orq.head = (qp->orq.head + 1) % RNIC_MAX_RD_ATOM;
	qp->orq.count--;
	qp->orq.received = 0;
}

/* --- Read Response ------------------------------------------------------------------------ */

static const struct ibv_sge *sink_of(const struct sq_wr *wr)
{
	static const struct ibv_sge none;

	return wr->num_sge ? &wr->sge[0] : &none;
}

/* Does the segment continue the response to this Read? 0 or the error. */
static unsigned check_read_resp(const struct qp *qp, const struct sq_wr *wr,
				const struct rx_seg *seg)
{
	uint64_t length = wr ? wr->length : 0, received = qp->orq.received;
	uint64_t end = received + seg->payload;

	if (seg->payload > 0 && wr && seg->hdr.stag != sink_of(wr)->lkey)
		return TERM_DDP_INVALID_STAG;
	if (end > length || (seg->hdr.last && end != length))
		return TERM_DDP_BASE_BOUNDS;
	if (seg->payload > 0 && seg->hdr.to != sink_of(wr)->addr + received)
		return TERM_DDP_BASE_BOUNDS;
	return 0;
}

static enum rx_verdict accept_read_resp(struct qp *qp, struct rx_seg *seg, bool whole)
{
	struct sq_wr *wr = head_wr(qp, SQ_READ);
	unsigned error = TERM_RDMAP_UNEXPECTED_OPCODE;

	if (wr || head_is_rtr(qp))
		error = check_read_resp(qp, wr, seg);
	if (!error)
		return RX_DONE;
	qp_refuse_seg(qp, error, seg);
	return RX_DEAD;
}

static uint32_t read_target(struct qp *qp, const struct rx_seg *seg, uint32_t max, struct mr **mr,
			    void **ptr)
{
	struct sq_wr *wr = head_wr(qp, SQ_READ);
	const struct ibv_sge *sink = sink_of(wr);
	enum mr_verdict verdict = mr_hold(qp->cfg.mrs, qp->cfg.pd, sink->lkey,
					  sink->addr + qp->orq.received + seg->done, max,
					  IBV_ACCESS_LOCAL_WRITE, mr, ptr);

	if (verdict == MR_OK)
		return max;
	qp_blame_local(qp, wr, IBV_WC_LOC_PROT_ERR, qp_local_errno(verdict));
	qp_refuse_seg(qp, qp_ddp_error(verdict), seg);
	return 0;
}

static void finish_read_resp(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct sq_wr *wr = head_wr(qp, SQ_READ);

	qp->orq.received += seg->payload;
	if (!seg->hdr.last)
		return;
	if (wr)
		wr->answered = true;
	pop(qp);
	qp_sq_retire(qp);
}

const struct rx_op qp_rx_read_resp = {accept_read_resp, read_target, finish_read_resp};

void qp_orq_fault(struct qp *qp)
{
	qp_blame_local(qp, head_wr(qp, SQ_READ), IBV_WC_LOC_PROT_ERR, EFAULT);
}

/* --- Flush Response ----------------------------------------------------------------------- */

static struct sq_wr *head_of(struct qp *qp, const enum sq_op *ops, size_t n)
{
	struct sq_wr *wr = NULL;

	for (size_t i = 0; i < n && !wr; i++)
		wr = head_wr(qp, ops[i]);
	return wr;
}

static struct sq_wr *head_flush(struct qp *qp)
{
	static const enum sq_op ops[] = {SQ_FLUSH, SQ_VERIFY, SQ_QUERY};

	return head_of(qp, ops, sizeof(ops) / sizeof(ops[0]));
}

static enum rx_verdict accept_flush_resp(struct qp *qp, struct rx_seg *seg, bool whole)
{
	const struct sq_wr *wr;

	if (!qp_rx_is_next(qp, seg))
		return RX_DEAD;
	wr = head_flush(qp);
	if (wr && (wr->op == SQ_VERIFY || seg->payload == RDMAP_FLUSH_RESP_LEN))
		return RX_DONE;
	qp_refuse_seg(qp, wr ? TERM_DDP_TOO_LONG : TERM_RDMAP_UNEXPECTED_OPCODE, seg);
	return RX_DEAD;
}

/* What vendor_err says of a flush that failed at the target; the code is never 0. */
static uint32_t reason_of(const struct rdmap_flush_resp *resp)
{
	uint32_t detail = resp->detail;

	switch (resp->status) {
	case RDMAP_FLUSH_VOLATILE:
		return vext_vendor_err(VEXT_REASON_VOLATILE, detail ? detail : ENOTSUP);
	case RDMAP_FLUSH_GONE:
		return vext_vendor_err(VEXT_REASON_GONE, detail ? detail : EFAULT);
	default:
		return vext_vendor_err(VEXT_REASON_WRITE_BACK, detail ? detail : EIO);
	}
}

static bool is_durability(uint32_t durability)
{
	return durability >= VEXT_DURABILITY_VOLATILE && durability <= VEXT_DURABILITY_DAX;
}

/* False: it is not the digest that was asked for. */
static bool put_digest(const struct sq_wr *wr, struct rcursor *c)
{
	struct rdmap_flush_digest msg;
	struct vext_digest *to = wr->result;

	rdmap_flush_digest_get(c, &msg);
	if (c->bad || msg.alg != wr->flush_flags >> 8 || msg.len != wr->length ||
	    !is_durability(msg.durability) || msg.source > VEXT_DIGEST_FROM_DAX)
		return false;
	*to = (struct vext_digest){
		.alg = msg.alg, .source = msg.source, .durability = msg.durability, .len = msg.len};
	memcpy(to->bytes, msg.bytes, sizeof(to->bytes));
	return true;
}

/* The answer to a question that was answered with success; the rest of a message at c. */
static bool put_answer(const struct sq_wr *wr, const struct rdmap_flush_resp *resp,
		       struct rcursor *c)
{
	if (wr->op == SQ_VERIFY)
		return put_digest(wr, c);
	if (wr->op == SQ_QUERY) {
		if (!is_durability(resp->detail))
			return false;
		*(uint32_t *)wr->result = resp->detail;
	}
	return true;
}

static void finish_flush_resp(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct rcursor c = rcursor_init(bytes, seg->payload);
	struct sq_wr *wr = head_flush(qp);
	struct rdmap_flush_resp resp;
	bool good;

	rdmap_flush_resp_get(&c, &resp);
	qp->rx.msn[DDP_QN_RESPONSE]++;
	good = resp.status ? rcursor_left(&c) == 0 : put_answer(wr, &resp, &c);
	if (!good) {
		qp_refuse_seg(qp, TERM_RDMAP_STREAM_CATASTROPHIC, seg);
		return;
	}
	pop(qp);
	if (resp.status == RDMAP_FLUSH_OK) {
		wr->answered = true;
		qp_sq_retire(qp);
		return;
	}
	wr->status = IBV_WC_REM_OP_ERR;
	wr->vendor_err = reason_of(&resp);
	qp_die(qp, IBV_WC_WR_FLUSH_ERR, wr->vendor_err, "the peer could not flush");
}

const struct rx_op qp_rx_flush_resp = {accept_flush_resp, NULL, finish_flush_resp};

/* --- Atomic Response ---------------------------------------------------------------------- */

static struct sq_wr *head_atomic(struct qp *qp)
{
	static const enum sq_op ops[] = {SQ_FETCH_ADD, SQ_CMP_SWAP, SQ_ATOMIC_WRITE};

	return head_of(qp, ops, sizeof(ops) / sizeof(ops[0]));
}

static enum rx_verdict accept_atomic_resp(struct qp *qp, struct rx_seg *seg, bool whole)
{
	if (!qp_rx_is_next(qp, seg))
		return RX_DEAD;
	if (head_atomic(qp))
		return RX_DONE;
	qp_refuse_seg(qp, TERM_RDMAP_UNEXPECTED_OPCODE, seg);
	return RX_DEAD;
}

/* The original value becomes the user's number, whatever its byte order on the wire. */
static int put_original(struct qp *qp, const struct sq_wr *wr, uint64_t original)
{
	const struct ibv_sge *sink = sink_of(wr);
	struct mr *mr;
	void *ptr;
	int err;

	if (wr->op == SQ_ATOMIC_WRITE)
		return 0;
	if (mr_hold(qp->cfg.mrs, qp->cfg.pd, sink->lkey, sink->addr, sizeof(original),
		    IBV_ACCESS_LOCAL_WRITE, &mr, &ptr) != MR_OK)
		return -EACCES;
	err = place(ptr, &original, sizeof(original));
	mr_release(mr);
	return err;
}

static void finish_atomic_resp(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct sq_wr *wr = head_atomic(qp);
	struct rdmap_atomic_resp resp;
	int err;

	rdmap_atomic_resp_decode(bytes, seg->payload, &resp);
	qp->rx.msn[DDP_QN_RESPONSE]++;
	if (resp.id != (uint32_t)qp->orq.wr[qp->orq.head]) {
		qp_refuse_seg(qp, TERM_RDMAP_UNEXPECTED_OPCODE, seg);
		return;
	}
	err = put_original(qp, wr, resp.original);
	if (err) {
		qp_blame_local(qp, wr, IBV_WC_LOC_PROT_ERR, -err);
		qp_refuse_seg(qp, TERM_RDMAP_LOCAL_CATASTROPHIC, seg);
		return;
	}
	if (qp_is_failed(qp))
		return;
	wr->answered = true;
	pop(qp);
	qp_sq_retire(qp);
}

const struct rx_op qp_rx_atomic_resp = {accept_atomic_resp, NULL, finish_atomic_resp};
