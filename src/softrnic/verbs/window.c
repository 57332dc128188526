/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * window.c -- allocates and deallocates memory windows, and binds windows of type 1 by a call.
 * Windows of type 2 are bound by work requests (rnic/op_window.c).
 */
#include <errno.h>

#include "softrnic/io/conn.h"
#include "softrnic/rnic/mw.h"
#include "softrnic/verbs/device.h"
#include "softrnic/softrnic.h"

static struct mw *window_of(struct ibv_mw *ibv)
{
	return container_of(ibv, struct mw, ibv);
}

struct ibv_mw *softrnic_alloc_mw(struct ibv_pd *ibv, enum ibv_mw_type type)
{
	struct vpd *pd = vpd_of(ibv);
	struct mw *mw;
	int ret = -EINVAL;

	if (type == IBV_MW_TYPE_1 || type == IBV_MW_TYPE_2)
		ret = mw_new(device_mrs(), &pd->ibv, type, &mw);
	if (ret) {
		errno = -ret;
		return NULL;
	}
	atomic_fetch_add(&pd->users, 1);
	return &mw->ibv;
}

int softrnic_dealloc_mw(struct ibv_mw *ibv)
{
	struct mw *mw = window_of(ibv);
	struct vpd *pd = vpd_of(ibv->pd);
	struct mr *binding = mw_kill(mw);

	/* When this call returns, no thread accesses memory through the binding any more; the
	 * deregistration of a region has the same effect. */
	conns_detach_binding(binding);
	mw_unbind(binding);
	mr_unref(binding);
	mw_delete(mw);
	atomic_fetch_sub(&pd->users, 1);
	return 0;
}

static int window_post_bind(struct mw *mw, struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int ret;

	mw->in_call = true;
	ret = ibv_post_send(qp, wr, &bad);
	mw->in_call = false;
	return ret;
}

/* The new binding is in force when the posted request completes. */
int softrnic_bind_mw(struct ibv_qp *qp, struct ibv_mw *ibv, struct ibv_mw_bind *bind)
{
	struct mw *mw = window_of(ibv);
	uint32_t rkey = ibv_inc_rkey(ibv->rkey);
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.send_flags = bind->send_flags,
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {.mw = ibv, .rkey = rkey, .bind_info = bind->bind_info},
	};
	struct mr *former;
	int ret;

	if (ibv->type != IBV_MW_TYPE_1 || vpd_of(qp->pd) != vpd_of(ibv->pd))
		return EINVAL;
	former = mw_former(mw);
	ret = window_post_bind(mw, qp, &wr);
	if (!ret) {
		ibv->rkey = rkey;
		/*
		 * End the former binding in the caller's thread, because this has to wait for other
		 * connections, and after the request is posted, because a call that fails must
		 * change nothing. When the request is about to be executed, it waits until the
		 * former binding is idle.
		 */
		mr_kill(former);
		conns_detach_binding(former);
		verbs_look_at_sends(qp);
	}
	mr_unref(former);
	return ret;
}
