/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_req.c -- connection requests of both sides, from their creation until they become
 * connections or are given up. */
#include "rpma/conn_req.h"

#include <stdlib.h>

#include "rpma/addr.h"
#include "rpma/conn.h"
#include "rpma/err.h"
#include "rpma/mr.h"
#include "rpma/private_data.h"

struct rpma_conn_req {
	struct rpma_peer *peer;
	struct rdma_cm_id *id;
	bool is_passive;
	struct queues queues;
	struct rpma_conn_private_data pdata; /* private data of a passive request */
};

static int conn_req_destroy_id(const struct provider *prov, struct rdma_cm_id *id)
{
	return prov->destroy_id(id) ? PROVIDER_FAILED(errno, "%s", "rdma_destroy_id()") : 0;
}

/* Reject the request and destroy its id. All events of the id must be acknowledged. */
static int conn_req_reject_id(const struct provider *prov, struct rdma_cm_id *id,
			      const struct rpma_conn_private_data *pdata)
{
	int ret = 0;

	if (prov->reject(id, pdata ? pdata->ptr : NULL, pdata ? pdata->len : 0))
		ret = PROVIDER_FAILED(errno, "%s", "rdma_reject()");
	return first_error(ret, conn_req_destroy_id(prov, id));
}

/* Give up a request. `pdata` is the answer to a passive request, or NULL. */
static int conn_req_discard(struct rpma_conn_req *req, const struct rpma_conn_private_data *pdata)
{
	const struct provider *prov = req->peer->prov;
	int ret = queues_fini(&req->queues, prov, req->id);

	ret = first_error(ret, req->is_passive ? conn_req_reject_id(prov, req->id, pdata)
					       : conn_req_destroy_id(prov, req->id));
	private_data_fini(&req->pdata);
	free(req);
	return ret;
}

/* Set the limits in the device, but only those that differ from the default, because some providers
 * do not support limits. */
static int conn_req_set_limits(struct rpma_conn_req *req, const struct rpma_conn_cfg *cfg)
{
	int connect_ms = req->is_passive ? 0 : atomic_load(&cfg->connect_timeout);
	int liveness_ms = atomic_load(&cfg->liveness);
	int err;

	if (!connect_ms && !liveness_ms)
		return 0;
	err = req->peer->prov->set_limits(req->id, connect_ms, liveness_ms);
	if (err == EOPNOTSUPP) {
		LOG_ERROR("the device cannot be asked for signs of life: liveness=%d cannot be "
			  "set",
			  liveness_ms);
		return RPMA_E_NOSUPP;
	}
	return err ? PROVIDER_FAILED(err, "set_limits(connect_ms=%d, liveness_ms=%d)", connect_ms,
				     liveness_ms)
		   : 0;
}

void conn_req_limit(struct rpma_conn_req *req, const struct rpma_conn_cfg *cfg, int connect_ms)
{
	if (!cfg)
		cfg = &conn_cfg_default;
	if (!atomic_load(&cfg->connect_timeout))
		req->peer->prov->set_limits(req->id, connect_ms, atomic_load(&cfg->liveness));
}

/* Set the owner. Only the software RNIC can end connections of other processes. */
static int conn_req_set_owner(struct rpma_conn_req *req, const struct rpma_conn_cfg *cfg)
{
	struct conn_owner owner;
	int err;

	conn_cfg_owner(cfg, &owner);
	if (req->is_passive || !owner.len)
		return 0;
	err = req->peer->prov->set_owner(req->id, owner.name, owner.len);
	if (err == EOPNOTSUPP) {
		LOG_ERROR("the device cannot end the connections that another process of the same "
			  "owner has made: no owner can be set");
		return RPMA_E_NOSUPP;
	}
	return err ? PROVIDER_FAILED(err, "set_owner(len=%zu)", owner.len) : 0;
}

/* Make a request. The function takes over id and pdata even if it fails. */
static int conn_req_new(struct rpma_peer *peer, struct rdma_cm_id *id, bool is_passive,
			const struct rpma_conn_cfg *cfg, struct rpma_conn_private_data pdata,
			struct rpma_conn_req **req_ptr)
{
	struct rpma_conn_req *req = malloc(sizeof(*req));
	int ret;

	if (!req) {
		private_data_fini(&pdata);
		if (is_passive)
			conn_req_reject_id(peer->prov, id, NULL);
		else
			conn_req_destroy_id(peer->prov, id);
		return err_set(RPMA_E_NOMEM, "there is no memory for a connection request");
	}
	*req = (struct rpma_conn_req){
		.peer = peer, .id = id, .is_passive = is_passive, .pdata = pdata};
	if (!cfg)
		cfg = &conn_cfg_default;
	ret = conn_req_set_limits(req, cfg);
	if (!ret)
		ret = conn_req_set_owner(req, cfg);
	if (!ret)
		ret = queues_init(&req->queues, peer, id, cfg);
	if (ret)
		conn_req_discard(req, NULL);
	else
		*req_ptr = req;
	return ret;
}

int conn_req_from_event(struct rpma_peer *peer, struct rdma_cm_event *event,
			const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr)
{
	struct rdma_cm_id *id = event->id;
	struct rpma_conn_private_data pdata;
	int ret = private_data_copy(&pdata, event);

	/*
	 * Acknowledge the event before any step that can fail, because an id with an unacknowledged
	 * event cannot be destroyed.
	 */
	if (peer->prov->ack_cm_event(event))
		ret = first_error(ret, PROVIDER_FAILED(errno, "%s", "rdma_ack_cm_event()"));
	if (ret) {
		private_data_fini(&pdata);
		conn_req_reject_id(peer->prov, id, NULL);
		return ret;
	}
	return conn_req_new(peer, id, true, cfg, pdata, req_ptr);
}

