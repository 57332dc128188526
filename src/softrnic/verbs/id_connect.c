/* SPDX-License-Identifier: BSD-3-Clause */
/* id_connect.c -- connect, accept, reject, disconnect. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/io/link_sockaddr.h"
#include "softrnic/rnic/rnic.h"
#include "softrnic/softrnic.h"
#include "softrnic/verbs/id.h"

static void id_params_from(struct stream_params *params, const struct rdma_conn_param *param)
{
	memset(params, 0, sizeof(*params));
	params->ird = param->responder_resources;
	params->ord = param->initiator_depth;
	if (params->ird > RNIC_MAX_RD_ATOM) /* RDMA_MAX_RESP_RES: as much as the device can */
		params->ird = RNIC_MAX_RD_ATOM;
	if (params->ord > RNIC_MAX_RD_ATOM)
		params->ord = RNIC_MAX_RD_ATOM;
	params->pdata_len = param->private_data ? param->private_data_len : 0;
	if (params->pdata_len)
		memcpy(params->pdata, param->private_data, params->pdata_len);
}

/* What each stream event is for rdma_cm. */
static const enum rdma_cm_event_type cm_event_of[] = {
	[STREAM_EV_ESTABLISHED] = RDMA_CM_EVENT_ESTABLISHED,
	[STREAM_EV_REJECTED] = RDMA_CM_EVENT_REJECTED,
	[STREAM_EV_UNREACHABLE] = RDMA_CM_EVENT_UNREACHABLE,
	[STREAM_EV_CONNECT_ERROR] = RDMA_CM_EVENT_CONNECT_ERROR,
	[STREAM_EV_DISCONNECTED] = RDMA_CM_EVENT_DISCONNECTED,
	[STREAM_EV_LOST] = RDMA_CM_EVENT_CONNECT_ERROR,
};

/* A disconnect or a failed start is no error of the event's operation: rdma_cm's status rules. */
void id_on_stream_event(void *owner, enum stream_event event, int status)
{
	struct cmid *id = owner;
	const struct stream_params *remote = NULL;

	if (event == STREAM_EV_DEAD || event == STREAM_EV_CONNECT_REQUEST)
		return; /* a request vanished before it was answered: accept reports it */
	if (event == STREAM_EV_REJECTED || (event == STREAM_EV_ESTABLISHED && !id->passive))
		remote = stream_remote(id->conn->stream);
	if (event == STREAM_EV_ESTABLISHED) {
		id_set_local(id, id->conn->link);
		status = 0;
	}
	id_post(id, cm_event_of[event], event == STREAM_EV_DISCONNECTED ? 0 : status, remote);
}

static uint64_t id_limit_ns(int ms, uint64_t dflt_ns)
{
	if (ms < 0)
		return CLOCK_NEVER;
	return ms ? (uint64_t)ms * NSEC_PER_MS : dflt_ns;
}

int id_apply_settings(struct cmid *id)
{
	const struct config *conf = config_get();
	uint64_t connect_ns = id_limit_ns(id->limits.connect_ms, conf->connect_ns);
	uint64_t liveness_ns = id_limit_ns(id->limits.liveness_ms, conf->liveness_ns);
	struct conn *c = id->conn;
	int ret;

	if (!c)
		return 0;
	conn_enter(c);
	ret = stream_set_limits(c->stream, connect_ns, liveness_ns);
	if (!ret)
		ret = stream_set_user_flushes(c->stream, id->announces_flushes);
	if (!ret)
		conn_set_owner(c, &id->owner);
	conn_leave(c);
	return ret;
}

int softrnic_set_limits(struct rdma_cm_id *pub, int connect_ms, int liveness_ms)
{
	struct cmid *id = cmid_of(pub);

	if (id_is_removed(id))
		return ENODEV;
	if (id->listener || connect_ms < 0 || liveness_ms < -1)
		return EINVAL;
	id->limits = (struct id_limits){connect_ms, liveness_ms};
	return -id_apply_settings(id);
}

int softrnic_announce_flushes(struct rdma_cm_id *pub)
{
	struct cmid *id = cmid_of(pub);

	if (id_is_removed(id))
		return ENODEV;
	if (id->listener)
		return EINVAL;
	id->announces_flushes = true;
	return -id_apply_settings(id);
}

int softrnic_set_owner(struct rdma_cm_id *pub, const void *name, size_t len)
{
	struct cmid *id = cmid_of(pub);

	if (id_is_removed(id))
		return ENODEV;
	if (id->listener || id->passive || (len > 0 && !name))
		return EINVAL;
	conn_owner_of(&id->owner, name, len);
	return -id_apply_settings(id);
}

