/* SPDX-License-Identifier: BSD-3-Clause */
/* queues.c -- queue pairs and shared receive queues of ids, and queues nobody asked for by name. */
#include <errno.h>
#include <string.h>

#include "interposer/face.h"

static int make_cq(struct face *f, uint32_t depth, struct ibv_comp_channel **ch, struct ibv_cq **cq)
{
	*ch = ibv_create_comp_channel(f->pub.verbs);
	if (!*ch)
		return -1;
	*cq = ibv_create_cq(f->pub.verbs, (int)depth, &f->pub, *ch, 0);
	if (*cq)
		return 0;
	ibv_destroy_comp_channel(*ch);
	*ch = NULL;
	return -1;
}

static void drop_cq(struct ibv_comp_channel **ch, struct ibv_cq **cq)
{
	ibv_destroy_cq(*cq);
	ibv_destroy_comp_channel(*ch);
	*cq = NULL;
	*ch = NULL;
}

void face_drop_cqs(struct face *f)
{
	if (f->own_send_cq)
		drop_cq(&f->pub.send_cq_channel, &f->pub.send_cq);
	if (f->own_recv_cq)
		drop_cq(&f->pub.recv_cq_channel, &f->pub.recv_cq);
	f->own_send_cq = f->own_recv_cq = false;
}

/* A queue of depth 0 is none of verbs', but an end that only receives is an end. */
static uint32_t depth_of(uint32_t wanted)
{
	return wanted ? wanted : 1;
}

int face_make_cqs(struct face *f, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *id = &f->pub;

	if (!attr->send_cq) {
		if (make_cq(f, depth_of(attr->cap.max_send_wr), &id->send_cq_channel, &id->send_cq))
			return -1;
		f->own_send_cq = true;
		attr->send_cq = id->send_cq;
	}
	if (attr->recv_cq)
		return 0;
	if (make_cq(f, depth_of(attr->cap.max_recv_wr), &id->recv_cq_channel, &id->recv_cq)) {
		face_drop_cqs(f);
		return -1;
	}
	f->own_recv_cq = true;
	attr->recv_cq = id->recv_cq;
	return 0;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct face *f = face_of(id);
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
	if (face_make_cqs(f, attr))
		return -1;
	WORDS_SCOPE w = f->words;
	ret = w->cm.create_qp_ex(f->inner, attr);
	if (ret) {
		words_errno(&w);
		ret = errno;
		face_drop_cqs(f);
		*attr = asked; /* nothing of what is gone */
		return REFUSE_NEG(ret);
	}
	id->pd = attr->pd;
	face_set_qp(f, f->inner->qp);
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
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
		.pd = pd ? pd : id->pd,
	};
	int ret = rdma_create_qp_ex(id, &ex);

	if (ret)
		return ret;
	attr->cap = ex.cap;
	attr->send_cq = ex.send_cq; /* which may have been made just now */
	attr->recv_cq = ex.recv_cq;
	attr->srq = ex.srq;
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct face *f = face_of(id);
	bool had = id->qp;

	face_set_qp(f, NULL);
	if (had)
		f->words->cm.destroy_qp(f->inner);
	face_drop_cqs(f);
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	bool typed = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE;
	struct ibv_pd *pd = attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? attr->pd : id->pd;
	struct ibv_srq_init_attr basic = {.srq_context = attr->srq_context, .attr = attr->attr};

	if (!id->verbs || id->srq || !pd || pd->context != id->verbs)
		return REFUSE_NEG(EINVAL);
	if (typed && attr->srq_type != IBV_SRQT_BASIC)
		return REFUSE_NEG(EOPNOTSUPP);
	id->srq = ibv_create_srq(pd, &basic);
	if (!id->srq)
		return -1;
	id->pd = pd;
	return 0;
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

	return rdma_create_srq_ex(id, &ex);
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id->srq)
		ibv_destroy_srq(id->srq);
	id->srq = NULL;
}
