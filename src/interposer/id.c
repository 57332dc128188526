/* SPDX-License-Identifier: BSD-3-Clause */
/* id.c -- rdma_cm's calls on ids: addresses, connections, options. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "interposer/face.h"
#include "softrnic/softrnic.h"

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct face *f = face_of(id);
	int ret;

	face_choose(f, addr, NULL);
	WORDS_SCOPE w = f->words;
	ret = w->cm.bind_addr(f->inner, addr);
	face_sync(f);
	return ret;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
		      int timeout_ms)
{
	struct face *f = face_of(id);
	int ret;

	face_choose(f, src, dst);
	WORDS_SCOPE w = f->words;
	ret = w->cm.resolve_addr(f->inner, src, dst, timeout_ms);
	face_sync(f);
	return face_complete(f, ret);
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct face *f = face_of(id);
	WORDS_SCOPE w = f->words;
	int ret = w->cm.resolve_route(f->inner, timeout_ms);

	face_sync(f);
	return face_complete(f, ret);
}

/* An id that was not bound is bound to any address by listening, as rdma_cm does. */
int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct face *f = face_of(id);
	int ret;

	if (!id->route.addr.src_addr.sa_family && rdma_bind_addr(id, (struct sockaddr *)&any))
		return -1;
	WORDS_SCOPE w = f->words;
	ret = w->cm.listen(f->inner, backlog);
	face_sync(f);
	return ret;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct face *f = face_of(id);
	WORDS_SCOPE w = f->words;

	return face_complete(f, w->cm.connect(f->inner, param));
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct face *f = face_of(id);
	WORDS_SCOPE w = f->words;

	return face_complete(f, w->cm.accept(f->inner, param));
}

/* Its event may have come before the call, and been taken; then there is nothing to wait for. */
int rdma_disconnect(struct rdma_cm_id *id)
{
	struct face *f = face_of(id);
	WORDS_SCOPE w = f->words;
	int ret = w->cm.disconnect(f->inner);

	return f->ended ? ret : face_complete(f, ret);
}

/* The other calls say only yes or no. */
#define PASS(name, params, ...)                                                                    \
	int rdma_##name params                                                                     \
	{                                                                                          \
		struct face *f = face_of(id);                                                      \
		WORDS_SCOPE w = f->words;                                                          \
                                                                                                   \
		return w->cm.name(f->inner, ##__VA_ARGS__);                                        \
	}
PASS(reject, (struct rdma_cm_id * id, const void *pdata, uint8_t len), pdata, len)
PASS(reject_ece, (struct rdma_cm_id * id, const void *pdata, uint8_t len), pdata, len)
PASS(set_option, (struct rdma_cm_id * id, int level, int name, void *val, size_t len), level, name,
     val, len)
PASS(notify, (struct rdma_cm_id * id, enum ibv_event_type event), event)
PASS(establish, (struct rdma_cm_id * id))
PASS(init_qp_attr, (struct rdma_cm_id * id, struct ibv_qp_attr *attr, int *mask), attr, mask)
PASS(join_multicast, (struct rdma_cm_id * id, struct sockaddr *addr, void *context), addr, context)
PASS(join_multicast_ex,
     (struct rdma_cm_id * id, struct rdma_cm_join_mc_attr_ex *attr, void *context), attr, context)
PASS(leave_multicast, (struct rdma_cm_id * id, struct sockaddr *addr), addr)
PASS(set_local_ece, (struct rdma_cm_id * id, struct ibv_ece *ece), ece)
PASS(get_remote_ece, (struct rdma_cm_id * id, struct ibv_ece *ece), ece)

static __be16 port_of(const struct sockaddr *sa)
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
	return port_of(&id->route.addr.src_addr);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_addr);
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

/* A socket over datagrams and one-sided writes of rdma-core's own, inside its own library. */
int rsocket(int domain, int type, int protocol);
int rsocket(int domain, int type, int protocol)
{
	return REFUSE_NEG(EPROTONOSUPPORT);
}
