/* SPDX-License-Identifier: BSD-3-Clause */
/* id.c -- rdma_cm's calls on ids: creation and end, addresses, connections, options. */
#include <errno.h>
#include <netinet/in.h>

#include "interposer/shim_id.h"
#include "softrnic/softrnic.h"

/* Check the port space. The port space of IPoIB is accepted, as with any iWARP device; only the
 * creation of its queue pairs fails. */
static int id_check_ps(enum rdma_port_space ps)
{
	switch (ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return 0;
	default:
		return REFUSE_NEG(EPROTONOSUPPORT);
	}
}

static struct shim_id *id_create(struct shim_channel *channel, void *context,
				 enum rdma_port_space ps)
{
	struct shim_channel *ch = channel ? channel : shim_channel_new();
	struct shim_id *s = NULL;

	if (ch && !id_check_ps(ps))
		s = shim_id_new(ch, context, ps);
	if (s)
		s->own_channel = channel ? NULL : ch;
	if (s && !softrnic_create_id(ch->softrnic, &s->inner, s,
				     ps == RDMA_PS_UDP ? RDMA_PS_UDP : RDMA_PS_TCP))
		return s;
	if (s)
		shim_id_free(s);
	else if (ch && !channel)
		shim_channel_delete(ch);
	return NULL;
}

int shim_id_destroy(struct shim_id *s)
{
	OPS_SCOPE ops = s->ops;
	struct ibv_qp *qp = ops->is_rdma_core ? NULL : s->pub.qp;
	int ret;

	if (qp && shim_id_remember_qp(qp))
		return -1;
	shim_id_ack_event(s);
	if (qp)
		shim_qp_destroy(s);
	ret = ops->cm.destroy_id(s->inner);
	if (!ret)
		shim_id_free(s);
	return ret;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	struct shim_id *s = id_create(channel ? shim_channel_of(channel) : NULL, context, ps);

	if (!s)
		return -1;
	*id = &s->pub;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	return shim_id_destroy(shim_id_of(id));
}

static int id_bind_addr(struct shim_id *s, struct sockaddr *addr)
{
	int ret;

	shim_id_choose(s, addr, NULL);
	OPS_SCOPE ops = s->ops;
	ret = ops->cm.bind_addr(s->inner, addr);
	shim_id_sync(s);
	return ret;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return id_bind_addr(shim_id_of(id), addr);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
		      int timeout_ms)
{
	struct shim_id *s = shim_id_of(id);
	int ret;

	shim_id_choose(s, src, dst);
	OPS_SCOPE ops = s->ops;
	ret = ops->cm.resolve_addr(s->inner, src, dst, timeout_ms);
	shim_id_sync(s);
	return shim_id_complete(s, ret);
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct shim_id *s = shim_id_of(id);
	OPS_SCOPE ops = s->ops;
	int ret = ops->cm.resolve_route(s->inner, timeout_ms);

	shim_id_sync(s);
	return shim_id_complete(s, ret);
}

/* If the id is not bound, rdma_listen() of rdma_cm binds it to any address. */
int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct shim_id *s = shim_id_of(id);
	int ret;

	if (!id->route.addr.src_addr.sa_family && id_bind_addr(s, (struct sockaddr *)&any))
		return -1;
	OPS_SCOPE ops = s->ops;
	ret = ops->cm.listen(s->inner, backlog);
	shim_id_sync(s);
	return ret;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct shim_id *s = shim_id_of(id);
	OPS_SCOPE ops = s->ops;

	return shim_id_complete(s, ops->cm.connect(s->inner, param));
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct shim_id *s = shim_id_of(id);
	OPS_SCOPE ops = s->ops;

	int ret = ops->cm.accept(s->inner, param);

	/* With datagrams no event follows. */
	return id->ps == RDMA_PS_UDP ? ret : shim_id_complete(s, ret);
}

int rdma_reject(struct rdma_cm_id *id, const void *pdata, uint8_t len)
{
	struct shim_id *s = shim_id_of(id);
	OPS_SCOPE ops = s->ops;

	return ops->cm.reject(s->inner, pdata, len);
}

/* If the program has already taken the DISCONNECTED event, the call must not wait for the event. */
int rdma_disconnect(struct rdma_cm_id *id)
{
	struct shim_id *s = shim_id_of(id);
	OPS_SCOPE ops = s->ops;
	int ret = ops->cm.disconnect(s->inner);

	return s->ended ? ret : shim_id_complete(s, ret);
}

/* The remaining calls only pass on the inner id. After the first statement `id` is the inner id. */
#define PASS(ret, name, params, args, ...)                                                         \
	ret rdma_##name params                                                                     \
	{                                                                                          \
		OPS_SCOPE ops = shim_id_of(id)->ops;                                               \
                                                                                                   \
		id = shim_id_of(id)->inner;                                                        \
		return ops->cm.name args;                                                          \
	}
OPS_CM_CALLS(PASS)
OPS_CM_LACKED_CALLS(PASS)

static __be16 id_port_of(const struct sockaddr *sa)
{
	switch (sa->sa_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)sa)->sin_port;
	case AF_INET6:
		return ((const struct sockaddr_in6 *)sa)->sin6_port;
	default:
		return 0;
	}
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return id_port_of(&id->route.addr.src_addr);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return id_port_of(&id->route.addr.dst_addr);
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	int ret = softrnic_getaddrinfo(node, service, hints, res);

	if (ret || !hints)
		return ret;
	if (hints->ai_port_space)
		(*res)->ai_port_space = hints->ai_port_space;
	if (hints->ai_qp_type)
		(*res)->ai_qp_type = hints->ai_qp_type;
	return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	softrnic_freeaddrinfo(res);
}

/* rsocket() is not supported: it needs datagram sockets and one-sided writes of rdma-core's own
 * library. */
int rsocket(int domain, int type, int protocol);
int rsocket(int domain, int type, int protocol)
{
	return REFUSE_NEG(EPROTONOSUPPORT);
}
