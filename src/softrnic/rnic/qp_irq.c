/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer's requests, executed strictly in order: Reads, Flushes and atomics. Only the head is
 * ever looked at; its state says whether it waits, needs a write-back or may be answered.
 */
#include <errno.h>
#include <string.h>

#include "softrnic/rnic/qp_impl.h"

struct irq_entry *qp_irq_head(struct qp *qp)
{
	return &qp->irq.ring[qp->irq.head];
}

bool qp_irq_is_ready(const struct qp *qp)
{
	return qp->irq.state == IRQ_READY;
}

uint32_t qp_requests(const struct qp *qp)
{
	return qp->irq.count;
}

/* --- arrival ------------------------------------------------------------------------------ */

static enum rx_verdict accept_request(struct qp *qp, struct rx_seg *seg, bool whole)
{
	if (!qp_rx_is_next(qp, seg))
		return RX_DEAD;
	if (qp->irq.count < qp->irq.depth)
		return RX_DONE;
	/* More than the agreed IRD: to DDP a queue without a buffer (RFC 5041 s7.1). */
	qp_refuse_seg(qp, TERM_DDP_NO_BUFFER, seg);
	return RX_DEAD;
}

static struct irq_entry *add(struct qp *qp, const struct rx_seg *seg)
{
	struct irq_entry *e = &qp->irq.ring[(qp->irq.head + qp->irq.count++) % qp->irq.depth];

	*e = (struct irq_entry){
		.ddp = seg->hdr,
		.code = rdmap_ctrl_opcode(seg->hdr.ulp),
		.after_sends = qp->recv.seen_sends,
	};
	qp->rx.msn[DDP_QN_REQUEST]++;
	return e;
}

static void finish_read_req(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct irq_entry *e = add(qp, seg);

	rdmap_read_req_decode(bytes, seg->payload, &e->read);
	qp->counters.reads_in++;
	qp_irq_run(qp);
}

static void finish_flush_req(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct irq_entry *e = add(qp, seg);

	rdmap_flush_req_decode(bytes, seg->payload, &e->flush);
	qp->counters.flushes_in++;
	qp_irq_run(qp);
}

static void finish_atomic_req(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct irq_entry *e = add(qp, seg);

	rdmap_atomic_req_decode(bytes, seg->payload, &e->atomic);
	qp->counters.atomics_in++;
	qp_irq_run(qp);
}

const struct rx_op qp_rx_read_req = {accept_request, NULL, finish_read_req};
const struct rx_op qp_rx_flush_req = {accept_request, NULL, finish_flush_req};
const struct rx_op qp_rx_atomic_req = {accept_request, NULL, finish_atomic_req};

/* --- execution ---------------------------------------------------------------------------- */

void qp_irq_refuse(struct qp *qp, unsigned error, uint32_t off)
{
	const struct irq_entry *e = qp_irq_head(qp);
	struct rdmap_read_req read = e->read;
	uint32_t len = DDP_UNTAGGED_HDR + rdmap_ops[e->code].hdr_len;

	read.sink_to += off;
	read.src_to += off;
	read.size -= off;
	qp_refuse(qp, error, &e->ddp, len, e->code == RDMAP_READ_REQ ? &read : NULL);
}

/* Deregistration does not wait for a write-back that is possible without the registration. */
static void decide_lasting(struct qp_writeback *wb)
{
	wb->lasting = wb->mr->backing.lasting && wb->want == QP_WRITE_BACK;
}

static void ask(struct qp *qp, const struct qp_writeback *wb)
{
	qp->irq.wb = *wb;
	qp->irq.state = IRQ_WRITEBACK;
}

static void let_go(struct qp_writeback *wb)
{
	if (wb->lasting)
		mr_unref(wb->mr);
	else
		mr_release(wb->mr);
	wb->mr = NULL;
}

void qp_irq_want(struct qp *qp, struct qp_writeback *wb)
{
	decide_lasting(wb);
	if (wb->lasting) {
		mr_ref(wb->mr);
		mr_release(wb->mr);
	}
	ask(qp, wb);
}

/* Memory that the peer cannot name, such as a receive's, it did not choose either. */
static bool all_is_strict(const struct mr *mr, bool strict)
{
	return strict && mr->access & RNIC_REMOTE_ACCESS;
}

/* Of a region in a list the reference was taken over; where that is not enough, hold it. */
static bool hold_again(struct qp *qp, struct mr *mr)
{
	struct mr *held;
	void *ptr;
	bool ok = mr_hold(qp->cfg.mrs, qp->cfg.pd, mr->ibv.rkey, 0, 0, 0, &held, &ptr) == MR_OK;

	mr_unref(mr);
	return ok;
}

int qp_irq_want_next(struct qp *qp, bool strict)
{
	struct qp_writeback wb = {.want = QP_WRITE_BACK};
	struct dirty_range range;

	if (qp->irq.all.lost)
		return -EFAULT;
	wb.mr = qp_dirty_next(&qp->irq.all, &range);
	if (!wb.mr)
		return 0;
	wb.addr = (uint8_t *)wb.mr->ibv.addr + range.lo;
	wb.len = range.hi - range.lo;
	wb.strict = all_is_strict(wb.mr, strict);
	decide_lasting(&wb);
	if (!wb.lasting && !hold_again(qp, wb.mr))
		return -EFAULT;
	ask(qp, &wb);
	return 1;
}

