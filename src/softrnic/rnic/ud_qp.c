/* SPDX-License-Identifier: BSD-3-Clause */
/* ud_qp.c -- creates, moves and deletes queue pairs for datagrams. */
#include <errno.h>
#include <stdlib.h>

#include "softrnic/rnic/ud_qp_impl.h"

static void ud_fill(struct ud_qp *qp)
{
	const struct ud_qp_config *cfg = &qp->cfg;

	qp->ibv.context = cfg->pd->context;
	qp->ibv.pd = cfg->pd;
	qp->ibv.send_cq = &cfg->send_cq->ibv;
	qp->ibv.recv_cq = &cfg->recv_cq->ibv;
	qp->ibv.srq = cfg->srq ? &cfg->srq->ibv : NULL;
	qp->ibv.qp_num = cfg->qp_num;
	qp->ibv.handle = cfg->qp_num;
	qp->ibv.qp_type = IBV_QPT_UD;
	qp->ibv.state = IBV_QPS_RESET;
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
}

int ud_qp_new(const struct ud_qp_config *cfg, struct ud_qp **out)
{
	struct ud_qp *qp = calloc(1, sizeof(*qp));
	int ret;

	if (!qp)
		return -ENOMEM;
	qp->cfg = *cfg;
	ret = ud_send_init(qp);
	if (!ret)
		ret = ud_recv_init(qp);
	if (ret) {
		ud_send_fini(qp);
		free(qp);
		return ret;
	}
	ud_fill(qp);
	*out = qp;
	return 0;
}

static void ud_purge(struct ud_qp *qp)
{
	cq_purge(qp->cfg.send_cq, qp->cfg.qp_num);
	cq_purge(qp->cfg.recv_cq, qp->cfg.qp_num);
	atomic_store(&qp->sq.uncollected, 0);
}

void ud_qp_delete(struct ud_qp *qp)
{
	ud_purge(qp);
	ud_recv_fini(qp);
	ud_send_fini(qp);
	free(qp);
}

struct ibv_qp *ud_qp_ibv(struct ud_qp *qp)
{
	return &qp->ibv;
}

struct ud_qp *ud_qp_of(struct ibv_qp *ibv)
{
	return container_of(ibv, struct ud_qp, ibv);
}

void *ud_qp_owner(const struct ud_qp *qp)
{
	return qp->cfg.owner;
}

const struct ud_counters *ud_qp_counters(const struct ud_qp *qp)
{
	return &qp->counters;
}

/* --- states --------------------------------------------------------------------------------- */

void ud_event(struct ud_qp *qp, enum ibv_event_type event)
{
	if (qp->cfg.async)
		qp->cfg.async(qp->cfg.owner, event);
}

static void ud_fail(struct ud_qp *qp)
{
	bool first = qp->ibv.state != IBV_QPS_ERR;

	qp->ibv.state = IBV_QPS_ERR;
	ud_send_flush(qp);
	ud_recv_flush(qp);
	if (first && qp->cfg.srq)
		ud_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}

void ud_complete(struct ud_qp *qp, struct cq *cq, struct ibv_wc *wc, bool solicited,
		 atomic_uint *uncollected)
{
	wc->qp_num = qp->cfg.qp_num;
	if (!cq_push(cq, wc, solicited, uncollected) || qp->ibv.state == IBV_QPS_ERR)
		return;
	ud_event(qp, IBV_EVENT_QP_FATAL);
	ud_fail(qp);
}

static void ud_reset(struct ud_qp *qp)
{
	qp->ibv.state = IBV_QPS_RESET;
	qp->sq.head = qp->sq.tail = 0;
	qp->stage.next = 0;
	ud_recv_drop(qp);
	ud_purge(qp);
	qp->qkey = 0;
}

/* A datagram is sent as soon as it is begun, so in SQD the queue pair has nothing to wait for. */
void ud_qp_move(struct ud_qp *qp, enum ibv_qp_state to, bool notify_drained)
{
	if (to == IBV_QPS_RESET)
		ud_reset(qp);
	else if (to == IBV_QPS_ERR)
		ud_fail(qp);
	else
		qp->ibv.state = to;
	if (to == IBV_QPS_SQD && notify_drained)
		ud_event(qp, IBV_EVENT_SQ_DRAINED);
}

void ud_qp_set_qkey(struct ud_qp *qp, uint32_t qkey)
{
	qp->qkey = qkey;
}
