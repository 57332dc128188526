/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_req.h -- a connection request, outgoing or incoming at an endpoint. */
#ifndef RPMA_CONN_REQ_H
#define RPMA_CONN_REQ_H

#include "librpma.h"
#include "provider/provider.h"

/*
 * The request behind a CONNECT_REQUEST event. The event is acknowledged in any case. A request that
 * cannot be served is rejected, so that the peer does not wait.
 */
int conn_req_from_event(struct rpma_peer *peer, struct rdma_cm_event *event,
			const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr);

/*
 * An outgoing request that has no limit of its own gets one, so that the device reports how far it
 * came. A device without such limits leaves that to the caller's own.
 */
void conn_req_limit(struct rpma_conn_req *req, const struct rpma_conn_cfg *cfg, int connect_ms);

#endif
