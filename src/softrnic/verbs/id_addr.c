/* SPDX-License-Identifier: BSD-3-Clause */
/* id_addr.c -- names to addresses, addresses to sockets. Every address is the device's. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "softrnic/verbs/id.h"
#include "softrnic/softrnic.h"

static socklen_t addr_len(const struct sockaddr *sa)
{
	switch (sa->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

void sockaddr_copy(struct sockaddr_storage *dst, const struct sockaddr *src)
{
	memset(dst, 0, sizeof(*dst));
	memcpy(dst, src, addr_len(src));
}

static int gai_errno(int gai)
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
		return ENXIO; /* no such name, or it has no address */
	}
}

static int addr_dup(struct sockaddr **to, socklen_t *to_len, const void *addr, socklen_t len)
{
	*to = malloc(len);
	if (!*to)
		return ENOMEM;
	memcpy(*to, addr, len);
	*to_len = len;
	return 0;
}

/* `ai`: what the names mean, or NULL when the hints have the addresses. */
static int rai_fill(struct rdma_addrinfo *rai, const struct addrinfo *ai,
		    const struct rdma_addrinfo *hints)
{
	rai->ai_flags = hints ? hints->ai_flags : 0;
	rai->ai_qp_type = IBV_QPT_RC;
	rai->ai_port_space = RDMA_PS_TCP;
	if (!ai) {
		rai->ai_family = hints->ai_family;
		return hints->ai_dst_len ? addr_dup(&rai->ai_dst_addr, &rai->ai_dst_len,
						    hints->ai_dst_addr, hints->ai_dst_len)
					 : 0;
	}
	rai->ai_family = ai->ai_family;
	if (rai->ai_flags & RAI_PASSIVE)
		return addr_dup(&rai->ai_src_addr, &rai->ai_src_len, ai->ai_addr, ai->ai_addrlen);
	return addr_dup(&rai->ai_dst_addr, &rai->ai_dst_len, ai->ai_addr, ai->ai_addrlen);
}

static int rai_hint_source(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints)
{
	if (!hints || !hints->ai_src_len || rai->ai_src_addr)
		return 0;
	return addr_dup(&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr, hints->ai_src_len);
}

static bool hints_have_address(const struct rdma_addrinfo *hints)
{
	return hints && (hints->ai_src_len || hints->ai_dst_len);
}

/* getaddrinfo(3) takes the lower 16 bits of any number. */
static bool port_is_impossible(const char *service)
{
	char *end;
	long port = strtol(service, &end, 10);

	return end != service && !*end && (port < 0 || port > UINT16_MAX);
}

static int rai_new(const struct addrinfo *ai, const struct rdma_addrinfo *hints,
		   struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *rai = calloc(1, sizeof(*rai));
	int err = rai ? rai_fill(rai, ai, hints) : ENOMEM;

	if (!err)
		err = rai_hint_source(rai, hints);
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

	if (!node && !service)
		return id_errno(hints_have_address(hints) ? rai_new(NULL, hints, res) : EINVAL);
	if (service && port_is_impossible(service))
		return id_errno(EINVAL);
	ask.ai_flags = (flags & RAI_PASSIVE ? AI_PASSIVE : 0) |
		       (flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0);
	ask.ai_family = hints && (flags & RAI_FAMILY) ? hints->ai_family : AF_UNSPEC;
	gai = getaddrinfo(node, service, &ask, &ai);
	if (gai) {
		err = gai_errno(gai); /* before the log has another errno */
		LOG_INFO("%s:%s: %s", node ? node : "*", service ? service : "0",
			 gai_strerror(gai));
		return id_errno(err);
	}
	err = rai_new(ai, hints, res);
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

/* -errno or a bound socket. */
static int id_socket(const struct cmid *id, const struct sockaddr *addr)
{
	int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, v6only = id->family_only == FAMILY_ONLY, ret;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (addr->sa_family == AF_INET6 && id->family_only != FAMILY_DEFAULT)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof(v6only));
	if (bind(fd, addr, addr_len(addr)) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

void id_set_local(struct cmid *id, int fd)
{
	socklen_t len = sizeof(id->pub.route.addr.src_storage);

	getsockname(fd, &id->pub.route.addr.src_addr, &len);
}

static void id_set_device(struct cmid *id)
{
	id->pub.verbs = softrnic_context();
	id->pub.port_num = 1;
}

int softrnic_bind_addr(struct rdma_cm_id *pub, struct sockaddr *addr)
{
	struct cmid *id = cmid_of(pub);
	int fd;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (!addr_len(addr))
		return id_errno(EAFNOSUPPORT);
	if (id->fd >= 0 || id->conn || id->listener)
		return id_errno(EINVAL);
	fd = id_socket(id, addr);
	if (fd < 0)
		return id_errno(-fd);
	id->fd = fd;
	id_set_local(id, fd);
	id_set_device(id);
	return 0;
}

/* Ask the kernel which source address it would use, without sending anything. */
static int route_source(const struct sockaddr *dst, struct sockaddr_storage *src)
{
	int fd = socket(dst->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = 0;
	socklen_t len = sizeof(*src);

	if (fd < 0)
		return errno;
	if (connect(fd, dst, addr_len(dst)) || getsockname(fd, (struct sockaddr *)src, &len))
		ret = errno;
	close(fd);
	if (src->ss_family == AF_INET6)
		((struct sockaddr_in6 *)src)->sin6_port = 0;
	else
		((struct sockaddr_in *)src)->sin_port = 0;
	return ret;
}

int softrnic_resolve_addr(struct rdma_cm_id *pub, struct sockaddr *src, struct sockaddr *dst,
			  int timeout_ms)
{
	struct cmid *id = cmid_of(pub);
	struct rdma_addr *addr = &pub->route.addr;
	int err = 0;

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (!addr_len(dst))
		return id_errno(EAFNOSUPPORT);
	if (id->conn || id->listener)
		return id_errno(EINVAL);
	if (id->fd >= 0 && addr->src_addr.sa_family != dst->sa_family)
		return id_errno(EINVAL);
	if (src && id->fd < 0 && softrnic_bind_addr(pub, src)) /* what is bound stays so */
		return -1;
	sockaddr_copy(&addr->dst_storage, dst);
	if (id->fd < 0)
		err = route_source(dst, &addr->src_storage);
	if (!err)
		id_set_device(id);
	return id_result(id, err ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, err);
}

/* TCP finds its own way; there is no path record. */
int softrnic_resolve_route(struct rdma_cm_id *pub, int timeout_ms)
{
	struct cmid *id = cmid_of(pub);

	if (id_is_removed(id))
		return id_errno(ENODEV);
	if (!pub->verbs || !pub->route.addr.dst_addr.sa_family)
		return id_errno(EINVAL);
	return id_result(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}
