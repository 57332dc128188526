/* SPDX-License-Identifier: BSD-3-Clause */
/* ep.c -- a listening endpoint. */
#include <netinet/in.h>
#include <stdlib.h>

#include "rpma/conn_req.h"
#include "rpma/err.h"
#include "rpma/event.h"
#include "rpma/peer.h"

struct rpma_ep {
	struct rpma_peer *peer;
	struct rdma_event_channel *evch;
	struct rdma_cm_id *id;
};

static int ep_open(struct rpma_ep *ep, const char *addr, const char *port)
{
	const struct provider *prov = ep->peer->prov;
	const char *call = "";
	int err;

	ep->evch = prov->create_event_channel();
	if (!ep->evch)
		return PROVIDER_FAILED(errno, "%s", "rdma_create_event_channel()");
	if (prov->create_id(ep->evch, &ep->id, NULL, RDMA_PS_TCP)) {
		ep->id = NULL;
		return PROVIDER_FAILED(errno, "%s", "rdma_create_id()");
	}
	err = provider_address_id(prov, ep->id, addr, port, PROVIDER_PASSIVE, 0, &call);
	if (err)
		return PROVIDER_FAILED(err, "%s(addr=%s, port=%s)", call, addr, port);
	if (prov->listen(ep->id, 0))
		return PROVIDER_FAILED(errno, "rdma_listen(addr=%s, port=%s)", addr, port);
	return 0;
}

int rpma_ep_listen(struct rpma_peer *peer, const char *addr, const char *port,
		   struct rpma_ep **ep_ptr)
{
	struct rpma_ep *ep;
	int ret;

	if (!peer || !addr || !port || !ep_ptr)
		return INVALID();
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return NOMEM();
	ep->peer = peer;
	ret = ep_open(ep, addr, port);
	if (ret) {
		rpma_ep_shutdown(&ep);
		return ret;
	}
	LOG_NOTICE("Waiting for incoming connection on %s:%s", addr, port);
	*ep_ptr = ep;
	return 0;
}

int rpma_ep_shutdown(struct rpma_ep **ep_ptr)
{
	struct rpma_ep *ep;
	int ret = 0;

	if (!ep_ptr)
		return INVALID();
	ep = *ep_ptr;
	if (!ep)
		return 0;
	if (ep->id && ep->peer->prov->destroy_id(ep->id))
		ret = PROVIDER_FAILED(errno, "%s", "rdma_destroy_id()");
	if (ep->evch)
		ep->peer->prov->destroy_event_channel(ep->evch);
	free(ep);
	*ep_ptr = NULL;
	return ret;
}

int rpma_ep_get_fd(const struct rpma_ep *ep, int *fd)
{
	if (!ep || !fd)
		return INVALID();
	*fd = ep->evch->fd;
	return 0;
}

int rpma_ep_get_port(const struct rpma_ep *ep, uint16_t *port)
{
	const struct rdma_addr *addr;

	if (!ep || !port)
		return INVALID();
	addr = &ep->id->route.addr;
	*port = ntohs(addr->src_addr.sa_family == AF_INET6 ? addr->src_sin6.sin6_port
							   : addr->src_sin.sin_port);
	return 0;
}

static int ep_request_take(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
			   struct rdma_cm_event *event, struct rpma_conn_req **req_ptr)
{
	const struct provider *prov = ep->peer->prov;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		LOG_ERROR("the endpoint received an event that is no connection request: %s",
			  prov->event_str(event->event));
		prov->ack_cm_event(event);
		return RPMA_E_INVAL;
	}
	return conn_req_from_event(ep->peer, event, cfg, req_ptr);
}

int rpma_ep_next_conn_req(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
			  struct rpma_conn_req **req_ptr)
{
	struct rdma_cm_event *event;

	if (!ep || !req_ptr)
		return INVALID();
	if (ep->peer->prov->get_cm_event(ep->evch, &event))
		return is_no_event(errno) ? RPMA_E_NO_EVENT
					  : PROVIDER_FAILED(errno, "%s", "rdma_get_cm_event()");
	return ep_request_take(ep, cfg, event, req_ptr);
}

int rpma_ep_next_conn_req_timeout(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
				  int timeout_ms, struct rpma_conn_req **req_ptr)
{
	struct rdma_cm_event *event;
	int ret;

	if (!ep || !req_ptr || timeout_ms < -1)
		return INVALID();
	ret = event_wait(ep->peer->prov, ep->evch, timeout_ms,
			 "no connection request came: wait again, or see whether clients use this "
			 "address and port",
			 &event);
	return ret ? ret : ep_request_take(ep, cfg, event, req_ptr);
}
