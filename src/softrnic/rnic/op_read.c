/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA Read (RFC 5040 s4.4). If the peer's user has no native flush, a Read is also a flush. */
#include <errno.h>

#include "softrnic/rnic/qp_impl.h"

/* --- this end's request ------------------------------------------------------------------- */

static void read_fill(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	slot->raddr = wr->wr.rdma.remote_addr;
	slot->rkey = wr->wr.rdma.rkey;
}

/* The first SGE names the sink in the request. This end scatters the response by its offset, so the
 * other SGEs need no names. */
static const struct ibv_sge *read_sink(const struct sq_wr *wr)
{
	static const struct ibv_sge none;

	return wr && wr->num_sge ? &wr->sge[0] : &none;
}

static bool read_build(struct qp *qp, struct sq_wr *wr)
{
	struct rdmap_read_req req = {
		.sink_stag = wr->num_sge ? wr->sge[0].lkey : TX_DUMMY_STAG,
		.sink_to = read_sink(wr)->addr,
		.size = (uint32_t)wr->length,
		.src_stag = wr->rkey,
		.src_to = wr->raddr,
	};
	uint8_t bytes[RDMAP_READ_REQ_LEN];
	int err = tx_check_sink(qp, wr);

	if (err)
		return tx_source_failed(qp, wr, err);
	return tx_build_request(qp, wr, RDMAP_READ_REQ, bytes,
				rdmap_read_req_encode(bytes, sizeof(bytes), &req));
}

/* --- the answer to this end's request ----------------------------------------------------- */

static const struct op_rx read_answer_rx;

/* Returns the Read that the next response answers, or NULL for the RTR Read, which has no work
 * request. */
static struct sq_wr *read_wr(const struct qp *qp)
{
	return qp_answered_wr(qp, &read_answer_rx);
}

/* Does the segment continue the answer to this Read? Returns 0 or the error. */
static unsigned read_check_answer(const struct sq_wr *wr, const struct rx_seg *seg)
{
	uint64_t length = wr ? wr->length : 0, received = wr ? wr->received : 0;
	uint64_t end = received + seg->payload;

	if (seg->payload > 0 && wr && seg->hdr.stag != read_sink(wr)->lkey)
		return TERM_DDP_INVALID_STAG;
	if (end > length || (seg->hdr.last && end != length))
		return TERM_DDP_BASE_BOUNDS;
	if (seg->payload > 0 && seg->hdr.to != read_sink(wr)->addr + received)
		return TERM_DDP_BASE_BOUNDS;
	return 0;
}

static enum rx_verdict read_accept_answer(struct qp *qp, struct rx_seg *seg)
{
	const struct sq_wr *wr = read_wr(qp);
	unsigned error = TERM_RDMAP_UNEXPECTED_OPCODE;

	if (wr || qp_answer_is_for_rtr(qp))
		error = read_check_answer(wr, seg);
	if (!error)
		return RX_DONE;
	qp_refuse_seg(qp, error, seg);
	return RX_FAULT;
}

static uint32_t read_answer_target(struct qp *qp, struct rx_seg *seg, uint32_t max, void **ptr)
{
	struct sq_wr *wr = read_wr(qp);
	uint64_t off = (uint64_t)wr->received + seg->done;
	const struct ibv_sge *sge = sge_at(wr->sge, &off);
	uint64_t room = sge->length - off;
	enum mr_verdict verdict;

	max = room < max ? (uint32_t)room : max;
	verdict = mr_hold_near(qp->cfg.mrs, &qp->rx.near, qp->cfg.pd, sge->lkey, sge->addr + off,
			       max, IBV_ACCESS_LOCAL_WRITE, 0, ptr);
	if (verdict == MR_OK)
		return max;
	qp_set_local_cause(qp, wr, IBV_WC_LOC_PROT_ERR, qp_local_errno(verdict));
	qp_refuse_seg(qp, qp_ddp_error(verdict), seg);
	return 0;
}

static void read_on_fault(struct qp *qp)
{
	qp_set_local_cause(qp, read_wr(qp), IBV_WC_LOC_PROT_ERR, EFAULT);
}

static void read_finish_answer(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct sq_wr *wr = read_wr(qp);

	if (wr)
		wr->received += seg->payload;
	if (seg->hdr.last)
		qp_answer_done(qp, wr);
}

/* --- the peer's request ------------------------------------------------------------------- */

static void read_decode(struct qp *qp, struct irq_entry *e, const uint8_t *bytes, uint32_t len)
{
	rdmap_read_req_decode(bytes, len, &e->msg.read);
	qp->counters.reads_in++;
}

/* Send a Terminate that contains the request. The request is advanced to the failed position (RFC
 * 5040 s4.8). */
static void read_refuse(struct qp *qp, unsigned error, uint32_t off)
{
	struct rdmap_read_req read = irq_head(&qp->irq)->msg.read;

	read.sink_to += off;
	read.src_to += off;
	read.size -= off;
	qp_request_refuse(qp, error, &read);
}

