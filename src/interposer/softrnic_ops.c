/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softrnic_ops.c -- the table of calls of the software RNIC. A call that the software RNIC lacks is
 * refused, as on a device without the feature.
 *
 * The errno values are those of rdma-core 44 with siw, the kernel's software iWARP device.
 */
#include <errno.h>
#include <string.h>

#include "interposer/ops.h"
#include "interposer/shim_id.h"
#include "softrnic/softrnic.h"

/* Programs built before 2018 pass a shorter structure. For newer programs inline code in the header
 * clears the rest. */
static int ops_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr full;
	int ret = softrnic_query_port(ctx, port, &full);

	if (!ret)
		memcpy(attr, &full, offsetof(struct ibv_port_attr, port_cap_flags2));
	return ret;
}

static int ops_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int ret = softrnic_modify_qp(qp, attr, mask);

	if (ret && softrnic_is_plain_qp(qp))
		plain_qp_explain(ret, attr, mask);
	return ret;
}

static struct ibv_mr *ops_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				      int access)
{
	return softrnic_reg_mr_iova2(pd, addr, len, iova, (unsigned)access);
}

/* There is nothing to do, because a region cannot be imported. */
static void ops_unimport_mr(struct ibv_mr *mr)
{
}

static void ops_unimport_pd(struct ibv_pd *pd)
{
}

static void ops_unimport_dm(struct ibv_dm *dm)
{
}

static int ops_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}

static int ops_reject_ece(struct rdma_cm_id *id, const void *pdata, uint8_t len)
{
	return softrnic_reject(id, pdata, len);
}

static int ops_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	return 0;
}

static int ops_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	return REFUSE_NEG(ENOSYS);
}

static int ops_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
				 void *context)
{
	return REFUSE_NEG(ENOSYS);
}

static int ops_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return REFUSE_NEG(EADDRNOTAVAIL);
}

/* Make functions for the calls that the software RNIC does not support. */
#define LACKED(ret, name, params, args, failure, act)                                              \
	static ret ops_##name params                                                               \
	{                                                                                          \
		return REFUSE_##failure(EOPNOTSUPP);                                               \
	}
OPS_CM_LACKED_CALLS(LACKED)
OPS_VERBS_LACKED_CALLS(LACKED)

#define ITS_ROW(ret, name, ...)  .name = softrnic_##name,
#define HERE_ROW(ret, name, ...) .name = ops_##name,
#define ITS(name)                .name = softrnic_##name
#define HERE(name)               .name = ops_##name
const struct ops softrnic_ops = {
	.cm = {VEXT_CM_CALLS(ITS_ROW) OPS_CM_LACKED_CALLS(HERE_ROW) ITS(set_option),
	       HERE(reject_ece), HERE(notify), ITS(establish), ITS(init_qp_attr),
	       HERE(join_multicast), HERE(join_multicast_ex), HERE(leave_multicast)},
	.verbs = {VEXT_VERBS_CALLS(ITS_ROW) OPS_VERBS_LACKED_CALLS(HERE_ROW) ITS(query_device),
		  ITS(reg_mr_iova2),
		  ITS(create_ah),
		  ITS(destroy_ah),
		  ITS(init_ah_from_wc),
		  ITS(create_ah_from_wc),
		  ITS(resize_cq),
		  ITS(modify_srq),
		  ITS(query_srq),
		  HERE(modify_qp),
		  ITS(query_qp),
		  ITS(close_device),
		  HERE(query_port),
		  ITS(query_gid),
		  ITS(query_pkey),
		  ITS(get_pkey_index),
		  HERE(reg_mr_iova),
		  ITS(rereg_mr),
		  HERE(unimport_mr),
		  HERE(unimport_pd),
		  HERE(unimport_dm),
		  ITS(qp_to_qp_ex),
		  HERE(query_qp_data_in_order)},
};
