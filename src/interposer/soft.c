/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soft.c -- the software RNIC as a table, with what it lacks refused as a device without it does.
 *
 * The errno values are those of rdma-core 44 with siw, the kernel's software iWARP device.
 */
#include <errno.h>
#include <string.h>

#include "interposer/face.h"
#include "interposer/words.h"
#include "softrnic/softrnic.h"

static int soft_close_device(struct ibv_context *ctx)
{
	return 0; /* there is one context, and it lives as long as the process */
}

/* Programs built before 2018 have a shorter structure; the header's inline code clears the rest. */
static int soft_query_port(struct ibv_context *ctx, uint8_t port,
			   struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr full;
	int ret = softrnic_query_port(ctx, port, &full);

	if (!ret)
		memcpy(attr, &full, offsetof(struct ibv_port_attr, port_cap_flags2));
	return ret;
}

/* An iWARP port has one GID, made of a hardware address; ours is the device's GUID. */
static int soft_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	struct ibv_device_attr attr;

	if (port != 1 || index != 0)
		return REFUSE_NEG(EINVAL);
	softrnic_query_device(ctx, &attr);
	memset(gid, 0, sizeof(*gid));
	memcpy(gid->raw, &attr.node_guid, sizeof(attr.node_guid));
	return 0;
}

static int soft_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	if (port != 1 || index != 0)
		return REFUSE_NEG(EINVAL);
	*pkey = htobe16(0xffff);
	return 0;
}

static int soft_get_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey)
{
	return port == 1 && pkey == htobe16(0xffff) ? 0 : REFUSE_NEG(EINVAL);
}

static struct ibv_mr *soft_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				       int access)
{
	return softrnic_reg_mr_iova2(pd, addr, len, iova, (unsigned)access);
}

static struct ibv_mr *soft_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len,
					 uint64_t iova, int fd, int access)
{
	return REFUSE_NUL(EOPNOTSUPP);
}

static int soft_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t len,
			 int access)
{
	errno = EOPNOTSUPP;
	return IBV_REREG_MR_ERR_CMD;
}

static struct ibv_mr *soft_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	return REFUSE_NUL(EOPNOTSUPP);
}

static struct ibv_pd *soft_import_pd(struct ibv_context *ctx, uint32_t handle)
{
	return REFUSE_NUL(EOPNOTSUPP);
}

static struct ibv_dm *soft_import_dm(struct ibv_context *ctx, uint32_t handle)
{
	return REFUSE_NUL(EOPNOTSUPP);
}

/* Nothing was imported. */
static void soft_unimport_mr(struct ibv_mr *mr)
{
}

static void soft_unimport_pd(struct ibv_pd *pd)
{
}

static void soft_unimport_dm(struct ibv_dm *dm)
{
}

static int soft_resize_cq(struct ibv_cq *cq, int cqe)
{
	return EOPNOTSUPP;
}

/*
 * iWARP queue pairs are connected by rdma_cm alone. Such a one can be made and asked for what it
 * was granted, as on any iWARP device, but never leaves its first state.
 */
static struct ibv_qp *soft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return face_make_qp(pd, attr);
}

static int soft_destroy_qp(struct ibv_qp *qp)
{
	face_drop_qp(qp);
	return 0;
}

static struct ibv_qp_ex *soft_qp_to_qp_ex(struct ibv_qp *qp)
{
	return NULL;
}

static int soft_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}

static int soft_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return EOPNOTSUPP;
}

static int soft_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return EOPNOTSUPP;
}

static struct ibv_ah *soft_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	return REFUSE_NUL(EOPNOTSUPP);
}

static int soft_destroy_ah(struct ibv_ah *ah)
{
	return EOPNOTSUPP;
}

static int soft_init_ah_from_wc(struct ibv_context *ctx, uint8_t port, struct ibv_wc *wc,
				struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	return REFUSE_NEG(EOPNOTSUPP);
}

