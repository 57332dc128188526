/* SPDX-License-Identifier: BSD-3-Clause */
/* queues.c -- the CQs and the QP of a connection. */
#include "rpma/queues.h"

#include "rpma/err.h"
#include "rpma/srq.h"

/* Greatest length of inline data: the 8 bytes of an atomic write are sent in the work request. */
enum { MAX_INLINE = RPMA_ATOMIC_WRITE_ALIGNMENT };

static int queues_create_cqs(struct queues *q, const struct provider *prov, struct ibv_context *ctx,
			     const struct rpma_conn_cfg *cfg, bool own_rcq)
{
	uint32_t rcq_size = atomic_load(&cfg->rcq_size);
	struct rpma_cq *common = atomic_load(&cfg->cq);
	int ret;

	if (atomic_load(&cfg->compl_channel)) {
		q->shared_channel = prov->create_comp_channel(ctx);
		if (!q->shared_channel)
			return PROVIDER_FAILED(errno, "%s", "ibv_create_comp_channel()");
	}
	if (common) {
		atomic_fetch_add(&common->users, 1);
		q->cq = common;
		ret = 0;
	} else {
		ret = cq_new(prov, ctx, atomic_load(&cfg->cq_size), q->shared_channel, &q->cq);
	}
	if (!ret && rcq_size && own_rcq)
		ret = cq_new(prov, ctx, rcq_size, q->shared_channel, &q->rcq);
	return ret;
}

static int queues_create_qp(struct queues *q, const struct rpma_peer *peer, struct rdma_cm_id *id,
			    const struct rpma_conn_cfg *cfg, const struct rpma_srq *srq)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = q->cq->ibv,
		.recv_cq = q->rcq ? q->rcq->ibv : q->cq->ibv,
		.cap = {.max_send_wr = atomic_load(&cfg->sq_size),
			.max_recv_wr = atomic_load(&cfg->rq_size),
			.max_send_sge = peer->can.send_sge,
			.max_recv_sge = 1,
			.max_inline_data = MAX_INLINE},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = peer->pd,
	};

	if (srq) {
		attr.srq = srq->ibv;
		if (srq->rcq)
			attr.recv_cq = srq->rcq->ibv;
	}
	if (peer->prov->create_qp_ex(id, &attr))
		return PROVIDER_FAILED(errno, "rdma_create_qp_ex(max_send_wr=%u, max_recv_wr=%u)",
				       attr.cap.max_send_wr, attr.cap.max_recv_wr);
	q->sq_size = attr.cap.max_send_wr;
	q->max_send_sge = attr.cap.max_send_sge;
	return 0;
}

/* Refuse settings that contradict each other. */
static int queues_check(const struct rpma_conn_cfg *cfg, bool srq_has_rcq,
			const struct ibv_context *ctx)
{
	const struct rpma_cq *common = atomic_load(&cfg->cq);
	bool channel = atomic_load(&cfg->compl_channel);

	if (srq_has_rcq && channel) {
		LOG_ERROR("a shared receive queue with a completion queue of its own cannot take "
			  "part in a shared completion channel");
		return RPMA_E_INVAL;
	}
	if (common && channel) {
		LOG_ERROR("a completion queue of several connections has a channel of its own and "
			  "cannot take part in a shared one");
		return RPMA_E_INVAL;
	}
	if (common && common->ibv->context != ctx) {
		LOG_ERROR("the completion queue is on another device than the connection");
		return RPMA_E_INVAL;
	}
	return 0;
}

int queues_init(struct queues *q, const struct rpma_peer *peer, struct rdma_cm_id *id,
		const struct rpma_conn_cfg *cfg)
{
	const struct rpma_srq *srq = atomic_load(&cfg->srq);
	bool srq_has_rcq = srq && srq->rcq;
	int ret = queues_check(cfg, srq_has_rcq, id->verbs);

	*q = (struct queues){0};
	if (ret)
		return ret;
	ret = queues_create_cqs(q, peer->prov, id->verbs, cfg, !srq_has_rcq);
	if (!ret)
		ret = queues_create_qp(q, peer, id, cfg, srq);
	if (ret)
		queues_fini(q, peer->prov, id);
	return ret;
}

/* Release a queue. A common queue is not destroyed, because it may contain completions of this
 * connection. */
static int queues_release_cq(struct rpma_cq **cq_ptr)
{
	struct rpma_cq *cq = *cq_ptr;

	if (!cq || !cq->is_common)
		return cq_delete(cq_ptr);
	atomic_fetch_sub(&cq->users, 1);
	*cq_ptr = NULL;
	return 0;
}

int queues_fini(struct queues *q, const struct provider *prov, struct rdma_cm_id *id)
{
	int ret, err;

	if (id->qp)
		prov->destroy_qp(id);
	ret = cq_delete(&q->rcq);
	ret = first_error(ret, queues_release_cq(&q->cq));
	if (!q->shared_channel)
		return ret;
	err = prov->destroy_comp_channel(q->shared_channel);
	q->shared_channel = NULL;
	if (err)
		ret = first_error(ret, PROVIDER_FAILED(err, "%s", "ibv_destroy_comp_channel()"));
	return ret;
}