static int id_connect_start(struct cmid *id, const struct stream_params *params)
{
	struct conn *c = id->conn;
	struct stream_update u;
	int ret;

	conn_enter(c);
	c->src = (struct link_addr){.family = LINK_NONE};
	if (id->bound)
		c->src = link_addr_from(&id->pub.route.addr.src_addr);
	c->dst = link_addr_from(&id->pub.route.addr.dst_addr);
	ret = stream_connect(c->stream, params, clock_now_ns(), &u);
	if (!ret) {
		conn_dial(c, id->bound); /* a failure comes as an event */
		id->bound = NULL;
		conn_settle(c);
	}
	conn_leave(c);
	return ret;
}

int softrnic_connect(struct rdma_cm_id *pub, struct rdma_conn_param *param)
{
	struct cmid *id = cmid_of(pub);
	struct rdma_conn_param none = {.responder_resources = RDMA_MAX_RESP_RES,
				       .initiator_depth = RDMA_MAX_INIT_DEPTH};
	struct stream_params params;
	int ret;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (id->passive || id->listener || !pub->route.addr.dst_addr.sa_family || !pub->qp)
		return id_errno(EINVAL);
	id_params_from(&params, param ? param : &none);
	ret = id_need_conn(id);
	if (!ret)
		ret = id_connect_start(id, &params);
	if (ret)
		return id_errno(-ret);
	return id->sync ? id_wait(id) : 0;
}

int softrnic_cancel_connect(struct rdma_cm_id *pub)
{
	struct cmid *id = cmid_of(pub);
	struct conn *c = id->conn;
	struct stream_update u;
	int ret;

	if (id_is_removed(id))
		return ENODEV;
	if (!c)
		return EINVAL;
	conn_enter(c);
	ret = stream_cancel(c->stream, &u);
	conn_perform(c, &u);
	conn_leave(c);
	return -ret;
}

/* After the peer's FIN nothing is on its way. The time limit of a disconnect ends by a reset. */
static void id_await_orderly_end(struct conn *c)
{
	uint64_t end = clock_now_ns() + config_get()->drain_ns;

	while (c->link && stream_leaves_writes(c->stream) && clock_now_ns() < end)
		conn_wait_change(c, end);
}

void softrnic_abandon(struct rdma_cm_id *pub)
{
	struct cmid *id = cmid_of(pub);
	struct conn *c = id->conn;
	struct stream_update u;

	if (id_is_removed(id) || !c)
		return;
	conn_enter(c);
	if (stream_state(c->stream) == STREAM_LIVE) {
		stream_abort(c->stream, &u);
		conn_perform(c, &u);
	} else if (stream_state(c->stream) > STREAM_LIVE) {
		id_await_orderly_end(c);
	}
	conn_leave(c);
}

int softrnic_accept(struct rdma_cm_id *pub, struct rdma_conn_param *param)
{
	struct cmid *id = cmid_of(pub);
	struct stream_params params = {0};
	struct stream_update u;
	struct conn *c = id->conn;
	int ret;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (!id->passive || !pub->qp)
		return id_errno(EINVAL);
	conn_enter(c);
	if (param) {
		id_params_from(&params, param);
	} else { /* as much as the request asked for */
		params.ird = stream_remote(c->stream)->ird;
		params.ord = stream_remote(c->stream)->ord;
	}
	conn_origin_arrives(c);
	ret = stream_accept(c->stream, &params, conn_segment(c), clock_now_ns(), &u);
	conn_perform(c, &u);
	conn_leave(c);
	id_request_done(id);
	if (ret)
		return id_errno(-ret);
	return id->sync ? id_wait(id) : 0;
}

int softrnic_reject(struct rdma_cm_id *pub, const void *pdata, uint8_t len)
{
	struct cmid *id = cmid_of(pub);
	struct conn *c = id->conn;
	struct stream_update u;
	int ret;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (!id->passive)
		return id_errno(EINVAL);
	conn_enter(c);
	ret = stream_reject(c->stream, pdata, pdata ? len : 0, clock_now_ns(), &u);
	conn_perform(c, &u);
	conn_leave(c);
	id_request_done(id);
	return id_errno(-ret);
}

int softrnic_disconnect(struct rdma_cm_id *pub)
{
	struct cmid *id = cmid_of(pub);
	struct conn *c = id->conn;
	struct stream_update u;
	bool ended;
	int ret;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (!c)
		return id_errno(EINVAL);
	if (conn_enter_caller(c, CONN_CALLER_MS)) { /* the thread that has the lock does it */
		conn_want(c, CONN_DISCONNECT);
		return 0;
	}
	conn_end_quiet(c);
	ended = stream_state(c->stream) >= STREAM_LINGERING;
	ret = stream_disconnect(c->stream, clock_now_ns(), &u);
	conn_perform(c, &u);
	conn_leave(c);
	if (ret || ended || !id->sync)
		return id_errno(-ret);
	return id_wait(id);
}
