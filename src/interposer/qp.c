/* SPDX-License-Identifier: BSD-3-Clause */
/* qp.c -- queue pairs and shared receive queues of ids, and completion queues that are made for an
 * id. */
#include <errno.h>

#include "interposer/shim_id.h"
#include "softrnic/softrnic.h"

static int qp_make_cq(struct shim_id *s, uint32_t depth, struct ibv_comp_channel **ch,
		      struct ibv_cq **cq)
{
	OPS_SCOPE ops = ops_of(s->pub.verbs);

	*ch = ops->verbs.create_comp_channel(s->pub.verbs);
	if (!*ch)
		return -1;
	*cq = ops->verbs.create_cq(s->pub.verbs, (int)depth, &s->pub, *ch, 0);
	if (*cq)
		return 0;
	ops->verbs.destroy_comp_channel(*ch);
	*ch = NULL;
	return -1;
}

static void qp_drop_cq(const struct ops *ops, struct ibv_comp_channel **ch, struct ibv_cq **cq)
{
	ops->verbs.destroy_cq(*cq);
	ops->verbs.destroy_comp_channel(*ch);
	*cq = NULL;
	*ch = NULL;
}

static void qp_drop_cqs(struct shim_id *s)
{
	if (s->own_send_cq)
		qp_drop_cq(ops_of(s->pub.verbs), &s->pub.send_cq_channel, &s->pub.send_cq);
	if (s->own_recv_cq)
		qp_drop_cq(ops_of(s->pub.verbs), &s->pub.recv_cq_channel, &s->pub.recv_cq);
	s->own_send_cq = s->own_recv_cq = false;
}

/* Returns the size of a completion queue. It is at least 1, also at an end that only receives and
 * needs no entry for sends. */
static uint32_t qp_cq_depth(uint32_t wanted)
{
	return wanted ? wanted : 1;
}

/* Make the completion queues that the program did not pass. */
static int qp_make_cqs(struct shim_id *s, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *id = &s->pub;

	if (!attr->send_cq) {
		if (qp_make_cq(s, qp_cq_depth(attr->cap.max_send_wr), &id->send_cq_channel,
			       &id->send_cq))
			return -1;
		s->own_send_cq = true;
		attr->send_cq = id->send_cq;
	}
	if (attr->recv_cq)
		return 0;
	if (qp_make_cq(s, qp_cq_depth(attr->cap.max_recv_wr), &id->recv_cq_channel, &id->recv_cq)) {
		qp_drop_cqs(s);
		return -1;
	}
	s->own_recv_cq = true;
	attr->recv_cq = id->recv_cq;
	return 0;
}

static int qp_create(struct shim_id *s, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *id = &s->pub;
	struct ibv_qp_init_attr_ex asked;
	int ret;

	if (!id->verbs || id->qp)
		return REFUSE_NEG(EINVAL);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD)) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	if (!attr->pd || attr->pd->context != id->verbs)
		return REFUSE_NEG(EINVAL);
	if (!attr->srq)
		attr->srq = id->srq;
	asked = *attr;
	if (qp_make_cqs(s, attr))
		return -1;
	OPS_SCOPE ops = s->ops;
	ret = ops->cm.create_qp_ex(s->inner, attr);
	if (ret) {
		ops_copy_errno(&ops);
		ret = errno;
		qp_drop_cqs(s);
		/* after a failure the program's attributes must not point to a destroyed object */
		*attr = asked;
		return REFUSE_NEG(ret);
	}
	id->pd = attr->pd;
	shim_id_set_qp(s, s->inner->qp);
	return 0;
}

int shim_qp_create(struct shim_id *s, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd ? pd : s->pub.pd,
	};
	int ret = qp_create(s, &ex);

	if (ret)
		return ret;
	attr->cap = ex.cap;
	attr->send_cq = ex.send_cq; /* shim_qp_create_ex() may have made these queues */
	attr->recv_cq = ex.recv_cq;
	attr->srq = ex.srq;
	return 0;
}

void shim_qp_destroy(struct shim_id *s)
{
	if (s->pub.qp) {
		shim_id_drop_qp(s);
		s->ops->cm.destroy_qp(s->inner); /* its events may use s->pub.qp meanwhile */
		s->pub.qp = NULL;
	}
	qp_drop_cqs(s);
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	return qp_create(shim_id_of(id), attr);
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return shim_qp_create(shim_id_of(id), pd, attr);
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	shim_qp_destroy(shim_id_of(id));
}

static int qp_create_srq(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	bool typed = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE;
	struct ibv_pd *pd = attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? attr->pd : id->pd;
	OPS_SCOPE ops = &softrnic_ops;
	struct ibv_srq_init_attr basic = {.srq_context = attr->srq_context, .attr = attr->attr};

	if (!id->verbs || id->srq || !pd || pd->context != id->verbs)
		return REFUSE_NEG(EINVAL);
	if (typed && attr->srq_type != IBV_SRQT_BASIC)
		return REFUSE_NEG(EOPNOTSUPP);
	ops = ops_of(id->verbs);
	id->srq = ops->verbs.create_srq(pd, &basic);
	if (!id->srq)
		return -1;
	id->pd = pd;
	return 0;
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	return qp_create_srq(id, attr);
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
		.pd = pd ? pd : id->pd,
	};

	return qp_create_srq(id, &ex);
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id->srq)
		ops_of(id->verbs)->verbs.destroy_srq(id->srq);
	id->srq = NULL;
}
