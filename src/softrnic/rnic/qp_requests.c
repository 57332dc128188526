/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executes the peer's requests strictly in order. So only the first request of the IRQ, its head,
 * is in progress: it waits, or the owner runs its job, or its answer may be sent.
 */
#include <errno.h>

#include "softrnic/rnic/qp_impl.h"

uint32_t qp_requests(const struct qp *qp)
{
	return qp->irq.count;
}

/* --- arrival ------------------------------------------------------------------------------ */

/*
 * Add the request to the IRQ, and fill in its entry except the message. Returns NULL if an error is
 * recorded.
 */
static struct irq_entry *request_push(struct qp *qp, const struct rx_seg *seg)
{
	struct irq_entry *e;

	/* There are more requests than the agreed IRD. For DDP this is a queue without a buffer
	 * (RFC 5041 s7.1). */
	if (irq_is_full(&qp->irq)) {
		qp_refuse_seg(qp, TERM_DDP_NO_BUFFER, seg);
		return NULL;
	}
	if (irq_make_room(&qp->irq)) {
		qp_fault_local(qp, ENOMEM, "no memory for a request of the peer");
		return NULL;
	}
	e = irq_push(&qp->irq);
	ddp_hdr_copy(&e->ddp, &seg->hdr);
	e->len = seg->ulpdu;
	e->op = seg->op;
	e->after_sends = qp->recv.seen_sends;
	return e;
}

enum rx_verdict qp_request_whole(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	struct irq_entry *e = request_push(qp, seg);

	if (!e)
		return RX_FAULT;
	seg->rx->decode(qp, e, bytes, seg->payload);
	qp_requests_run(qp);
	return RX_DONE;
}

/* --- execution ---------------------------------------------------------------------------- */

void qp_request_refuse(struct qp *qp, unsigned error, const struct rdmap_read_req *read)
{
	const struct ddp_hdr *ddp = &irq_head(&qp->irq)->ddp;

	qp_refuse(qp, error, ddp, irq_head(&qp->irq)->len, read);
}

/* Are all Sends delivered that arrived before the request (RFC 5040 s5.5, rule 12)? */
bool qp_request_is_due(const struct qp *qp, const struct irq_entry *e)
{
	return (int32_t)(qp->recv.delivered_sends - e->after_sends) >= 0;
}

void qp_requests_run(struct qp *qp)
{
	struct irq_entry *e;

	if (qp->fault.due || qp->irq.count == 0 || qp->requests.state != REQUEST_WAITING)
		return;
	e = irq_head(&qp->irq);
	if (!qp_request_is_due(qp, e))
		return;
	e->op->begin(qp, e);
	mr_release_near(&qp->rx.near);
}

void qp_request_ready(struct qp *qp)
{
	qp->requests.state = REQUEST_READY;
}

void qp_request_answered(struct qp *qp)
{
	irq_pop(&qp->irq);
	qp->requests.state = REQUEST_WAITING;
	qp_requests_run(qp);
}

/* --- jobs of the owner -------------------------------------------------------------------- */

/* Can the job run without the registration? Deregistration does not wait for such a write-back. */
static bool request_is_lasting(const struct qp_job *job)
{
	return job->mr->backing.lasting && job->kind == QP_JOB_WRITE_BACK;
}

static void request_ask(struct qp *qp, const struct qp_job *job)
{
	qp->requests.job = *job;
	qp->requests.state = REQUEST_JOB;
}

static void request_let_go(struct qp_job *job)
{
	if (job->lasting)
		mr_unref(job->mr);
	else
		mr_release(job->mr);
	job->mr = NULL;
}

void qp_request_job(struct qp *qp, struct qp_job *job)
{
	job->lasting = request_is_lasting(job);
	if (job->lasting) {
		mr_ref(job->mr);
		mr_release(job->mr);
	}
	request_ask(qp, job);
}

/*
 * Replace the reference on the region, which came from the list, by a hold, because this job needs
 * the registration.
 */
static bool request_hold_again(struct qp *qp, struct mr *mr)
{
	struct mr *held;
	void *ptr;
	bool ok = mr_hold(qp->cfg.mrs, qp->cfg.pd, mr->ibv.rkey, 0, 0, 0, &held, &ptr) == MR_OK;

	mr_unref(mr);
	return ok;
}

int qp_request_next_of_all(struct qp *qp, bool strict)
{
	struct qp_job job = {.kind = QP_JOB_WRITE_BACK};
	struct dirty_range range;

	if (qp->requests.all.lost)
		return -EFAULT;
	job.mr = dirty_next(&qp->requests.all, &range);
	if (!job.mr)
		return 0;
	job.addr = (uint8_t *)job.mr->start + range.lo;
	job.len = range.hi - range.lo;
	/* memory that the peer cannot address, such as that of a receive, may be volatile */
	job.strict = strict && job.mr->access & RNIC_REACHED;
	job.lasting = request_is_lasting(&job);
	if (!job.lasting && !request_hold_again(qp, job.mr))
		return -EFAULT;
	request_ask(qp, &job);
	return 1;
}

bool qp_next_job(struct qp *qp, struct qp_job *job)
{
	if (qp->requests.state != REQUEST_JOB)
		return false;
	qp->requests.state = REQUEST_RUNNING;
	*job = qp->requests.job;
	qp->counters.writebacks += job->kind != QP_JOB_CLASS;
	return true;
}

void qp_on_job(struct qp *qp, int status)
{
	struct irq_entry *e;

	request_let_go(&qp->requests.job);
	qp->requests.state = REQUEST_WAITING;
	if (status && qp->requests.job.kind != QP_JOB_CLASS)
		qp->counters.writeback_failures++;
	if (qp_is_failed(qp))
		return;
	e = irq_head(&qp->irq);
	/* after a long write-back the connection may be over, and further requests must not change
	 * memory */
	if (qp_is_over(qp))
		qp_given_up(qp);
	else
		e->op->on_job(qp, e, status);
	qp_settle(qp);
}

/* A region is being deregistered. A job that the owner has not fetched yet must not delay this. */
void qp_requests_detach(struct qp *qp, const struct mr *mr)
{
	struct qp_requests *r = &qp->requests;
	struct irq_entry *e;

	/*
	 * Flushes that joined look up their STags again, because an STag may now name another
	 * region, or none.
	 */
	r->joined = 0;
	if (r->state != REQUEST_JOB || r->job.mr != mr || r->job.lasting)
		return;
	request_let_go(&r->job);
	r->state = REQUEST_WAITING;
	e = irq_head(&qp->irq);
	e->op->on_detach(qp, e);
}

void qp_requests_trim(struct qp *qp)
{
	irq_trim(&qp->irq);
}

void qp_requests_stop(struct qp *qp)
{
	struct qp_requests *r = &qp->requests;

	qp->irq.count = r->joined = 0;
	dirty_fini(&qp->dirty);
	dirty_fini(&r->all);
	if (r->state == REQUEST_RUNNING)
		return;
	if (r->state == REQUEST_JOB)
		request_let_go(&r->job);
	r->state = REQUEST_WAITING;
}
