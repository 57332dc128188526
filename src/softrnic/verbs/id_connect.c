/* SPDX-License-Identifier: BSD-3-Clause */
/* id_connect.c -- connects, accepts, rejects and disconnects ids. */
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
	/* the value RDMA_MAX_RESP_RES asks for the device's maximum */
	if (params->ird > RNIC_MAX_RD_ATOM)
		params->ird = RNIC_MAX_RD_ATOM;
	if (params->ord > RNIC_MAX_RD_ATOM)
		params->ord = RNIC_MAX_RD_ATOM;
	params->pdata_len = param->private_data ? param->private_data_len : 0;
	if (params->pdata_len)
		memcpy(params->pdata, param->private_data, params->pdata_len);
}

/* The event of rdma_cm for each event of a stream. */
static const enum rdma_cm_event_type cm_event_of[] = {
	[STREAM_EV_ESTABLISHED] = RDMA_CM_EVENT_ESTABLISHED,
	[STREAM_EV_REJECTED] = RDMA_CM_EVENT_REJECTED,
	[STREAM_EV_UNREACHABLE] = RDMA_CM_EVENT_UNREACHABLE,
	[STREAM_EV_CONNECT_ERROR] = RDMA_CM_EVENT_CONNECT_ERROR,
	[STREAM_EV_DISCONNECTED] = RDMA_CM_EVENT_DISCONNECTED,
	[STREAM_EV_LOST] = RDMA_CM_EVENT_CONNECT_ERROR,
};

/* The program now moves its queue pair, with the number that is in the reply. */
static enum rdma_cm_event_type id_external_reply(struct cmid *id, struct stream_params *reply,
						 int *status)
{
	if (id_external_take(id, reply) && id->external.peer.datagram == id_is_datagram(id))
		return id_is_datagram(id) ? RDMA_CM_EVENT_ESTABLISHED
					  : RDMA_CM_EVENT_CONNECT_RESPONSE;
	LOG_WARNING_LIMITED("the peer's reply does not name a queue pair");
	*status = -EPROTO;
	return RDMA_CM_EVENT_CONNECT_ERROR;
}

/* After the exchange of names, an id for datagrams no longer uses its connection, so the program
 * gets no events of the connection. */
static bool id_hides_event(const struct cmid *id, enum stream_event event)
{
	return event == STREAM_EV_DISCONNECTED || event == STREAM_EV_LOST ||
	       (event == STREAM_EV_ESTABLISHED && id->passive);
}

/* Queue the event of rdma_cm. Its status is 0 for ESTABLISHED and DISCONNECTED, and the stream's
 * status for other events. */
