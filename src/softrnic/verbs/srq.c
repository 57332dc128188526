/* SPDX-License-Identifier: BSD-3-Clause */
/* srq.c -- creates, modifies and destroys shared receive queues. */
#include <errno.h>
#include <stdlib.h>

#include "base/thread.h"
#include "softrnic/verbs/context.h"
#include "softrnic/verbs/device.h"
#include "softrnic/io/engine.h"
#include "softrnic/rnic/rnic.h"
#include "softrnic/softrnic.h"

static struct vsrq *vsrq_of(struct ibv_srq *ibv)
{
	return container_of(ibv, struct vsrq, srq.ibv);
}

static void vsrq_limit(struct srq *srq)
{
	async_raise(context_events(srq->ibv.context), IBV_EVENT_SRQ_LIMIT_REACHED, &srq->ibv);
}

struct ibv_srq *softrnic_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	const struct ibv_srq_attr *attr = &init->attr;
	struct vsrq *v;
	int ret;

	if (attr->max_wr < 1 || attr->max_wr > RNIC_MAX_SRQ_WR || attr->max_sge > RNIC_MAX_SGE) {
		errno = EINVAL;
		return NULL;
	}
	v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	ret = srq_init(&v->srq, attr->max_wr, attr->max_sge);
	if (ret) {
		free(v);
		errno = -ret;
		return NULL;
	}
	v->srq.ibv.context = pd->context;
	v->srq.ibv.pd = &vpd_of(pd)->ibv;
	v->srq.ibv.srq_context = init->srq_context;
	v->srq.limit_reached = vsrq_limit;
	v->generation = engine_generation();
	atomic_fetch_add(&vpd_of(pd)->users, 1);
	return &v->srq.ibv;
}

int softrnic_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	/* only the limit can be modified; many devices do not support resizing */
	if (mask & ~IBV_SRQ_LIMIT)
		return EOPNOTSUPP;
	if (mask & IBV_SRQ_LIMIT) {
		if (attr->srq_limit > vsrq_of(ibv)->srq.rq.depth)
			return EINVAL;
		srq_arm_limit(&vsrq_of(ibv)->srq, attr->srq_limit);
	}
	return 0;
}

int softrnic_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct srq *srq = &vsrq_of(ibv)->srq;

	pthread_mutex_lock(&srq->lock);
	*attr = (struct ibv_srq_attr){
		.max_wr = srq->rq.depth,
		.max_sge = srq->rq.max_sge,
		.srq_limit = srq->limit,
	};
	pthread_mutex_unlock(&srq->lock);
	return 0;
}

int softrnic_destroy_srq(struct ibv_srq *ibv)
{
	struct vsrq *v = vsrq_of(ibv);
	THREAD_NOT_CANCELLED;

	if (atomic_load(&v->users))
		return EBUSY;
	async_finish(context_events(ibv->context), ibv);
	if (atomic_load(&v->users)) /* a queue pair was created during the wait */
		return EBUSY;
	atomic_fetch_sub(&vpd_of(ibv->pd)->users, 1);
	srq_fini(&v->srq);
	free(v);
	return 0;
}

int verbs_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vsrq *v = vsrq_of(ibv);

	if (v->generation != engine_generation()) {
		*bad = wr;
		return ENODEV;
	}
	return srq_post(&v->srq, wr, bad);
}
