/* SPDX-License-Identifier: BSD-3-Clause */
/* id_qp.c -- queue pairs of ids. */
#include <errno.h>

#include "softrnic/verbs/id.h"
#include "softrnic/softrnic.h"

static uint32_t id_next_qp_num(void)
{
	static atomic_uint last;

	return atomic_fetch_add(&last, 1) % (QP_NUM_PLAIN - 2) + 2; /* verbs reserves 0 and 1 */
}

static int id_check_qp(const struct cmid *id, const struct ibv_pd *pd,
		       const struct ibv_qp_init_attr *attr)
{
	if (id->listener || id->pub.qp || !id->pub.verbs || !pd)
		return EINVAL;
	return qp_attr_check(attr);
}

static void id_publish_qp(struct cmid *id, struct ibv_qp *ibv)
{
	id->pub.qp = ibv;
	id->pub.pd = ibv->pd;
	id->pub.send_cq = ibv->send_cq;
	id->pub.recv_cq = ibv->recv_cq;
	id->pub.send_cq_channel = ibv->send_cq->channel;
	id->pub.recv_cq_channel = ibv->recv_cq->channel;
	id->pub.srq = ibv->srq;
}

/* asked->cap has what is granted afterwards. */
static int id_create_qp(struct cmid *id, struct ibv_pd *pd, struct ibv_qp_init_attr *asked)
{
	struct ibv_qp_init_attr attr = *asked;
	struct qp *qp;
	int err = id_check_qp(id, pd, &attr);

	qp_attr_grant(&attr);
	if (!err)
		err = -id_need_conn(id);
	if (!err)
		err = -qp_build(id->conn, pd, &attr, id_next_qp_num(), NULL, &qp);
	if (err)
		return id_errno(err);
	qp_count_users(qp_ibv(qp), 1);
	qp_attach(id->conn, qp_ibv(qp), &attr, &id->places);
	id_publish_qp(id, qp_ibv(qp));
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
	struct ibv_qp used = {.pd = ibv->pd,
			      .send_cq = ibv->send_cq,
			      .recv_cq = ibv->recv_cq,
			      .srq = ibv->srq}; /* outlives it */

	if (!id_is_removed(id)) /* else locks inside may be held by threads that are not here */
		qp_delete(qp_detach(id->conn, ibv, &id->places));
	qp_count_users(&used, -1); /* its queues may be destroyed now */
	id->pub.qp = NULL;
}

void softrnic_destroy_qp(struct rdma_cm_id *pub)
{
	if (pub->qp)
		id_destroy_qp(cmid_of(pub));
}
