/* SPDX-License-Identifier: BSD-3-Clause */
/* id_qp.c -- creates and destroys the queue pairs of ids. */
#include <errno.h>

#include "base/thread.h"
#include "softrnic/verbs/context.h"
#include "softrnic/verbs/id.h"
#include "softrnic/verbs/id_qp_num.h"
#include "softrnic/verbs/qp_ex.h"
#include "softrnic/verbs/ud_qp.h"
#include "softrnic/softrnic.h"

static int id_check_qp(const struct cmid *id, const struct ibv_pd *pd,
		       const struct ibv_qp_init_attr *attr)
{
	if (id->listener || id->pub.qp || id->external.qp || !id->pub.verbs || !pd)
		return EINVAL;
	if (!id_is_datagram(id))
		return qp_attr_check(attr);
	return attr->qp_type == IBV_QPT_UD ? 0 : EINVAL;
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

/* Build the queue pair and its builder of work requests. Returns 0 or -errno. */
static int id_build_qp(struct cmid *id, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr,
		       uint64_t ops, struct qp **qp)
{
	uint32_t num;
	int ret = id_qp_num_take(&num);

	if (ret)
		return ret;
	ret = qp_build(id->conn, pd, attr, num, NULL, qp);
	if (ret)
		goto give_num;
	ret = qp_ex_begin(qp_ibv(*qp), ops, &attr->cap);
	if (ret)
		goto delete_qp;
	return 0;
delete_qp:
	qp_delete(*qp);
give_num:
	id_qp_num_give(num);
	return ret;
}

/* Move the queue pair of an id for datagrams to RTS, so that it is ready for use. Returns 0 or an
 * errno value. */
static int id_move_datagram_qp(struct ibv_qp *ibv)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = RDMA_UDP_QKEY};
	int err = softrnic_modify_qp(ibv, &attr,
				     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = softrnic_modify_qp(ibv, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	return err ? err : softrnic_modify_qp(ibv, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static int id_make_datagram_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint64_t ops,
			       struct ibv_qp **out)
{
	struct ibv_qp *ibv = vud_new(pd, attr, ops, &attr->cap);
	int err = ibv ? id_move_datagram_qp(ibv) : errno;

	if (ibv && err)
		vud_delete(ibv);
	*out = ibv;
	return err;
}

int id_make_qp(struct cmid *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint64_t ops,
	       struct ibv_qp **out)
{
	struct qp *qp;
	int err;

	qp_attr_grant(attr);
	err = -id_need_conn(id);
	if (!err)
		err = -id_build_qp(id, pd, attr, ops, &qp);
	if (err)
		return err;
	qp_count_users(qp_ibv(qp), 1);
	qp_attach(id->conn, qp_ibv(qp), attr, &id->places);
	*out = qp_ibv(qp);
	return 0;
}

/* Create the queue pair. asked->cap receives the granted capabilities. */
static int id_create_qp(struct cmid *id, struct ibv_pd *pd, struct ibv_qp_init_attr *asked,
			uint64_t ops)
{
	struct ibv_qp_init_attr attr = *asked;
	struct ibv_qp *ibv;
	int err = id_check_qp(id, pd, &attr);

	if (!err && id_is_datagram(id))
		err = id_make_datagram_qp(pd, &attr, ops, &ibv);
	else if (!err)
		err = id_make_qp(id, pd, &attr, ops, &ibv);
	if (err)
		return id_errno(err);
	id_publish_qp(id, ibv);
	asked->cap = attr.cap;
	return 0;
}

int softrnic_create_qp_ex(struct rdma_cm_id *pub, struct ibv_qp_init_attr_ex *ex)
{
	struct cmid *id = cmid_of(pub);
	struct ibv_qp_init_attr attr;
	uint64_t ops;
	int ret;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	ret = qp_ex_attr(ex, &attr, &ops);
	if (ret)
		return id_errno(ret);
	ret = id_create_qp(id, ex->comp_mask & IBV_QP_INIT_ATTR_PD ? ex->pd : pub->pd, &attr, ops);
	ex->cap = attr.cap;
	return ret;
}

void id_end_qp(struct cmid *id, struct ibv_qp *ibv)
{
	struct ibv_qp used = qp_uses(ibv);
	struct async_events *events = context_events(ibv->context);
	struct async_stop stop;
	struct qp *qp = NULL;
	THREAD_NOT_CANCELLED;

	async_stop(events, &stop, ibv);
	qp_ex_end(ibv);
	if (!id_is_removed(id)) /* in a forked child inner locks may be held for ever */
		qp = qp_detach(id->conn, ibv, &id->places);
	async_forget(events, &stop);
	qp_delete(qp);
	qp_count_users(&used, -1); /* from here on the user may destroy the CQs and the SRQ */
	id_qp_num_give(used.qp_num);
}

void id_destroy_qp(struct cmid *id)
{
	if (vud_is(id->pub.qp))
		softrnic_destroy_plain_qp(id->pub.qp);
	else
		id_end_qp(id, id->pub.qp);
	id->pub.qp = NULL;
}

void softrnic_destroy_qp(struct rdma_cm_id *pub)
{
	if (pub->qp)
		id_destroy_qp(cmid_of(pub));
}
