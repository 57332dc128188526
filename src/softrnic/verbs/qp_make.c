/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_make.c -- creates queue pairs, attaches them to a connection, drains and ends them. */
#include "softrnic/verbs/qp_make.h"

#include <errno.h>

#include "softrnic/io/config.h"
#include "softrnic/io/engine.h"
#include "softrnic/rnic/rnic.h"
#include "softrnic/verbs/context.h"

enum { MIN_INLINE = 64 };

/* --- requested attributes ------------------------------------------------------------------- */

int qp_attr_check(const struct ibv_qp_init_attr *attr)
{
	return attr->qp_type == IBV_QPT_RC ? qp_attr_check_queues(attr) : EOPNOTSUPP;
}

/* Does a queue belong to the parent of this process? Such a queue still refers to the parent's queue
 * pairs. */
static bool qp_attr_is_removed(const struct ibv_qp_init_attr *attr)
{
	unsigned now = engine_generation();

	return qp_vcq(attr->send_cq)->generation != now ||
	       qp_vcq(attr->recv_cq)->generation != now ||
	       (attr->srq && qp_vsrq(attr->srq)->generation != now);
}

int qp_attr_check_queues(const struct ibv_qp_init_attr *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;

	if (!attr->send_cq || !attr->recv_cq)
		return EINVAL;
	if (qp_attr_is_removed(attr))
		return ENODEV;
	if (!attr->srq && (cap->max_recv_wr > RNIC_MAX_QP_WR || cap->max_recv_sge > RNIC_MAX_SGE))
		return EINVAL;
	if (cap->max_send_wr > RNIC_MAX_QP_WR || cap->max_send_sge > RNIC_MAX_SGE)
		return EINVAL;
	return cap->max_inline_data <= RNIC_MAX_INLINE ? 0 : EINVAL;
}

/* Set the granted attributes. Some inline data is granted even if the program requests none: other
 * devices do so, and programs rely on it. */
void qp_attr_grant(struct ibv_qp_init_attr *attr)
{
	if (attr->cap.max_inline_data < MIN_INLINE)
		attr->cap.max_inline_data = MIN_INLINE;
}

/* --- creation ------------------------------------------------------------------------------- */

/* An asynchronous event of the queue pair. The connection calls this with its lock held. */
static void qp_owner_async(void *owner, enum ibv_event_type event)
{
	struct ibv_qp *ibv = conn_qp(owner);

	if (event == IBV_EVENT_QP_ACCESS_ERR)
		conn_on_access_error(owner);
	async_raise(context_events(ibv->context), event, ibv);
}

/* Do completions of this queue pair mean that the peer has the data? On RoCE programs expect that a
 * completed Write has reached the peer, and plain queue pairs behave like those of RoCE. On iWARP a
 * completion only means that the source may be reused. */
static bool qp_acknowledges(const struct ibv_qp_init_attr *granted, bool plain)
{
	enum config_ack ack = config_get()->ack;

	return granted->qp_type == IBV_QPT_RC &&
	       (ack == CONFIG_ACK_ON || (ack == CONFIG_ACK_AUTO && (plain || config_get()->roce)));
}

int qp_build(struct conn *c, struct ibv_pd *pd, const struct ibv_qp_init_attr *granted,
	     uint32_t num, void *plain, struct qp **out)
{
	struct qp_config cfg = {
		.mrs = device_mrs(),
		.pd = &vpd_of(pd)->ibv,
		.send_cq = &qp_vcq(granted->send_cq)->cq,
		.recv_cq = &qp_vcq(granted->recv_cq)->cq,
		.srq = granted->srq ? &qp_vsrq(granted->srq)->srq : NULL,
		.qp_num = num,
		.cap = granted->cap,
		.sq_sig_all = granted->sq_sig_all,
		.plain = plain,
		.unreliable = granted->qp_type == IBV_QPT_UC,
		.peer_rfc7306 = config_get()->peer_rfc7306,
		.strict_persist = config_get()->strict_persist,
		.acks = qp_acknowledges(granted, plain),
		.async = qp_owner_async,
	};
	int ret;

	conn_serve_qp(c, &cfg);
	ret = qp_new(&cfg, out);
	if (!ret)
		qp_ibv(*out)->qp_context = granted->qp_context;
	return ret;
}

/* --- attachment ----------------------------------------------------------------------------- */

void qp_places_init(struct qp_places *places)
{
	list_init(&places->send.link);
	list_init(&places->recv.link);
}

void qp_count_users(const struct ibv_qp *ibv, int by)
{
	atomic_fetch_add(&vpd_of(ibv->pd)->users, (unsigned)by);
	atomic_fetch_add(&qp_vcq(ibv->send_cq)->users, (unsigned)by);
	atomic_fetch_add(&qp_vcq(ibv->recv_cq)->users, (unsigned)by);
	if (ibv->srq)
		atomic_fetch_add(&qp_vsrq(ibv->srq)->users, (unsigned)by);
}

struct ibv_qp qp_uses(const struct ibv_qp *ibv)
{
	return (struct ibv_qp){
		.pd = ibv->pd,
		.send_cq = ibv->send_cq,
		.recv_cq = ibv->recv_cq,
		.srq = ibv->srq,
		.qp_num = ibv->qp_num,
	};
}

void qp_attach(struct conn *c, struct ibv_qp *ibv, const struct ibv_qp_init_attr *granted,
	       struct qp_places *places)
{
	struct vcq *send_cq = qp_vcq(ibv->send_cq), *recv_cq = qp_vcq(ibv->recv_cq);
	struct conn_attachment with = {
		.qp = qp_of(ibv),
		.granted = granted,
		.stall = vpd_of(ibv->pd)->stall,
		.waiting = {&send_cq->waiting, recv_cq != send_cq ? &recv_cq->waiting : NULL},
	};

	conn_attach_qp(c, &with);
	vcq_attach(send_cq, &places->send, c);
	if (recv_cq != send_cq)
		vcq_attach(recv_cq, &places->recv, c);
}

struct qp *qp_detach(struct conn *c, struct ibv_qp *ibv, struct qp_places *places)
{
	conn_leave_cqs(c);
	vcq_detach(qp_vcq(ibv->send_cq), &places->send);
	vcq_detach(qp_vcq(ibv->recv_cq), &places->recv);
	return conn_detach_qp(c);
}
