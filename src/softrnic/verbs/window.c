/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * window.c -- memory windows: made, bound by a call (type 1), and given back. Those of type 2 are bound
 * by work requests (rnic/op_window.c).
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

/* When this returns no thread accesses memory through its last binding: as at a region's end. */
static void window_close(struct mw *mw, bool ends)
{
	struct mr *binding = mw_kill(mw, ends);

	conns_detach_binding(binding);
	if (ends)
		mw_unbind(binding);
	mr_unref(binding);
}

int softrnic_dealloc_mw(struct ibv_mw *ibv)
{
	struct mw *mw = window_of(ibv);
	struct vpd *pd = vpd_of(ibv->pd);

	window_close(mw, true);
	mw_delete(mw);
	atomic_fetch_sub(&pd->users, 1);
	return 0;
}

/*
 * The former binding ends here and not at the request's turn, because its end has to wait for other
 * connections. The new one is in force when the request completes.
 */
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
	struct ibv_send_wr *bad;
	int ret;

	if (ibv->type != IBV_MW_TYPE_1 || vpd_of(qp->pd) != vpd_of(ibv->pd))
		return EINVAL;
	window_close(mw, false);
	ret = ibv_post_send(qp, &wr, &bad);
	if (ret)
		mw_revive(mw);
	else
		ibv->rkey = rkey;
	return ret;
}