/* Refuse the Read: the peer's earlier Writes are not durable, and a response with data would report
 * them as durable. */
static void read_refuse_unsafe(struct qp *qp)
{
	read_refuse(qp, TERM_RDMAP_STREAM_CATASTROPHIC, 0);
}

static void read_next_of_all(struct qp *qp)
{
	int more = qp_request_next_of_all(qp, false);

	if (more < 0)
		read_refuse_unsafe(qp);
	else if (more == 0)
		qp_request_ready(qp);
}

/*
 * A peer whose user has no native flush uses a Read as a flush, so before the answer write back all
 * bytes that this stream placed. The bytes outside of the Read's region count as well: the region
 * may map the same memory as another one, or may have been registered again since the Writes.
 */
static void read_flush(struct qp *qp, bool durable)
{
	if (qp->stream.peer_flushes)
		qp_request_ready(qp);
	else if (durable && (qp->requests.failed || qp->dirty.lost_durable))
		read_refuse_unsafe(qp);
	else if (!dirty_move_durable(&qp->requests.all, &qp->dirty))
		read_refuse_unsafe(qp);
	else
		read_next_of_all(qp);
}

static void read_begin(struct qp *qp, struct irq_entry *e)
{
	const struct rdmap_read_req *req = &e->msg.read;
	enum mr_verdict verdict;
	struct mr_near near = {.mr = NULL};
	void *ptr;
	bool durable;

	if (req->size == 0) { /* an empty Read: its STag must not be checked (RFC 5040 s4.4) */
		read_flush(qp, true);
		return;
	}
	verdict = qp_hold_remote(qp, &near, req->src_stag, req->src_to, req->size, qp->rights.read,
				 0, &ptr);
	if (verdict != MR_OK) {
		read_refuse(qp, qp_rdmap_error(verdict), 0);
		return;
	}
	durable = near.mr->backing.durable;
	mr_release_near(&near);
	read_flush(qp, durable);
}

static void read_on_job(struct qp *qp, struct irq_entry *e, int status)
{
	if (status)
		read_refuse_unsafe(qp);
	else
		read_next_of_all(qp);
}

static void read_on_detach(struct qp *qp, struct irq_entry *e)
{
	read_refuse_unsafe(qp);
}

/* The memory of a Read's answer cannot be loaded: refuse the Read, but only after all FPDUs that
 * were built earlier are sent. */
static bool read_source_failed(struct qp *qp, unsigned error)
{
	if (!qp->tx.at && qp->tx.batch->len == 0)
		read_refuse(qp, error, qp->tx.off);
	return false;
}

static bool read_build_answer(struct qp *qp, const struct irq_entry *e)
{
	const struct rdmap_read_req *req = &e->msg.read;
	uint64_t at = req->sink_to + qp->tx.off;
	struct ddp_hdr hdr = tx_tagged(RDMAP_READ_RESP, req->sink_stag, at);
	uint32_t len = tx_segment(qp, &hdr, at, req->size - qp->tx.off);
	struct tx_fpdu f;
	enum mr_verdict verdict;
	void *ptr;

	if (!tx_fpdu_begin(&f, qp, &hdr, len, 1))
		return false;
	if (len > 0) {
		verdict = qp_hold_remote(qp, &qp->tx.near, req->src_stag, req->src_to + qp->tx.off,
					 len, qp->rights.read, 0, &ptr);
		if (verdict != MR_OK || tx_fpdu_add(&f, ptr, len, qp->tx.near.mr)) {
			tx_fpdu_abort(&f);
			return read_source_failed(qp, verdict != MR_OK ? qp_rdmap_error(verdict)
								       : TERM_RDMAP_BASE_BOUNDS);
		}
	}
	tx_fpdu_done(qp, &f);
	qp->tx.off += len;
	if (hdr.last)
		tx_answer_built(qp);
	return true;
}

/* ------------------------------------------------------------------------------------------ */

static enum rx_verdict read_whole_answer(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	return qp_rx_place_whole(qp, seg, bytes, &read_answer_rx);
}

static const struct op_rx read_rx = {
	.whole = qp_request_whole,
	.decode = read_decode,
};

static const struct op_rx read_answer_rx = {
	.whole = read_whole_answer,
	.accept = read_accept_answer,
	.target = read_answer_target,
	.on_fault = read_on_fault,
	.finish = read_finish_answer,
	.is_answer = true,
};

const struct qp_op op_read = {
	.wc = IBV_WC_RDMA_READ,
	.level = RDMAP_LEVEL_BASE,
	.is_request = true,
	.scatters = true,
	.fill = read_fill,
	.build = read_build,
	.message = &read_rx,
	.answer = &read_answer_rx,
	.begin = read_begin,
	.on_job = read_on_job,
	.on_detach = read_on_detach,
	.build_answer = read_build_answer,
	.answer_loads = true,
};
