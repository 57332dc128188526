/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/verbs/id_external.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/rand.h"
#include "softrnic/io/config.h"
#include "softrnic/io/link_sockaddr.h"
#include "softrnic/rnic/rnic.h"
#include "softrnic/softrnic.h"
#include "softrnic/verbs/context.h"
#include "softrnic/verbs/gid.h"
#include "softrnic/verbs/id.h"

#define EXTERNAL_ACCESS                                                                            \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define EXTERNAL_HOP_LIMIT 64
/* 4.096 us << 18 is about 1 s: the peer's process gets the CPU within this time, even on a busy
 * host. */
#define EXTERNAL_TIMEOUT 18
#define EXTERNAL_RETRIES 7

/* --- the connection's own queue pair ---------------------------------------------------------- */

static void external_drop_queues(struct ibv_pd *pd, struct ibv_cq *cq)
{
	if (cq)
		softrnic_destroy_cq(cq);
	if (pd)
		softrnic_dealloc_pd(pd);
}

static int external_make_qp(struct cmid *id)
{
	struct ibv_context *ctx = id->pub.verbs;
	struct ibv_pd *pd = softrnic_alloc_pd(ctx);
	struct ibv_cq *cq = pd ? softrnic_create_cq(ctx, 4, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	int err = cq ? id_make_qp(id, pd, &attr, 0, &id->external.qp) : errno;

	if (err)
		external_drop_queues(pd, cq);
	else
		/* no program sees this queue pair, so none could acknowledge its events */
		async_stop(context_events(ctx), &id->external.quiet, id->external.qp);
	return err;
}

void id_external_end(struct cmid *id)
{
	struct ibv_qp *qp = id->external.qp;
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	if (!qp)
		return;
	pd = qp->pd;
	cq = qp->send_cq;
	id->external.qp = NULL;
	async_forget(context_events(qp->context), &id->external.quiet);
	id_end_qp(id, qp);
	external_drop_queues(pd, cq);
}

/* --- names ------------------------------------------------------------------------------------ */

static uint32_t external_psn(struct cmid *id)
{
	if (!id->external.has_psn) {
		rand_bytes(&id->external.psn, sizeof(id->external.psn));
		id->external.psn &= CM_QP_MAX;
		id->external.has_psn = true;
	}
	return id->external.psn;
}

/* Find the row of the id's own address. Returns 0, or EADDRNOTAVAIL: the table has no such row. */
static int external_find_gid(const struct cmid *id, union ibv_gid *gid, uint8_t *index)
{
	struct link_addr own = link_addr_from(&id->pub.route.addr.src_addr);
	int row;

	*gid = gid_of_addr(&own);
	row = gids_find(gid);
	if (row < 0)
		return EADDRNOTAVAIL;
	*index = (uint8_t)row;
	return 0;
}

int id_external_begin(struct cmid *id, uint32_t qpn, struct stream_params *params)
{
	struct cm_qp name = {.datagram = id_is_datagram(id), .qpn = qpn, .psn = external_psn(id)};
	union ibv_gid gid;
	uint8_t index;
	int err = config_get()->roce ? external_find_gid(id, &gid, &index) : EOPNOTSUPP;

	if (!err && (name.qpn > CM_QP_MAX || params->pdata_len > STREAM_PDATA_MAX - CM_QP_LEN))
		err = EINVAL;
	if (!err && !id->external.qp)
		err = external_make_qp(id);
	if (err)
		return err;
	memcpy(name.gid, gid.raw, sizeof(name.gid));
	memmove(params->pdata + CM_QP_LEN, params->pdata, params->pdata_len);
	(void)cm_qp_encode(params->pdata, CM_QP_LEN, &name);
	params->pdata_len += CM_QP_LEN;
	id->external.on = true;
	return 0;
}

bool id_external_take(struct cmid *id, struct stream_params *params)
{
	/* For a device of type iWARP all private data belong to the program. */
	if (!config_get()->roce)
		return false;
	if (cm_qp_decode(params->pdata, params->pdata_len, &id->external.peer) < 0)
		return false;
	params->pdata_len -= CM_QP_LEN;
	memmove(params->pdata, params->pdata + CM_QP_LEN, params->pdata_len);
	id->external.has_peer = true;
	return true;
}

int softrnic_establish(struct rdma_cm_id *pub)
{
	struct cmid *id = cmid_of(pub);

	if (id_is_removed(id))
		return id_errno(ENODEV);
	/* The peer needs no message: its queue pair waits for this one. */
	return id_errno(id->external.on && id->external.has_peer && !id->passive ? 0 : EINVAL);
}

/* --- attributes ------------------------------------------------------------------------------- */

static int external_to_init(struct ibv_qp_attr *attr)
{
	attr->port_num = 1;
	attr->qp_access_flags = EXTERNAL_ACCESS;
	return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

int id_external_path(const struct cmid *id, struct ibv_ah_attr *ah)
{
	struct link_addr to = link_addr_from(&id->pub.route.addr.dst_addr);
	union ibv_gid own;

	ah->is_global = 1;
	ah->port_num = 1;
	ah->grh.hop_limit = EXTERNAL_HOP_LIMIT;
	ah->grh.dgid = gid_of_addr(&to);
	if (id->external.has_peer)
		memcpy(&ah->grh.dgid, id->external.peer.gid, sizeof(ah->grh.dgid));
	return external_find_gid(id, &own, &ah->grh.sgid_index);
}

static int external_to_rtr(const struct cmid *id, struct ibv_qp_attr *attr)
{
	attr->path_mtu = IBV_MTU_4096;
	attr->dest_qp_num = id->external.peer.qpn;
	attr->rq_psn = id->external.peer.psn;
	attr->max_dest_rd_atomic = RNIC_MAX_RD_ATOM;
	return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static int external_to_rts(struct cmid *id, struct ibv_qp_attr *attr)
{
	attr->timeout = id->has_ack_timeout ? id->ack_timeout : EXTERNAL_TIMEOUT;
	attr->retry_cnt = EXTERNAL_RETRIES;
	attr->rnr_retry = EXTERNAL_RETRIES;
	attr->sq_psn = external_psn(id);
	attr->max_rd_atomic = RNIC_MAX_RD_ATOM;
	return IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
	       IBV_QP_MAX_QP_RD_ATOMIC;
}

/* For a device of type iWARP the moves before RTS have one attribute, and the move to RTS has
 * none. */
static int external_to_iwarp(enum ibv_qp_state to, struct ibv_qp_attr *attr)
{
	if (to == IBV_QPS_RTS)
		return 0;
	attr->qp_access_flags = EXTERNAL_ACCESS;
	return IBV_QP_ACCESS_FLAGS;
}

static int external_attr(struct cmid *id, enum ibv_qp_state to, struct ibv_qp_attr *attr, int *mask)
{
	int err = 0;

	if (!config_get()->roce) {
		*mask |= external_to_iwarp(to, attr);
	} else if (to == IBV_QPS_INIT) {
		*mask |= external_to_init(attr);
	} else if (to == IBV_QPS_RTR) {
		*mask |= external_to_rtr(id, attr);
		err = id_external_path(id, &attr->ah_attr);
	} else {
		*mask |= external_to_rts(id, attr);
	}
	return err;
}

int softrnic_init_qp_attr(struct rdma_cm_id *pub, struct ibv_qp_attr *attr, int *mask)
{
	struct cmid *id = cmid_of(pub);
	enum ibv_qp_state to = attr->qp_state;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (id_is_datagram(id))
		return id_errno(EOPNOTSUPP);
	if (!pub->verbs || (to != IBV_QPS_INIT && to != IBV_QPS_RTR && to != IBV_QPS_RTS))
		return id_errno(EINVAL);
	/* The peer's number comes with its request or its reply. */
	if (to != IBV_QPS_INIT && !pub->qp && !id->external.has_peer)
		return id_errno(EINVAL);
	*attr = (struct ibv_qp_attr){.qp_state = to};
	*mask = IBV_QP_STATE;
	return id_errno(external_attr(id, to, attr, mask));
}
