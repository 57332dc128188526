/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_make.c -- queue pairs of ids: made, attached to their connection, drained and ended. */
#include <errno.h>
#include <string.h>

#include "softrnic/io/config.h"
#include "softrnic/verbs/device.h"
#include "softrnic/verbs/id.h"
#include "softrnic/rnic/rnic.h"
#include "softrnic/softrnic.h"

enum { MIN_INLINE = 64 };

static struct vcq *vcq_of(struct ibv_cq *ibv)
{
	return ibv ? container_of(ibv, struct vcq, cq.ibv) : NULL;
}

static struct vsrq *vsrq_of(struct ibv_srq *ibv)
{
	return ibv ? container_of(ibv, struct vsrq, srq.ibv) : NULL;
}

/* Called by the connection, with its lock. */
static void qp_owner_async(void *owner, enum ibv_event_type event)
{
	if (event == IBV_EVENT_QP_ACCESS_ERR)
		conn_on_access_error(owner);
	device_async(event, conn_qp(owner));
}

static uint32_t qp_next_num(void)
{
	static atomic_uint last;

	return (atomic_fetch_add(&last, 1) % 0xffffff) + 1; /* 24 bits, never 0 */
}

static bool qp_cap_is_valid(const struct ibv_qp_cap *cap, bool srq)
{
	return cap->max_send_wr <= RNIC_MAX_QP_WR && (srq || cap->max_recv_wr <= RNIC_MAX_QP_WR) &&
	       cap->max_send_sge <= RNIC_MAX_SGE && (srq || cap->max_recv_sge <= RNIC_MAX_SGE) &&
	       cap->max_inline_data <= RNIC_MAX_INLINE;
}

static int qp_attr_check(struct cmid *id, const struct ibv_qp_init_attr *attr,
			 const struct ibv_pd *pd)
{
	if (id->listener || id->pub.qp || !id->pub.verbs || !pd)
		return EINVAL;
	if (attr->qp_type != IBV_QPT_RC)
		return EOPNOTSUPP;
	if (!attr->send_cq || !attr->recv_cq)
		return EINVAL;
	return qp_cap_is_valid(&attr->cap, attr->srq) ? 0 : EINVAL;
}

static int qp_build(struct conn *c, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr,
		    struct qp **out)
{
	struct qp_config cfg = {
		.mrs = device_mrs(),
		.pd = pd,
		.send_cq = &vcq_of(attr->send_cq)->cq,
		.recv_cq = &vcq_of(attr->recv_cq)->cq,
		.srq = attr->srq ? &vsrq_of(attr->srq)->srq : NULL,
		.qp_num = qp_next_num(),
		.cap = attr->cap,
		.sq_sig_all = attr->sq_sig_all,
		.peer_rfc7306 = config_get()->peer_rfc7306,
		.strict_persist = config_get()->strict_persist,
		.async = qp_owner_async,
	};
	int ret;

	conn_serve_qp(c, &cfg);
	ret = qp_new(&cfg, out);
	if (!ret) {
		struct ibv_qp *ibv = qp_ibv(*out);

		ibv->context = pd->context;
		ibv->qp_context = attr->qp_context;
		ibv->pd = pd;
		ibv->send_cq = attr->send_cq;
		ibv->recv_cq = attr->recv_cq;
		ibv->srq = attr->srq;
		ibv->qp_num = cfg.qp_num;
		ibv->qp_type = IBV_QPT_RC;
	}
	return ret;
}

static void qp_count_users(const struct ibv_qp *ibv, int by)
{
	atomic_fetch_add(&container_of(ibv->pd, struct vpd, ibv)->users, (unsigned)by);
	atomic_fetch_add(&vcq_of(ibv->send_cq)->users, (unsigned)by);
	atomic_fetch_add(&vcq_of(ibv->recv_cq)->users, (unsigned)by);
	if (ibv->srq)
		atomic_fetch_add(&vsrq_of(ibv->srq)->users, (unsigned)by);
}