static struct ibv_ah *soft_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
					     struct ibv_grh *grh, uint8_t port)
{
	return REFUSE_NUL(EOPNOTSUPP);
}

static int soft_resolve_eth_l2_from_gid(struct ibv_context *ctx, struct ibv_ah_attr *attr,
					uint8_t mac[6], uint16_t *vid)
{
	return EOPNOTSUPP;
}

static int soft_reject_ece(struct rdma_cm_id *id, const void *pdata, uint8_t len)
{
	return softrnic_reject(id, pdata, len);
}

static int soft_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	return 0;
}

/* For queue pairs that rdma_cm does not know, which we do not have. */
static int soft_establish(struct rdma_cm_id *id)
{
	return REFUSE_NEG(EINVAL);
}

static int soft_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	return REFUSE_NEG(EOPNOTSUPP);
}

static int soft_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	return REFUSE_NEG(ENOSYS);
}

static int soft_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
				  void *context)
{
	return REFUSE_NEG(ENOSYS);
}

static int soft_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return REFUSE_NEG(EADDRNOTAVAIL);
}

static int soft_cm_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	return REFUSE_NEG(EOPNOTSUPP);
}

/* What the software RNIC has of its own. */
#define OWN(name)  .name = softrnic_##name
#define HERE(name) .name = soft_##name
const struct words soft_words = {
	.cm = {OWN(create_event_channel),
	       OWN(destroy_event_channel),
	       OWN(get_cm_event),
	       OWN(ack_cm_event),
	       OWN(create_id),
	       OWN(destroy_id),
	       OWN(migrate_id),
	       OWN(bind_addr),
	       OWN(resolve_addr),
	       OWN(resolve_route),
	       OWN(listen),
	       OWN(connect),
	       OWN(accept),
	       OWN(reject),
	       HERE(reject_ece),
	       OWN(disconnect),
	       OWN(create_qp_ex),
	       OWN(destroy_qp),
	       OWN(set_option),
	       HERE(notify),
	       HERE(establish),
	       HERE(init_qp_attr),
	       HERE(join_multicast),
	       HERE(join_multicast_ex),
	       HERE(leave_multicast),
	       .set_local_ece = soft_cm_ece,
	       .get_remote_ece = soft_cm_ece},
	.verbs = {HERE(close_device),
		  OWN(query_device),
		  HERE(query_port),
		  HERE(query_gid),
		  HERE(query_pkey),
		  HERE(get_pkey_index),
		  OWN(alloc_pd),
		  OWN(dealloc_pd),
		  OWN(reg_mr),
		  HERE(reg_mr_iova),
		  OWN(reg_mr_iova2),
		  HERE(reg_dmabuf_mr),
		  HERE(rereg_mr),
		  OWN(dereg_mr),
		  HERE(import_mr),
		  HERE(unimport_mr),
		  HERE(import_pd),
		  HERE(unimport_pd),
		  HERE(import_dm),
		  HERE(unimport_dm),
		  OWN(create_comp_channel),
		  OWN(destroy_comp_channel),
		  OWN(create_cq),
		  HERE(resize_cq),
		  OWN(destroy_cq),
		  OWN(get_cq_event),
		  OWN(ack_cq_events),
		  OWN(create_srq),
		  OWN(modify_srq),
		  OWN(query_srq),
		  OWN(destroy_srq),
		  HERE(create_qp),
		  HERE(qp_to_qp_ex),
		  OWN(modify_qp),
		  OWN(query_qp),
		  HERE(query_qp_data_in_order),
		  HERE(destroy_qp),
		  .query_ece = soft_ece,
		  .set_ece = soft_ece,
		  .attach_mcast = soft_mcast,
		  .detach_mcast = soft_mcast,
		  HERE(create_ah),
		  HERE(destroy_ah),
		  HERE(init_ah_from_wc),
		  HERE(create_ah_from_wc),
		  HERE(resolve_eth_l2_from_gid),
		  OWN(get_async_event),
		  OWN(ack_async_event)},
};