/* Data would claim that the peer's earlier Writes are safe. */
static void refuse_unsafe(struct qp *qp)
{
	qp_irq_refuse(qp, TERM_RDMAP_STREAM_CATASTROPHIC, 0);
}

static void go_on_reading(struct qp *qp)
{
	int more = qp_irq_want_next(qp, false);

	if (more < 0)
		refuse_unsafe(qp);
	else if (more == 0)
		qp->irq.state = IRQ_READY;
}

/*
 * A peer whose user knows no flush uses a Read for it: what this stream placed and did not write
 * back yet goes to the medium first. All of it, since the region that is read may show the same
 * bytes as another, or may have been registered anew since.
 */
static void read_begins(struct qp *qp, bool durable)
{
	if (qp->stream.peer_flushes)
		qp->irq.state = IRQ_READY;
	else if (durable && (qp->irq.failed.status || qp->dirty.lost_durable))
		refuse_unsafe(qp);
	else if (!qp_dirty_move_durable(&qp->irq.all, &qp->dirty))
		refuse_unsafe(qp);
	else
		go_on_reading(qp);
}

static void begin_read(struct qp *qp, const struct irq_entry *e)
{
	enum mr_verdict verdict;
	struct mr *mr;
	void *ptr;
	bool durable;

	if (e->read.size == 0) { /* the source must not be checked (RFC 5040 s4.4) */
		read_begins(qp, true);
		return;
	}
	verdict = mr_hold(qp->cfg.mrs, qp->cfg.pd, e->read.src_stag, e->read.src_to, e->read.size,
			  IBV_ACCESS_REMOTE_READ, &mr, &ptr);
	if (verdict != MR_OK) {
		qp_irq_refuse(qp, qp_rdmap_error(verdict), 0);
		return;
	}
	durable = mr->backing.durable;
	mr_release(mr);
	read_begins(qp, durable);
}

void qp_irq_run(struct qp *qp)
{
	struct irq_entry *e;

	if (qp_is_failed(qp) || qp->irq.count == 0 || qp->irq.state != IRQ_WAITING)
		return;
	e = qp_irq_head(qp);
	/* Not before the Sends ahead of it are delivered (RFC 5040 s5.5, rule 12). */
	if ((int32_t)(qp->recv.delivered_sends - e->after_sends) < 0)
		return;
	if (e->code == RDMAP_FLUSH_REQ)
		qp_flush_begin(qp, e);
	else if (e->code == RDMAP_ATOMIC_REQ)
		qp_atomic_begin(qp, e);
	else
		begin_read(qp, e);
}

void qp_irq_answered(struct qp *qp)
{
	struct qp_irq *irq = &qp->irq;

	irq->head = (irq->head + 1) % irq->depth;
	irq->count--;
	irq->state = IRQ_WAITING;
	qp_irq_run(qp);
}

/* --- write-back --------------------------------------------------------------------------- */

bool qp_next_writeback(struct qp *qp, struct qp_writeback *wb)
{
	if (qp->irq.state != IRQ_WRITEBACK)
		return false;
	qp->irq.state = IRQ_RUNNING;
	qp->counters.writebacks += qp->irq.wb.want != QP_CLASS;
	*wb = qp->irq.wb;
	return true;
}

static void read_on_writeback(struct qp *qp, int status)
{
	if (status)
		refuse_unsafe(qp);
	else
		go_on_reading(qp);
}

void qp_on_writeback(struct qp *qp, int status)
{
	struct irq_entry *e;

	let_go(&qp->irq.wb);
	qp->irq.state = IRQ_WAITING;
	if (status && qp->irq.wb.want != QP_CLASS)
		qp->counters.writeback_failures++;
	if (qp_is_failed(qp))
		return;
	e = qp_irq_head(qp);
	if (e->code == RDMAP_FLUSH_REQ)
		qp_flush_on_writeback(qp, e, status);
	else
		read_on_writeback(qp, status);
}

/* A write-back that nobody fetched yet must not keep the region from going away. */
void qp_irq_detach(struct qp *qp, const struct mr *mr)
{
	struct irq_entry *e;

	if (qp->irq.state != IRQ_WRITEBACK || qp->irq.wb.mr != mr || qp->irq.wb.lasting)
		return;
	let_go(&qp->irq.wb);
	qp->irq.state = IRQ_WAITING;
	e = qp_irq_head(qp);
	if (e->code != RDMAP_FLUSH_REQ)
		refuse_unsafe(qp);
	else if (!qp_flush_detached(qp, e))
		qp_irq_run(qp); /* finds the STag invalid */
}

void qp_irq_stop(struct qp *qp)
{
	struct qp_irq *irq = &qp->irq;

	irq->count = 0;
	qp_dirty_fini(&qp->dirty);
	qp_dirty_fini(&irq->all);
	if (irq->state == IRQ_RUNNING)
		return;
	if (irq->state == IRQ_WRITEBACK)
		let_go(&irq->wb);
	irq->state = IRQ_WAITING;
}
