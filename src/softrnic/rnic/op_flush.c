/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flush (doc/wire.md s6): the Flush of a range, and the Flush of everything that the stream placed.
 */
#include "softrnic/rnic/op_flush.h"

#include <errno.h>
#include <string.h>

/* --- this end's request ------------------------------------------------------------------- */

static bool flush_check(const struct ibv_send_wr *wr)
{
	enum vext_flush_type type = op_vext(wr)->type;

	return type >= VEXT_FLUSH_VISIBLE && type <= VEXT_FLUSH_STRICT;
}

uint32_t flush_flags(const struct qp *qp, enum vext_flush_type type)
{
	if (type == VEXT_FLUSH_VISIBLE)
		return EXT_FLUSH_VISIBLE;
	return EXT_FLUSH_PERSIST |
	       (type == VEXT_FLUSH_STRICT || qp->cfg.strict_persist ? EXT_FLUSH_STRICT : 0);
}

static void flush_fill(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	ext_fill_range(slot, wr);
	slot->flags = flush_flags(qp, op_vext(wr)->type);
}

static bool flush_build(struct qp *qp, struct sq_wr *wr)
{
	return ext_build_range(qp, wr, EXT_FLUSH);
}

/* --- the peer's request ------------------------------------------------------------------- */

static bool flush_is_persistent(const struct irq_entry *e)
{
	return e->msg.word.arg & EXT_FLUSH_PERSIST;
}

static bool flush_is_strict(const struct qp *qp, const struct irq_entry *e)
{
	return qp->cfg.strict_persist || e->msg.word.arg & EXT_FLUSH_STRICT;
}

void flush_ready(struct qp *qp, struct irq_entry *e, enum ext_status status, int err)
{
	ext_ready(qp, e, status, (uint32_t)err);
	if (status && qp->requests.failed == EXT_OK) {
		qp->requests.failed = status;
		qp->requests.failed_detail = (uint32_t)err;
	}
}

/* Does the range exist, and does its STag grant one of these rights? If so, qp->rx.near holds the
 * region. */
static bool flush_find(struct qp *qp, struct irq_entry *e, int access, struct qp_job *job)
{
	const struct ext_range *req = &e->msg.range;
	enum mr_verdict verdict;

	job->len = req->len;
	verdict = qp_hold_remote(qp, &qp->rx.near, req->stag, req->to, req->len, 0, access,
				 &job->addr);
	if (verdict == MR_OK)
		return true;
	qp_request_refuse(qp, qp_rdmap_error(verdict), NULL);
	return false;
}

static void flush_keep(struct qp_job *job, struct mr *mr)
{
	job->mr = mr;
	mr_hold_again(mr);
}

bool flush_hold(struct qp *qp, struct irq_entry *e, int access, struct qp_job *job)
{
	bool found = flush_find(qp, e, access, job);

	if (found)
		flush_keep(job, qp->rx.near.mr);
	return found;
}

/* If a file to which the peer wrote has failed, answer the Flush with an error: the lost bytes may
 * lie in this range, although another registration maps the file. */
bool flush_has_lost(struct qp *qp, struct irq_entry *e, struct qp_job *job)
{
	if (!dirty_has_failed(&qp->dirty))
		return false;
	mr_release(job->mr);
	flush_ready(qp, e, EXT_FAILED, EIO);
	return true;
}

void flush_ask(struct qp *qp, struct irq_entry *e, struct qp_job *job)
{
	job->strict = flush_is_strict(qp, e);
	job->answer = &qp->requests.digest;
	memset(&qp->requests.digest, 0, sizeof(qp->requests.digest));
	qp_request_job(qp, job);
}

/* `joins` is true if other Flushes may join this write-back. */
static void flush_write_back(struct qp *qp, struct irq_entry *e, struct qp_job *job, bool joins)
{
	/* a write-back sends no byte to the peer, so it needs only the region, not the window */
	flush_keep(job, mr_base(qp->rx.near.mr));
	if (flush_has_lost(qp, e, job))
		return;
	dirty_clean(&qp->dirty, job->mr, job->addr, job->len);
	if (joins)
		flush_join(qp, job);
	flush_ask(qp, e, job);
}

/* Start the Flush. Placed bytes are already visible, so only a persistent Flush needs a job. */
static void flush_start(struct qp *qp, struct irq_entry *e, bool joins)
{
	bool is_joined = flush_take_joined(qp);
	struct qp_job job = {.kind = QP_JOB_WRITE_BACK};
	int right =
		flush_is_persistent(e) ? VEXT_ACCESS_FLUSH_PERSISTENT : VEXT_ACCESS_FLUSH_GLOBAL;

	if (!ext_flush_is_valid(e->msg.word.arg)) {
		ext_refuse(qp);
		return;
	}
	/*
	 * an empty Flush writes back nothing; its answer shows that earlier requests are executed
	 */
	if (e->msg.range.len == 0) {
		flush_ready(qp, e, EXT_OK, 0);
		return;
	}
	if (!flush_find(qp, e, IBV_ACCESS_REMOTE_READ | right, &job))
		return;
	if (!flush_is_persistent(e) || is_joined)
		flush_ready(qp, e, EXT_OK, 0);
	else
		flush_write_back(qp, e, &job, joins);
}

