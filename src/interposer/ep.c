/* SPDX-License-Identifier: BSD-3-Clause */
/* ep.c -- endpoints: calls that combine several calls of rdma_cm and wait for their events. */
#include <errno.h>
#include <stdlib.h>

#include "interposer/shim_id.h"

enum { RESOLVE_MS = 2000 };

/* Keep the attributes for the queue pairs of requests to a listening endpoint. */
static int ep_keep_attr(struct shim_id *s, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	if (!attr)
		return 0;
	s->ep_attr = malloc(sizeof(*s->ep_attr));
	if (!s->ep_attr)
		return -1;
	*s->ep_attr = *attr;
	s->ep_attr->qp_type = s->pub.qp_type;
	if (pd)
		s->pub.pd = pd;
	return 0;
}

static int ep_active(struct rdma_cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
		     struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS) ||
	    rdma_resolve_route(id, RESOLVE_MS))
		return -1;
	if (!attr)
		return 0;
	attr->qp_type = id->qp_type;
	return rdma_create_qp(id, pd, attr);
}

int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *id;
	int ret;

	if (rdma_create_id(NULL, &id, NULL, res->ai_port_space))
		return -1;
	id->qp_type = res->ai_qp_type;
	if (res->ai_flags & RAI_PASSIVE) {
		ret = rdma_bind_addr(id, res->ai_src_addr);
		if (!ret)
			ret = ep_keep_attr(shim_id_of(id), pd, attr);
	} else {
		ret = ep_active(id, res, pd, attr);
	}
	if (ret) {
		ret = errno;
		rdma_destroy_ep(id);
		return REFUSE_NEG(ret);
	}
	*out = id;
	return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

static int ep_take_request(struct shim_id *listener, struct rdma_cm_event *ev)
{
	struct ibv_qp_init_attr attr;

	if (ev->status)
		return REFUSE_NEG(ev->status < 0 ? -ev->status : ev->status);
	if (ev->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return REFUSE_NEG(EINVAL);
	if (!listener->ep_attr)
		return 0;
	attr = *listener->ep_attr;
	return rdma_create_qp(ev->id, listener->pub.pd, &attr);
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct shim_id *s = shim_id_of(listen);
	struct rdma_cm_event *ev;
	int err;

	if (!s->own_channel)
		return REFUSE_NEG(EINVAL);
	shim_id_ack_event(s);
	if (rdma_get_cm_event(listen->channel, &ev))
		return -1;
	if (ep_take_request(s, ev)) {
		err = errno;
		listen->event = ev;
		return REFUSE_NEG(err);
	}
	*id = ev->id;
	(*id)->event = ev;
	return 0;
}
