/* SPDX-License-Identifier: BSD-3-Clause */
/* addr.c -- the steps from an address to an id on a device, which all providers share. */
#include "provider/provider.h"

#include <errno.h>

static const int PROBE_TIMEOUT_MS = 1000;

/*
 * Returns the errno of a failed call. It never returns 0, so a failure cannot count as a success.
 */
static int addr_failed(const char **call, const char *name)
{
	*call = name;
	return errno ? errno : EIO;
}

int provider_address_id(const struct provider *prov, struct rdma_cm_id *id, const char *addr,
			const char *port, enum provider_role role, int timeout_ms,
			const char **call)
{
	const struct rdma_addrinfo hints = {.ai_flags = role == PROVIDER_PASSIVE ? RAI_PASSIVE : 0,
					    .ai_qp_type = IBV_QPT_RC,
					    .ai_port_space = RDMA_PS_TCP};
	struct rdma_addrinfo *info = NULL;
	int err = 0;

	errno = 0;
	if (prov->getaddrinfo(addr, port, &hints, &info)) {
		/* rdma_getaddrinfo() does not set errno for an unknown name. */
		if (!errno)
			errno = ENXIO;
		return addr_failed(call, "rdma_getaddrinfo");
	}
	if (role == PROVIDER_PASSIVE) {
		if (prov->bind_addr(id, info->ai_src_addr))
			err = addr_failed(call, "rdma_bind_addr");
	} else if (prov->resolve_addr(id, info->ai_src_addr, info->ai_dst_addr, timeout_ms)) {
		err = addr_failed(call, "rdma_resolve_addr");
	}
	prov->freeaddrinfo(info);
	return err;
}

int provider_find_context(const struct provider *prov, const char *addr, enum provider_role role,
			  struct ibv_context **ctx, const char **call)
{
	struct ibv_context *found;
	struct rdma_cm_id *id;
	int err;

	errno = 0;
	if (prov->create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return addr_failed(call, "rdma_create_id");
	err = provider_address_id(prov, id, addr, NULL, role, PROBE_TIMEOUT_MS, call);
	found = id->verbs;
	if (!err && !found) {
		/* A wildcard address belongs to every device, so it selects no device. */
		*call = "rdma_bind_addr";
		err = ENODEV;
	}
	if (prov->destroy_id(id) && !err)
		err = addr_failed(call, "rdma_destroy_id");
	if (!err)
		*ctx = found;
	return err;
}