static void flush_begin(struct qp *qp, struct irq_entry *e)
{
	flush_start(qp, e, true);
}

void flush_failed(struct qp *qp, struct irq_entry *e, int status)
{
	switch (status) {
	case -ENOTSUP:
		flush_ready(qp, e, EXT_VOLATILE, ENOTSUP);
		break;
	case -EFAULT:
	case -ECANCELED: /* cancelled, because the region is being deregistered */
		flush_ready(qp, e, EXT_GONE, EFAULT);
		break;
	default:
		flush_ready(qp, e, EXT_FAILED, -status);
		break;
	}
}

void flush_on_job(struct qp *qp, struct irq_entry *e, int status)
{
	if (status)
		flush_failed(qp, e, status);
	else
		flush_ready(qp, e, EXT_OK, 0);
}

/* If a joined write-back failed, only one of its ranges may be the cause, so now each Flush is
 * written back separately. */
static void flush_range_on_job(struct qp *qp, struct irq_entry *e, int status)
{
	bool was_shared = qp->requests.joined > 0;

	if (status)
		qp->requests.joined = 0;
	if (!status || status == -ECANCELED || !was_shared) {
		flush_on_job(qp, e, status);
		return;
	}
	flush_start(qp, e, false);
	mr_release_near(&qp->rx.near);
}

/* The region is being deregistered. Begin the request again; it will find the STag invalid. */
void flush_on_detach(struct qp *qp, struct irq_entry *e)
{
	qp_requests_run(qp);
}

const struct qp_op op_flush = {
	.wc = VEXT_WC_FLUSH,
	.level = RDMAP_LEVEL_OURS,
	.cap = VEXT_CAP_FLUSH,
	.is_request = true,
	.check = flush_check,
	.fill = flush_fill,
	.build = flush_build,
	.message = &ext_range_rx,
	.answer = &ext_answer_rx,
	.begin = flush_begin,
	.on_job = flush_range_on_job,
	.on_detach = flush_on_detach,
	.build_answer = ext_build_answer,
};

/* --- the Flush of everything -------------------------------------------------------------- */

static void flush_all_fill(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	slot->flags = flush_flags(qp, op_vext(wr)->type);
}

static bool flush_all_build(struct qp *qp, struct sq_wr *wr)
{
	struct ext_word req = {.kind = EXT_FLUSH_ALL, .arg = wr->flags};
	uint8_t bytes[EXT_ALL_LEN];

	return ext_build_request(qp, wr, bytes, ext_word_encode(bytes, sizeof(bytes), &req));
}

static void flush_all_decode(struct qp *qp, struct irq_entry *e, const uint8_t *bytes, uint32_t len)
{
	ext_word_decode(bytes, len, &e->msg.word);
	qp->counters.flushes_in++;
}

static const struct op_rx flush_all_rx = {
	.whole = qp_request_whole,
	.decode = flush_all_decode,
};

/*
 * Ask for the write-back of the next range, one range at a time. If bytes of a deregistered region
 * are lost, the answer reports the loss.
 */
static void flush_all_next(struct qp *qp, struct irq_entry *e)
{
	int more = qp_request_next_of_all(qp, flush_is_strict(qp, e));

	if (more < 0)
		flush_ready(qp, e, EXT_GONE, EFAULT);
	else if (more == 0)
		flush_ready(qp, e, EXT_OK, 0);
}

static void flush_all_begin(struct qp *qp, struct irq_entry *e)
{
	if (!ext_flush_is_valid(e->msg.word.arg)) {
		ext_refuse(qp);
		return;
	}
	if (!flush_is_persistent(e)) {
		flush_ready(qp, e, EXT_OK, 0);
		return;
	}
	if (qp->requests.failed) { /* the bytes of the failed Flush are lost */
		ext_ready(qp, e, qp->requests.failed, qp->requests.failed_detail);
		return;
	}
	/* This request covers the bytes placed until now. Bytes that are placed later belong to a
	 * later Flush. */
	dirty_move(&qp->requests.all, &qp->dirty);
	flush_all_next(qp, e);
}

static void flush_all_on_job(struct qp *qp, struct irq_entry *e, int status)
{
	if (status)
		flush_failed(qp, e, status);
	else
		flush_all_next(qp, e);
}

static void flush_all_on_detach(struct qp *qp, struct irq_entry *e)
{
	flush_ready(qp, e, EXT_GONE, EFAULT);
}

const struct qp_op op_flush_all = {
	.wc = VEXT_WC_FLUSH,
	.level = RDMAP_LEVEL_OURS,
	.cap = VEXT_CAP_FLUSH_ALL,
	.is_request = true,
	.check = flush_check,
	.fill = flush_all_fill,
	.build = flush_all_build,
	.message = &flush_all_rx,
	.answer = &ext_answer_rx,
	.begin = flush_all_begin,
	.on_job = flush_all_on_job,
	.on_detach = flush_all_on_detach,
	.build_answer = ext_build_answer,
};
