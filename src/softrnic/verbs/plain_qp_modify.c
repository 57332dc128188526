/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain_qp_modify.c -- moves plain queue pairs from state to state, and reports their attributes.
 */
#include <errno.h>
#include <string.h>

#include "softrnic/verbs/plain_qp.h"
#include "softrnic/verbs/qp_attr.h"
#include "softrnic/verbs/qp_states.h"

/* Move to RESET: a new queue pair replaces the old one on the same connection. Returns 0 or an
 * errno value. */
static int plain_qp_reset(struct plain_qp *p)
{
	struct qp_config cfg = *qp_config(qp_of(p->ibv));
	struct qp *fresh;
	int ret = -qp_new(&cfg, &fresh);

	if (!ret)
		ret = conn_plain_reset(p->home, fresh);
	if (ret)
		return ret;
	memset(&p->attr, 0, sizeof(p->attr));
	return 0;
}

/*
 * Move the queue pair. The meeting begins before the new state is visible. Other calls of the user
 * do not see this, because they wait for the lock.
 */
static int plain_qp_move(struct plain_qp *p, const struct conn_qp_move *move)
{
	int ret = conn_permit_qp(p->home, p->attr.qp_access_flags);

	if (!ret && move->to == IBV_QPS_RTR)
		ret = plain_qp_meet(p);
	if (!ret)
		ret = conn_move_qp(p->home, move);
	return ret || move->to != IBV_QPS_RTS ? ret : plain_qp_limit(p);
}

/* Does the user change the path to the peer? In SQD verbs permits such a change, but here the
 * connection stays with its peer. */
static bool plain_qp_leads_elsewhere(const struct plain_qp *p, const struct ibv_qp_attr *attr)
{
	const struct ibv_global_route *now = &p->attr.ah_attr.grh, *then = &attr->ah_attr.grh;

	return now->sgid_index != then->sgid_index ||
	       memcmp(&now->dgid, &then->dgid, sizeof(now->dgid)) != 0;
}

static int plain_qp_apply(struct plain_qp *p, enum ibv_qp_state from, enum ibv_qp_state to,
			  const struct ibv_qp_attr *attr, int mask)
{
	struct conn_qp_move move = {.from = from, .to = to};
	struct ibv_qp_attr before = p->attr;
	int ret;

	if (to == IBV_QPS_RESET)
		return plain_qp_reset(p);
	if (to == IBV_QPS_ERR) {
		ret = conn_modify_qp(p->home, IBV_QPS_ERR);
		if (!ret)
			conn_plain_failed(p->home);
		return ret;
	}
	if (from == IBV_QPS_SQD && mask & IBV_QP_AV && plain_qp_leads_elsewhere(p, attr))
		return EOPNOTSUPP;
	qp_attr_store(&p->attr, attr, mask);
	move.notify_drained = mask & IBV_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify;
	ret = plain_qp_move(p, &move);
	if (ret) {
		p->attr = before;
		(void)conn_permit_qp(p->home, before.qp_access_flags);
	}
	return ret;
}

static int plain_qp_modify_locked(struct plain_qp *p, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr now = {0};
	struct ibv_qp_init_attr init;
	enum ibv_qp_state from, to;
	int ret = conn_query_qp(p->home, &now, &init);

	if (ret)
		return ret;
	from = now.qp_state;
	to = mask & IBV_QP_STATE ? attr->qp_state : from;
	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from)
		return EINVAL;
	if (!qp_states_permit(p->ibv->qp_type, from, to, mask) || !qp_attr_is_valid(attr, mask))
		return EINVAL;
	return plain_qp_apply(p, from, to, attr, mask);
}

int plain_qp_modify(struct plain_qp *p, const struct ibv_qp_attr *attr, int mask)
{
	int ret;

	if (!plain_qp_enter(p))
		return ENODEV;
	ret = plain_qp_modify_locked(p, attr, mask);
	plain_qp_leave(p);
	return ret;
}

int plain_qp_query(struct plain_qp *p, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_attr now = {0};
	int ret;

	if (!plain_qp_enter(p))
		return ENODEV;
	ret = conn_query_qp(p->home, &now, init);
	*attr = p->attr;
	attr->qp_state = now.qp_state;
	attr->cur_qp_state = now.cur_qp_state;
	attr->cap = now.cap;
	attr->sq_draining = now.sq_draining;
	plain_qp_leave(p);
	return ret;
}
