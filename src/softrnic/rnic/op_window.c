/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows. This file executes Bind and Local Invalidate in the order of the send queue; both
 * send no message. It also invalidates a window for a Send with Invalidate.
 */
#include <errno.h>

#include "softrnic/rnic/mw.h"
#include "softrnic/rnic/qp_impl.h"

enum mr_verdict qp_hold_window(struct qp *qp, struct mr_near *near, uint32_t stag,
			       struct mr_need need, void **ptr)
{
	return mw_hold_near(qp->cfg.mrs, near, stag, need, qp->id, ptr);
}

/* --- the end of a binding ------------------------------------------------------------------- */

static bool window_has_stag(const struct mr *mr, uint32_t stag)
{
	return mr && mr->ibv.rkey == stag;
}

/* Does a thread without the queue pair's lock use the window, to receive bytes or to run a job? */
static bool window_is_in_use(const struct qp *qp, uint32_t stag)
{
	return window_has_stag(qp->rx.lent_mr, stag) || window_has_stag(qp->requests.job.mr, stag);
}

/*
 * Release this queue pair's uses of a killed binding, and end the binding. No other queue pair
 * could access the binding. (Another queue pair that remembers the binding's reused description in
 * a struct mr_near may hold the description for a short time.) If an error is recorded, the binding
 * ends later, with its window.
 */
static void window_let_go(struct qp *qp, struct mr *binding)
{
	mr_release_near(&qp->rx.near);
	mr_release_near(&qp->tx.near);
	qp_tx_let_go(qp, binding);
	if (!qp->fault.due) {
		mr_wait_idle(binding);
		mw_unbind(binding);
	}
	mr_unref(binding);
}

/*
 * Invalidate a window for the peer. Returns false if a job uses the window: the peer should have
 * waited for the answer to the request that needs the job. The function cannot wait for the job,
 * because the job cannot end while the caller holds the queue pair's lock.
 */
bool qp_window_invalidate(struct qp *qp, uint32_t stag)
{
	struct mr *binding;

	if (window_is_in_use(qp, stag))
		return false;
	binding = mw_invalidate(qp->cfg.mrs, qp->cfg.pd, qp->id, stag);
	if (binding)
		window_let_go(qp, binding);
	return binding != NULL;
}

/* --- the work requests ---------------------------------------------------------------------- */

static uint32_t bind_window(const struct sq_wr *wr)
{
	return (uint32_t)(wr->compare >> 32);
}

static bool window_build(struct qp *qp, struct sq_wr *wr)
{
	int err = wr->op->run(qp, wr);

	/* After EAGAIN build the request again later, when no connection uses its window any more.
	 * Messages from other queues are sent meanwhile. */
	qp->tx.window_awaited = err == EAGAIN;
	if (err == EAGAIN) {
		wr->fence = SQ_FENCE_WINDOW;
		qp->tx.source = TX_NONE;
		return true;
	}
	if (err)
		return tx_wr_failed(qp, wr, IBV_WC_MW_BIND_ERR, err);
	/* The work request completes as soon as all earlier work requests are complete. */
	tx_wr_built(qp, wr);
	ack_pass_local(qp);
	qp_sq_retire(qp);
	return true;
}

static bool bind_check(const struct ibv_send_wr *wr)
{
	const struct ibv_mw *mw = wr->bind_mw.mw;

	if (!mw || (!wr->bind_mw.bind_info.mr && wr->bind_mw.bind_info.length))
		return false;
	return mw->type == IBV_MW_TYPE_2 || container_of(mw, struct mw, ibv)->in_call;
}

/* Copy values only and no pointers, because the window and the region may end before the request is
 * executed. */
static void bind_fill(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	slot->rkey = wr->bind_mw.rkey;
	slot->raddr = info->addr;
	slot->flags = info->mw_access_flags;
	slot->operand = info->length;
	slot->compare = (uint64_t)wr->bind_mw.mw->rkey << 32 | (info->mr ? info->mr->lkey : 0);
}

/* Returns 0 or an errno value. EAGAIN: another connection still uses the former binding. */
static int bind_run(struct qp *qp, const struct sq_wr *wr)
{
	struct mw_bind bind = {
		.pd = qp->cfg.pd,
		.qp = qp->id,
		.stag = wr->rkey,
		.window = bind_window(wr),
		.lkey = (uint32_t)wr->compare,
		.addr = wr->raddr,
		.len = wr->operand,
		.access = (int)wr->flags,
	};

	return -mw_bind(qp->cfg.mrs, &bind);
}

const struct qp_op op_bind = {
	.wc = IBV_WC_BIND_MW,
	.level = RDMAP_LEVEL_BASE,
	.is_local = true,
	.check = bind_check,
	.fill = bind_fill,
	.build = window_build,
	.run = bind_run,
};

static void local_inv_fill(const struct qp *qp, struct sq_wr *slot, const struct ibv_send_wr *wr)
{
	slot->rkey = wr->invalidate_rkey;
}

static int local_inv_run(struct qp *qp, const struct sq_wr *wr)
{
	struct mr *binding = mw_invalidate(qp->cfg.mrs, qp->cfg.pd, qp->id, wr->rkey);

	if (!binding)
		return EINVAL;
	if (window_is_in_use(qp, wr->rkey)) { /* the window is killed, so no new use of it begins */
		mr_unref(binding);
		return EAGAIN;
	}
	window_let_go(qp, binding);
	return 0;
}

const struct qp_op op_local_inv = {
	.wc = IBV_WC_LOCAL_INV,
	.level = RDMAP_LEVEL_BASE,
	.is_local = true,
	.fill = local_inv_fill,
	.build = window_build,
	.run = local_inv_run,
};

bool qp_window_may_end(const struct qp *qp, const struct sq_wr *wr)
{
	if (wr->op == &op_bind)
		return mw_is_idle(qp->cfg.mrs, bind_window(wr));
	return !window_is_in_use(qp, wr->rkey);
}