static void qp_attach(struct cmid *id, struct qp *qp, const struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *ibv = qp_ibv(qp);
	struct vcq *send_cq = vcq_of(ibv->send_cq), *recv_cq = vcq_of(ibv->recv_cq);
	struct conn_attachment with = {
		.qp = qp,
		.granted = attr,
		.stall = container_of(ibv->pd, struct vpd, ibv)->stall,
		.waiting = {&send_cq->waiting, recv_cq != send_cq ? &recv_cq->waiting : NULL},
	};

	qp_count_users(ibv, 1);
	conn_attach_qp(id->conn, &with);
	vcq_attach(send_cq, &id->on_send_cq, id->conn);
	if (recv_cq != send_cq)
		vcq_attach(recv_cq, &id->on_recv_cq, id->conn);
	id->pub.qp = ibv;
	id->pub.pd = ibv->pd;
	id->pub.send_cq = ibv->send_cq;
	id->pub.recv_cq = ibv->recv_cq;
	id->pub.send_cq_channel = ibv->send_cq->channel;
	id->pub.recv_cq_channel = ibv->recv_cq->channel;
	id->pub.srq = ibv->srq;
}

/* More may be granted than was asked for; asked->cap has it afterwards. */
static int id_create_qp(struct cmid *id, struct ibv_pd *pd, struct ibv_qp_init_attr *asked)
{
	struct ibv_qp_init_attr attr = *asked;
	struct qp *qp;
	int err = qp_attr_check(id, &attr, pd);

	/* Devices grant some inline data where none is asked for, and programs rely on it. */
	if (attr.cap.max_inline_data < MIN_INLINE)
		attr.cap.max_inline_data = MIN_INLINE;
	if (!err)
		err = -id_need_conn(id);
	if (!err)
		err = -qp_build(id->conn, pd, &attr, &qp);
	if (err)
		return id_errno(err);
	qp_attach(id, qp, &attr);
	asked->cap = attr.cap;
	return 0;
}

/*
 * The members that follow the protection domain are for optional features, which this device lacks.
 * create_flags of 0 request none.
 */
static bool qp_attr_is_unsupported(const struct ibv_qp_init_attr_ex *ex)
{
	uint32_t known = IBV_QP_INIT_ATTR_PD;

	if (ex->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && !ex->create_flags)
		known |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	return ex->comp_mask & ~known;
}

/* Only members that comp_mask names are set; the others may be uninitialized. */
int softrnic_create_qp_ex(struct rdma_cm_id *pub, struct ibv_qp_init_attr_ex *ex)
{
	struct cmid *id = cmid_of(pub);
	struct ibv_qp_init_attr attr = {
		.qp_context = ex->qp_context,
		.send_cq = ex->send_cq,
		.recv_cq = ex->recv_cq,
		.srq = ex->srq,
		.cap = ex->cap,
		.qp_type = ex->qp_type,
		.sq_sig_all = ex->sq_sig_all,
	};
	int ret;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (qp_attr_is_unsupported(ex))
		return id_errno(EOPNOTSUPP);
	ret = id_create_qp(id, ex->comp_mask & IBV_QP_INIT_ATTR_PD ? ex->pd : pub->pd, &attr);
	ex->cap = attr.cap;
	return ret;
}

void id_destroy_qp(struct cmid *id)
{
	struct ibv_qp *ibv = id->pub.qp;
	struct qp *qp;
	struct ibv_qp used = {.pd = ibv->pd,
			      .send_cq = ibv->send_cq,
			      .recv_cq = ibv->recv_cq,
			      .srq = ibv->srq}; /* outlives it */

	if (id_is_removed(id)) { /* locks inside may be held by threads that are not here */
		qp_count_users(ibv, -1);
		id->pub.qp = NULL;
		return;
	}
	conn_leave_cqs(id->conn);
	vcq_detach(vcq_of(ibv->send_cq), &id->on_send_cq);
	vcq_detach(vcq_of(ibv->recv_cq), &id->on_recv_cq);
	qp = conn_detach_qp(id->conn);
	device_async_cancel(ibv);
	qp_delete(qp);
	qp_count_users(&used, -1); /* its queues may be destroyed now */
	id->pub.qp = NULL;
}

void softrnic_destroy_qp(struct rdma_cm_id *pub)
{
	if (pub->qp)
		id_destroy_qp(cmid_of(pub));
}