void id_on_stream_event(void *owner, enum stream_event event, int status)
{
	struct cmid *id = owner;
	enum rdma_cm_event_type type = cm_event_of[event];
	struct stream_params copy, *remote = NULL;
	struct link_addr local;

	if (event == STREAM_EV_DEAD || event == STREAM_EV_CONNECT_REQUEST)
		return; /* the request has vanished unanswered; accept will report the error */
	if (id_is_datagram(id) && id_hides_event(id, event))
		return;
	if (event == STREAM_EV_REJECTED || (event == STREAM_EV_ESTABLISHED && !id->passive)) {
		copy = *conn_remote(id->conn);
		remote = &copy;
	}
	if (event == STREAM_EV_ESTABLISHED) {
		if (!conn_local(id->conn, &local))
			id_set_local(id, &local);
		status = 0;
	}
	if (event == STREAM_EV_ESTABLISHED && id->external.on && !id->passive)
		type = id_external_reply(id, remote, &status);
	id_post(id, type, event == STREAM_EV_DISCONNECTED ? 0 : status, remote);
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
	struct conn_settings settings = {
		.connect_ns = id_limit_ns(id->limits.connect_ms, conf->connect_ns),
		.liveness_ns = id_limit_ns(id->limits.liveness_ms, conf->liveness_ns),
		.announces_flushes = id->announces_flushes,
		.owner = &id->owner,
	};

	if (id->conn && id->has_ack_timeout)
		conn_set_ack_timeout(id->conn, id->ack_timeout);
	return id->conn ? conn_configure(id->conn, &settings) : 0;
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

/* Number of the queue pair whose name the peer gets, because the queue pair does not use the id's
 * connection; 0: there is none. */
static uint32_t id_external_qpn(const struct cmid *id, const struct rdma_conn_param *param)
{
	if (id_is_datagram(id) && id->pub.qp)
		return id->pub.qp->qp_num;
	return !id->pub.qp && param ? param->qp_num : 0;
}

static int id_connect_start(struct cmid *id, const struct stream_params *params)
{
	struct link_addr from = {.family = LINK_NONE};
	struct link_addr to = link_addr_from(&id->pub.route.addr.dst_addr);

	if (id->bound)
		from = link_addr_from(&id->pub.route.addr.src_addr);
	return conn_connect(id->conn, &from, &to, &id->bound, params);
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
	if (id->passive || id->listener || !pub->route.addr.dst_addr.sa_family ||
	    !(pub->qp || id_external_qpn(id, param)))
		return id_errno(EINVAL);
	id_params_from(&params, param ? param : &none);
	ret = id_need_conn(id);
	if (!ret && id_external_qpn(id, param))
		ret = -id_external_begin(id, id_external_qpn(id, param), &params);
	if (!ret)
		ret = id_connect_start(id, &params);
	if (ret)
		return id_errno(-ret);
	return id->sync ? id_wait(id) : 0;
}

int softrnic_cancel_connect(struct rdma_cm_id *pub)
{
	struct cmid *id = cmid_of(pub);

	if (id_is_removed(id))
		return ENODEV;
	return id->conn ? -conn_cancel(id->conn) : EINVAL;
}

void softrnic_abandon(struct rdma_cm_id *pub)
{
	struct cmid *id = cmid_of(pub);

	if (!id_is_removed(id) && id->conn)
		conn_abort(id->conn);
}

/* Check that both ends have made their queue pairs in the same way. */
static int id_check_accept(const struct cmid *id, const struct rdma_conn_param *param)
{
	bool external = id_external_qpn(id, param);

	if (!id->passive || !(id->pub.qp || external))
		return -EINVAL;
	if (id->external.has_peer == external &&
	    (!external || id->external.peer.datagram == id_is_datagram(id)))
		return 0;
	LOG_WARNING_LIMITED("one end has made its queue pair by rdma_create_qp(), the other by "
			    "ibv_create_qp(): softrnic connects only two of the same kind");
	return -EOPNOTSUPP;
}

int softrnic_accept(struct rdma_cm_id *pub, struct rdma_conn_param *param)
{
	struct cmid *id = cmid_of(pub);
	struct stream_params params = {.ird = 0};
	bool external;
	int ret;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	ret = id_check_accept(id, param);
	if (ret)
		return id_errno(-ret);
	if (param)
		id_params_from(&params, param);
	external = id_external_qpn(id, param);
	if (external)
		ret = -id_external_begin(id, id_external_qpn(id, param), &params);
	if (!ret)
		ret = conn_accept(id->conn, param || external ? &params : NULL);
	id_request_done(id);
	if (ret)
		return id_errno(-ret);
	/* If messages are datagrams, no event follows. */
	return id->sync && !id_is_datagram(id) ? id_wait(id) : 0;
}

int softrnic_reject(struct rdma_cm_id *pub, const void *pdata, uint8_t len)
{
	struct cmid *id = cmid_of(pub);
	int ret;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (!id->passive)
		return id_errno(EINVAL);
	ret = conn_reject(id->conn, pdata, pdata ? len : 0);
	id_request_done(id);
	return id_errno(-ret);
}

int softrnic_disconnect(struct rdma_cm_id *pub)
{
	struct cmid *id = cmid_of(pub);
	bool reports;
	int ret;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (!id->conn)
		return id_errno(EINVAL);
	ret = conn_disconnect(id->conn, &reports);
	if (ret || !reports || !id->sync)
		return id_errno(-ret);
	return id_wait(id);
}
