/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * id_addr.c -- resolves names to addresses, and addresses to links. The device accepts every
 * address.
 */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "softrnic/io/link_sockaddr.h"
#include "softrnic/verbs/id.h"
#include "softrnic/softrnic.h"

void id_set_addr(struct sockaddr_storage *ss, const struct link_addr *addr)
{
	link_addr_to(addr, ss);
}

static int id_addr_gai_errno(int gai)
{
	switch (gai) {
	case EAI_MEMORY:
		return ENOMEM;
	case EAI_SYSTEM:
		return errno;
	case EAI_AGAIN:
		return EAGAIN;
	case EAI_SERVICE:
		return EINVAL;
	case EAI_FAMILY:
		return EAFNOSUPPORT;
	default:
		return ENXIO; /* the name is unknown, or has no address */
	}
}

static int id_addr_dup(struct sockaddr **to, socklen_t *to_len, const void *addr, socklen_t len)
{
	*to = malloc(len);
	if (!*to)
		return ENOMEM;
	memcpy(*to, addr, len);
	*to_len = len;
	return 0;
}

/* Fill in the result. `ai` contains the resolved names; it is NULL if the hints contain the
 * addresses. */
static int id_addr_info_fill(struct rdma_addrinfo *rai, const struct addrinfo *ai,
			     const struct rdma_addrinfo *hints)
{
	rai->ai_flags = hints ? hints->ai_flags : 0;
	rai->ai_qp_type = IBV_QPT_RC;
	rai->ai_port_space = RDMA_PS_TCP;
	if (!ai) {
		rai->ai_family = hints->ai_family;
		return hints->ai_dst_len ? id_addr_dup(&rai->ai_dst_addr, &rai->ai_dst_len,
						       hints->ai_dst_addr, hints->ai_dst_len)
					 : 0;
	}
	rai->ai_family = ai->ai_family;
	if (rai->ai_flags & RAI_PASSIVE)
		return id_addr_dup(&rai->ai_src_addr, &rai->ai_src_len, ai->ai_addr,
				   ai->ai_addrlen);
	return id_addr_dup(&rai->ai_dst_addr, &rai->ai_dst_len, ai->ai_addr, ai->ai_addrlen);
}

/* Is the port number too large? getaddrinfo(3) silently truncates it to 16 bits. */
static bool id_addr_port_is_invalid(const char *service)
{
	char *end;
	long port = strtol(service, &end, 10);

	return end != service && !*end && (port < 0 || port > UINT16_MAX);
}

static int id_addr_info_new(const struct addrinfo *ai, const struct rdma_addrinfo *hints,
			    struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *rai = calloc(1, sizeof(*rai));
	int err = rai ? id_addr_info_fill(rai, ai, hints) : ENOMEM;

	if (!err && hints && hints->ai_src_len && !rai->ai_src_addr)
		err = id_addr_dup(&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr,
				  hints->ai_src_len);
	if (err) {
		softrnic_freeaddrinfo(rai);
		return err;
	}
	*res = rai;
	return 0;
}

int softrnic_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
			 struct rdma_addrinfo **res)
{
	int flags = hints ? hints->ai_flags : 0, gai, err;
	struct addrinfo ask = {.ai_socktype = SOCK_STREAM}, *ai;
	bool hinted = hints && (hints->ai_src_len || hints->ai_dst_len);

	if (!node && !service)
		return id_errno(hinted ? id_addr_info_new(NULL, hints, res) : EINVAL);
	if (service && id_addr_port_is_invalid(service))
		return id_errno(EINVAL);
	ask.ai_flags = (flags & RAI_PASSIVE ? AI_PASSIVE : 0) |
		       (flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0);
	ask.ai_family = hints && (flags & RAI_FAMILY) ? hints->ai_family : AF_UNSPEC;
	gai = getaddrinfo(node, service, &ask, &ai);
	if (gai) {
		/* convert the error now, because the log call may change errno */
		err = id_addr_gai_errno(gai);
		LOG_INFO("%s:%s: %s", node ? node : "*", service ? service : "0",
			 gai_strerror(gai));
		return id_errno(err);
	}
	err = id_addr_info_new(ai, hints, res);
	freeaddrinfo(ai);
	return id_errno(err);
}

void softrnic_freeaddrinfo(struct rdma_addrinfo *res)
{
	if (!res)
		return;
	free(res->ai_src_addr);
	free(res->ai_dst_addr);
	free(res);
}

void id_set_local(struct cmid *id, const struct link_addr *local)
{
	id_set_addr(&id->pub.route.addr.src_storage, local);
}

static void id_set_device(struct cmid *id)
{
	id->pub.verbs = softrnic_context();
	id->pub.port_num = 1;
}

int softrnic_bind_addr(struct rdma_cm_id *pub, struct sockaddr *addr)
{
	struct link_addr at = link_addr_from(addr);
	const struct link_ops *ops = link_of(&at);
	struct cmid *id = cmid_of(pub);
	int ret;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (!ops)
		return id_errno(EAFNOSUPPORT);
	if (id->bound || id->conn || id->listener)
		return id_errno(EINVAL);
	ret = ops->connecting->bind(&at, id->families, &id->bound);
	if (ret)
		return id_errno(-ret);
	if (!id->bound->ops->local(id->bound, &at))
		id_set_local(id, &at);
	id_set_device(id);
	return 0;
}

int softrnic_resolve_addr(struct rdma_cm_id *pub, struct sockaddr *src, struct sockaddr *dst,
			  int timeout_ms)
{
	struct link_addr to = link_addr_from(dst), from = {.family = LINK_NONE};
	const struct link_ops *ops = link_of(&to);
	struct cmid *id = cmid_of(pub);
	struct rdma_addr *addr = &pub->route.addr;
	int ret = 0;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (!ops)
		return id_errno(EAFNOSUPPORT);
	if (id->conn || id->listener)
		return id_errno(EINVAL);
	if (id->bound && addr->src_addr.sa_family != dst->sa_family)
		return id_errno(EINVAL);
	/* if the id is bound already, it keeps its address */
	if (src && !id->bound && softrnic_bind_addr(pub, src))
		return -1;
	id_set_addr(&addr->dst_storage, &to);
	if (!id->bound) {
		ret = ops->connecting->route(&to, &from);
		id_set_addr(&addr->src_storage, &from);
	}
	if (!ret)
		id_set_device(id);
	return id_result(id, ret ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, -ret);
}

/* There is nothing to resolve: a link finds its route by itself, so there is no path record. */
int softrnic_resolve_route(struct rdma_cm_id *pub, int timeout_ms)
{
	struct cmid *id = cmid_of(pub);

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (!pub->verbs || !pub->route.addr.dst_addr.sa_family)
		return id_errno(EINVAL);
	return id_result(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}
