/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choose.c -- chooses the implementation for an id: rdma-core if it has a device with the id's
 * address, else the software RNIC.
 */
#include <netinet/in.h>
#include <poll.h>

#include "interposer/shim_id.h"
#include "softrnic/softrnic.h"

/* Time limit for look-ups by rdma_cm, which are faster than this on a local network. */
enum { PROBE_TIMEOUT_MS = 1000 };

static bool choose_is_any(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		return ((const struct sockaddr_in *)sa)->sin_addr.s_addr == htonl(INADDR_ANY);
	return sa->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)sa)->sin6_addr);
}

static bool choose_resolves(const struct ops *rdma_core, struct rdma_event_channel *ch,
			    struct rdma_cm_id *id, struct sockaddr *local, struct sockaddr *remote)
{
	struct pollfd readable = {.fd = ch->fd, .events = POLLIN};
	struct rdma_cm_event *ev;
	bool yes;

	if (rdma_core->cm.resolve_addr(id, local, remote, PROBE_TIMEOUT_MS) ||
	    poll(&readable, 1, 2 * PROBE_TIMEOUT_MS) != 1 || rdma_core->cm.get_cm_event(ch, &ev))
		return false;
	yes = ev->event == RDMA_CM_EVENT_ADDR_RESOLVED && id->verbs;
	rdma_core->cm.ack_cm_event(ev);
	return yes;
}

/* Does rdma-core serve these addresses? The look-up uses a new id, because an id keeps the address
 * that it was bound to. */
static bool choose_serves(const struct ops *rdma_core, struct sockaddr *local,
			  struct sockaddr *remote)
{
	struct rdma_event_channel *ch = rdma_core->cm.create_event_channel();
	struct rdma_cm_id *id = NULL;
	bool yes = false;

	if (ch && !rdma_core->cm.create_id(ch, &id, NULL, RDMA_PS_TCP))
		yes = remote ? choose_resolves(rdma_core, ch, id, local, remote)
			     : !rdma_core->cm.bind_addr(id, local) && id->verbs;
	if (id)
		rdma_core->cm.destroy_id(id);
	if (ch)
		rdma_core->cm.destroy_event_channel(ch);
	return yes;
}

/* A wildcard address belongs to every device, so it selects no device. */
void shim_id_choose(struct shim_id *s, struct sockaddr *local, struct sockaddr *remote)
{
	const struct ops *rdma_core = rdma_core_ops();
	struct shim_channel *ch = shim_channel_of(s->pub.channel);
	struct rdma_cm_id *inner;

	if (!rdma_core || s->ops == rdma_core || s->inner->verbs || !ch->rdma_core)
		return;
	if ((!remote && choose_is_any(local)) || !choose_serves(rdma_core, local, remote))
		return;
	if (rdma_core->cm.create_id(ch->rdma_core, &inner, s, s->pub.ps))
		return;
	softrnic_destroy_id(s->inner);
	s->inner = inner;
	s->ops = rdma_core;
}
