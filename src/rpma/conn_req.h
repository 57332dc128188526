/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_req.h -- a connection request, which is outgoing or has arrived at an endpoint. */
#ifndef RPMA_CONN_REQ_H
#define RPMA_CONN_REQ_H

#include "librpma.h"
#include "provider/provider.h"

/*
 * Make a request from a CONNECT_REQUEST event. The event is acknowledged even if the function
 * fails. A request that cannot be served is rejected, so that the peer does not wait.
 */
int conn_req_from_event(struct rpma_peer *peer, struct rdma_cm_event *event,
			const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr);

/*
 * Give an outgoing request a time limit if cfg sets none, so that the device reports which step did
 * not finish in time. With a device without such limits, only the caller's own limit ends the wait.
 */
void conn_req_limit(struct rpma_conn_req *req, const struct rpma_conn_cfg *cfg, int connect_ms);

#endif
