/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer's Flush Requests (doc/wire.md s6): of a range, with a digest of it, of everything this
 * stream placed, and the question what a flush of a range could achieve.
 */
#include <errno.h>
#include <string.h>

#include "softrnic/rnic/qp_impl.h"

static bool is_persistent(const struct irq_entry *e)
{
	return e->flush.flags & RDMAP_FLUSH_PERSIST;
}

static bool is_strict(const struct qp *qp, const struct irq_entry *e)
{
	return qp->cfg.strict_persist || e->flush.flags & RDMAP_FLUSH_STRICT;
}

static void ready(struct qp *qp, struct irq_entry *e, enum rdmap_flush_status status, int err)
{
	e->flushed = (struct rdmap_flush_resp){.status = status, .detail = (uint32_t)err};
	if (status && !qp->irq.failed.status)
		qp->irq.failed = e->flushed;
	qp->irq.state = IRQ_READY;
}

/* --- of a range --------------------------------------------------------------------------- */

/* A digest tells what the bytes are, one at a time if the peer likes: that is reading. */
static int access_of(const struct irq_entry *e, enum rdmap_flush_kind kind)
{
	if (kind == RDMAP_FLUSH_KIND_DIGEST)
		return IBV_ACCESS_REMOTE_READ;
	if (kind == RDMAP_FLUSH_KIND_QUERY)
		return RNIC_REMOTE_ACCESS;
	return IBV_ACCESS_REMOTE_READ |
	       (is_persistent(e) ? VEXT_ACCESS_FLUSH_PERSISTENT : VEXT_ACCESS_FLUSH_GLOBAL);
}

/* Placed is visible: only persistence takes more. */
static void begin_held(struct qp *qp, struct irq_entry *e, enum rdmap_flush_kind kind,
		       struct qp_writeback *wb)
{
	if (kind == RDMAP_FLUSH_KIND_RANGE && !is_persistent(e)) {
		mr_release(wb->mr);
		ready(qp, e, RDMAP_FLUSH_OK, 0);
		return;
	}
	/* The range may hold them, under another registration. */
	if (kind != RDMAP_FLUSH_KIND_QUERY && qp_dirty_has_failed(&qp->dirty)) {
		mr_release(wb->mr);
		ready(qp, e, RDMAP_FLUSH_FAILED, EIO);
		return;
	}
	if (kind == RDMAP_FLUSH_KIND_QUERY)
		wb->want = QP_CLASS;
	else
		qp_dirty_clean(qp, wb->mr, wb->addr, wb->len);
	if (kind == RDMAP_FLUSH_KIND_DIGEST) {
		wb->want = QP_DIGEST;
		wb->alg = rdmap_flush_alg(&e->flush);
	}
	wb->strict = is_strict(qp, e);
	wb->answer = &qp->irq.digest;
	memset(&qp->irq.digest, 0, sizeof(qp->irq.digest));
	qp_irq_want(qp, wb);
}

static void begin_range(struct qp *qp, struct irq_entry *e, enum rdmap_flush_kind kind)
{
	const struct rdmap_flush_req *req = &e->flush;
	struct qp_writeback wb = {.len = req->len};
	enum mr_verdict verdict;

	if (req->len == 0) {
		ready(qp, e, RDMAP_FLUSH_OK, 0);
		return;
	}
	verdict = mr_hold_any(qp->cfg.mrs, qp->cfg.pd, req->stag, req->to, req->len,
			      access_of(e, kind), &wb.mr, &wb.addr);
	if (verdict == MR_OK)
		begin_held(qp, e, kind, &wb);
	else
		qp_irq_refuse(qp, qp_rdmap_error(verdict), 0);
}

/* --- of everything ------------------------------------------------------------------------ */

/* One write-back after the other; a region that is gone may have taken bytes with it. */
static void next_of_all(struct qp *qp, struct irq_entry *e)
{
	int more = qp_irq_want_next(qp, is_strict(qp, e));

	if (more < 0)
		ready(qp, e, RDMAP_FLUSH_GONE, EFAULT);
	else if (more == 0)
		ready(qp, e, RDMAP_FLUSH_OK, 0);
}

static void begin_all(struct qp *qp, struct irq_entry *e)
{
	if (!is_persistent(e)) {
		ready(qp, e, RDMAP_FLUSH_OK, 0);
		return;
	}
	if (qp->irq.failed.status) { /* those bytes are not on the medium, and never will be */
		e->flushed = qp->irq.failed;
		qp->irq.state = IRQ_READY;
		return;
	}
	/* What is placed from now on came behind it. */
	qp_dirty_move(&qp->irq.all, &qp->dirty);
	next_of_all(qp, e);
}

/* --- for qp_irq.c ------------------------------------------------------------------------- */

void qp_flush_begin(struct qp *qp, struct irq_entry *e)
{
	enum rdmap_flush_kind kind = rdmap_flush_kind(&e->flush);

	switch (kind) {
	case RDMAP_FLUSH_KIND_BAD:
		qp_irq_refuse(qp, TERM_RDMAP_STREAM_CATASTROPHIC, 0);
		break;
	case RDMAP_FLUSH_KIND_ALL:
		begin_all(qp, e);
		break;
	case RDMAP_FLUSH_KIND_RANGE:
	case RDMAP_FLUSH_KIND_DIGEST:
	case RDMAP_FLUSH_KIND_QUERY:
		begin_range(qp, e, kind);
		break;
	}
}

static void failed(struct qp *qp, struct irq_entry *e, int status)
{
	switch (status) {
	case -ENOTSUP:
		ready(qp, e, RDMAP_FLUSH_VOLATILE, ENOTSUP);
		break;
	case -EFAULT:
	case -ECANCELED: /* given up, because the region goes away */
		ready(qp, e, RDMAP_FLUSH_GONE, EFAULT);
		break;
	default:
		ready(qp, e, RDMAP_FLUSH_FAILED, -status);
		break;
	}
}

void qp_flush_on_writeback(struct qp *qp, struct irq_entry *e, int status)
{
	enum rdmap_flush_kind kind = rdmap_flush_kind(&e->flush);

	if (status)
		failed(qp, e, status);
	else if (kind == RDMAP_FLUSH_KIND_ALL)
		next_of_all(qp, e);
	else
		ready(qp, e, RDMAP_FLUSH_OK,
		      kind == RDMAP_FLUSH_KIND_QUERY ? (int)qp->irq.digest.durability : 0);
}

bool qp_flush_detached(struct qp *qp, struct irq_entry *e)
{
	if (rdmap_flush_kind(&e->flush) != RDMAP_FLUSH_KIND_ALL)
		return false;
	ready(qp, e, RDMAP_FLUSH_GONE, EFAULT);
	return true;
}