/* Make an id, and find its device and its route to addr:port. */
static int conn_req_resolve_id(const struct provider *prov, const char *addr, const char *port,
			       int timeout_ms, struct rdma_cm_id **id_ptr)
{
	const char *call = "";
	struct rdma_cm_id *id;
	int err;

	if (prov->create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return PROVIDER_FAILED(errno, "%s", "rdma_create_id()");
	err = provider_address_id(prov, id, addr, port, PROVIDER_ACTIVE, timeout_ms, &call);
	if (!err && prov->resolve_route(id, timeout_ms)) {
		err = errno;
		call = "rdma_resolve_route";
	}
	if (!err) {
		*id_ptr = id;
		return 0;
	}
	prov->destroy_id(id);
	return PROVIDER_FAILED(err, "%s(addr=%s, port=%s, timeout_ms=%d)", call, addr, port,
			       timeout_ms);
}

int rpma_conn_req_new(struct rpma_peer *peer, const char *addr, const char *port,
		      const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr)
{
	const struct rpma_conn_private_data none = {0};
	struct rdma_cm_id *id;
	int timeout_ms;
	int ret;

	if (!peer || !addr || !port || !req_ptr)
		return INVALID();
	timeout_ms = atomic_load(&(cfg ? cfg : &conn_cfg_default)->timeout);
	ret = conn_req_resolve_id(peer->prov, addr, port, timeout_ms, &id);
	if (!ret)
		ret = conn_req_new(peer, id, false, cfg, none, req_ptr);
	if (!ret)
		LOG_NOTICE("Requesting a connection to %s:%s", addr, port);
	return ret;
}

int rpma_conn_req_delete(struct rpma_conn_req **req_ptr)
{
	int ret;

	if (!req_ptr)
		return INVALID();
	if (!*req_ptr)
		return 0;
	ret = conn_req_discard(*req_ptr, NULL);
	*req_ptr = NULL;
	return ret;
}

static bool conn_req_pdata_is_valid(const struct rpma_conn_private_data *pdata)
{
	return !pdata || (pdata->ptr && pdata->len);
}

int rpma_conn_req_reject(struct rpma_conn_req **req_ptr, const struct rpma_conn_private_data *pdata)
{
	struct rpma_conn_req *req;

	if (!req_ptr || !*req_ptr)
		return INVALID();
	req = *req_ptr;
	*req_ptr = NULL;
	if (req->is_passive && conn_req_pdata_is_valid(pdata))
		return conn_req_discard(req, pdata);
	conn_req_discard(req, NULL);
	return INVALID();
}

static int conn_req_connect_id(const struct provider *prov, struct rdma_cm_id *id, bool is_passive,
			       const struct rpma_conn_private_data *pdata)
{
	struct rdma_conn_param param = {
		.private_data = pdata ? pdata->ptr : NULL,
		.private_data_len = pdata ? pdata->len : 0,
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.flow_control = 1,
		.retry_count = 7,     /* the greatest value of the field, which has 3 bits */
		.rnr_retry_count = 7, /* the value 7 means that the retries never end */
	};

	if (is_passive)
		return prov->accept(id, &param) ? PROVIDER_FAILED(errno, "%s", "rdma_accept()") : 0;
	return prov->connect(id, &param) ? PROVIDER_FAILED(errno, "%s", "rdma_connect()") : 0;
}

int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
			  const struct rpma_conn_private_data *pdata, struct rpma_conn **conn_ptr)
{
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	int ret;

	if (!req_ptr || !*req_ptr)
		return INVALID();
	req = *req_ptr;
	*req_ptr = NULL;
	if (!conn_ptr || !conn_req_pdata_is_valid(pdata)) {
		conn_req_discard(req, NULL);
		return INVALID();
	}
	/*
	 * Move the id to the connection's channel before it connects, so that no event is delivered
	 * to another channel.
	 */
	ret = conn_new(req->peer, req->id, &req->queues, &req->pdata, &conn);
	if (ret) {
		conn_req_discard(req, NULL);
		return ret;
	}
	ret = conn_req_connect_id(req->peer->prov, req->id, req->is_passive, pdata);
	free(req);
	if (ret)
		rpma_conn_delete(&conn);
	else
		*conn_ptr = conn;
	return ret;
}

int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst, size_t offset,
		       size_t len, const void *op_context)
{
	struct ibv_recv_wr wr;
	struct ibv_sge sge;
	int ret, err;

	if (!req || !dst)
		return INVALID();
	ret = mr_recv_wr(&wr, &sge, dst, offset, len, op_context);
	if (ret)
		return ret;
	err = provider_post_recv(req->id->qp, &wr);
	return err ? PROVIDER_FAILED(err, "ibv_post_recv(length=%zu)", len) : 0;
}

int rpma_conn_req_get_private_data(const struct rpma_conn_req *req,
				   struct rpma_conn_private_data *pdata)
{
	if (!req || !pdata)
		return INVALID();
	*pdata = req->pdata;
	return 0;
}

int rpma_conn_req_get_remote_addr(const struct rpma_conn_req *req, char *addr, size_t size)
{
	if (!req || !addr || !size)
		return INVALID();
	return addr_text(&req->id->route.addr.dst_addr, addr, size);
}
