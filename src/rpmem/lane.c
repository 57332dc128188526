/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/lane.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rpmem/device.h"
#include "rpmem/errmsg.h"
#include "rpmem/lane_impl.h"

static int lane_cfg_new(const struct lane *lane, struct rpma_conn_cfg **cfg)
{
	/* The send queue holds each barrier with its transfer, the slices, and a read. Each of
	 * these may give a completion. */
	uint32_t sq = 2 * lane->queue + LANE_TRANSFERS + 1;
	uint32_t rq = lane->messages ? WIRE_PERSIST_DEPTH : 1;
	int rc = rpma_conn_cfg_new(cfg);

	if (rc)
		return rc;
	rpma_conn_cfg_set_sq_size(*cfg, sq);
	rpma_conn_cfg_set_rq_size(*cfg, rq);
	rpma_conn_cfg_set_cq_size(*cfg, sq + rq + 1);
	return 0;
}

/* Returns the errno for a failed rpma_conn_open(). */
static int lane_connect_failed(const struct lane *lane, uint16_t port, int rc)
{
	int error = ECONNABORTED;

	if (rc == RPMA_E_NO_EVENT)
		error = ETIMEDOUT;
	if (rc == RPMA_E_NOMEM)
		error = ENOMEM;
	return errmsg_fail(error, "cannot connect lane %u to %s port %u: %s", lane->number,
			   lane->place->addr, port, rpma_err_last());
}

static int lane_apply_peer_cfg(struct lane *lane, const struct wire_lane_reply *reply,
			       bool *direct_write)
{
	struct rpma_peer_cfg *pcfg;
	int rc;

	*direct_write = false;
	if (!reply->pcfg_len)
		return 0;
	rc = rpma_peer_cfg_from_descriptor(reply->pcfg, reply->pcfg_len, &pcfg);
	if (rc)
		return rc;
	rc = rpma_conn_apply_remote_peer_cfg(lane->conn, pcfg);
	if (!rc)
		rc = rpma_peer_cfg_get_direct_write_to_pmem(pcfg, direct_write);
	rpma_peer_cfg_delete(&pcfg);
	return rc;
}

/* Check that the daemon's descriptor declares the capabilities that the granted method requires. */
static int lane_check_method(struct lane *lane, bool direct_write)
{
	uint32_t caps = 0;

	rpma_conn_get_remote_caps(lane->conn, &caps);
	if (lane->place->method == WIRE_METHOD_GENERAL || direct_write || caps & RPMA_CAP_FLUSH ||
	    lane->place->flush_type == RPMA_FLUSH_TYPE_VISIBILITY)
		return 0;
	return errmsg_fail(EMEDIUMTYPE,
			   "lane %u: this device cannot flush to the target's, and "
			   "rpmemd did not offer the general method",
			   lane->number);
}

static int lane_take_reply(struct lane *lane, uint16_t port)
{
	struct rpma_conn_private_data pdata = {NULL, 0};
	struct wire_lane_reply reply;
	bool direct_write;
	size_t size = 0;
	int rc;

	rpma_conn_get_private_data(lane->conn, &pdata);
	if (!wire_lane_reply_decode(&lane->place->key, lane->number, port, pdata.ptr, pdata.len,
				    &reply))
		return errmsg_fail(ECONNABORTED,
				   "lane %u: %s port %u is not the rpmemd of this session",
				   lane->number, lane->place->addr, port);
	if (reply.status != WIRE_LANE_OK)
		return errmsg_fail(ECONNABORTED, "lane %u: rpmemd cannot serve it", lane->number);
	rc = rpma_mr_remote_from_descriptor(reply.mr, reply.mr_len, &lane->remote);
	if (!rc)
		rc = rpma_mr_remote_get_size(lane->remote, &size);
	if (!rc)
		rc = lane_apply_peer_cfg(lane, &reply, &direct_write);
	if (rc || size < lane->place->size)
		return errmsg_fail(EPROTO, "lane %u: rpmemd describes its memory wrongly",
				   lane->number);
	return lane_check_method(lane, direct_write);
}

static int lane_open_conn(struct lane *lane, uint16_t port, int timeout_ms)
{
	uint8_t buf[WIRE_LANE_REQUEST];
	struct rpma_conn_private_data pdata = {.ptr = buf};
	char service[8];
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_open_attr attr = {.size = sizeof(attr), .timeout_ms = timeout_ms};
	enum rpma_conn_event event;
	int rc = lane_cfg_new(lane, &cfg);

	if (rc)
		return errmsg_fail(ENOMEM, "out of memory");
	snprintf(service, sizeof(service), "%u", port);
	pdata.len = (uint8_t)wire_lane_request_encode(&lane->place->key, lane->number, port, buf);
	attr.addr = lane->place->addr;
	attr.port = service;
	attr.cfg = cfg;
	attr.pdata = &pdata;
	attr.prepare = lane->messages ? lane_general_prepare : NULL;
	attr.arg = lane;
	rc = rpma_conn_open(lane->place->peer, &attr, &event, &lane->conn);
	rpma_conn_cfg_delete(&cfg);
	if (rc)
		return lane_connect_failed(lane, port, rc);
	if (event == RPMA_CONN_ESTABLISHED)
		return 0;
	rc = lane_take_reply(lane, port);
	return rc ? rc : errmsg_fail(ECONNABORTED, "lane %u: rpmemd refused it", lane->number);
}

static int lane_init(struct lane *lane, uint16_t port, int timeout_ms)
{
	int rc;

	if (lane->place->method == WIRE_METHOD_GENERAL) {
		rc = lane_general_init(lane);
		if (rc)
			return errmsg_fail(ENOMEM, "lane %u: no memory for its messages",
					   lane->number);
	}
	rc = lane_open_conn(lane, port, timeout_ms);
	if (!rc)
		rc = lane_take_reply(lane, port);
	if (rc)
		return rc;
	if (rpma_conn_get_cq(lane->conn, &lane->cq) || rpma_batch_new(lane->conn, 2, &lane->batch))
		return errmsg_fail(ENOMEM, "lane %u: out of memory", lane->number);
	return 0;
}

int lane_connect(const struct lane_place *place, uint32_t number, uint16_t port, int timeout_ms,
		 struct lane **lane)
{
	struct lane *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return errmsg_fail(ENOMEM, "out of memory");
	l->place = place;
	l->number = number;
	l->queue = place->queue;
	if (place->method == WIRE_METHOD_GENERAL && l->queue > WIRE_PERSIST_DEPTH)
		l->queue = WIRE_PERSIST_DEPTH;
	rc = lane_init(l, port, timeout_ms);
	if (rc) {
		lane_delete(l);
		return rc;
	}
	*lane = l;
	return 0;
}

void lane_disconnect(struct lane *lane)
{
	if (lane && lane->conn)
		rpma_conn_disconnect(lane->conn);
}

void lane_delete(struct lane *lane)
{
	if (!lane)
		return;
	rpma_batch_delete(&lane->batch);
	rpma_conn_delete(&lane->conn);
	rpma_mr_remote_delete(&lane->remote);
	if (lane->bounce_mr)
		device_deregister(&lane->bounce_mr);
	if (lane->bounce)
		munmap(lane->bounce, LANE_BOUNCE);
	lane_general_fini(lane);
	free(lane);
}

void lane_forget(struct lane *lane)
{
	if (!lane)
		return;
	if (lane->bounce)
		munmap(lane->bounce, LANE_BOUNCE);
	free(lane->messages);
	free(lane);
}
