/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>

#include "rpmem/env.h"
#include "rpmem/errmsg.h"

static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;

static int device_get(const char *provider, const char *addr, struct ibv_context **ctx)
{
	int rc;

	pthread_mutex_lock(&device_lock);
	rc = rpma_utils_get_ibv_context_from(provider, addr, RPMA_UTIL_IBV_CONTEXT_REMOTE, ctx);
	pthread_mutex_unlock(&device_lock);
	return rc;
}

/* Returns true if an RDMA device reaches one of the addresses. */
static bool device_verbs_reaches(const struct address *found, int count)
{
	struct ibv_context *ctx;

	for (int i = 0; i < count; i++)
		if (!device_get("verbs", found[i].host, &ctx))
			return true;
	return false;
}

static bool device_any_ipv4(const struct address *found, int count)
{
	struct in_addr in;

	for (int i = 0; i < count; i++)
		if (inet_pton(AF_INET, found[i].host, &in) == 1)
			return true;
	return false;
}

int device_choose(const struct target *target, struct device *device)
{
	struct address found[DEVICE_ADDRESSES];
	int count = target_resolve(target->host, "1", found, DEVICE_ADDRESSES);
	bool verbs = env_verbs_allowed() && device_verbs_reaches(found, count);

	device->is_softrnic = !verbs;
	device->unresolved = !count;
	device->ipv4 = !verbs && device_any_ipv4(found, count);
	if (verbs || env_sockets_allowed())
		return 0;
	if (!env_verbs_allowed())
		return errmsg_fail(ENOMEDIUM, "cannot find provider: RPMEM_ENABLE_VERBS=0 forbids "
					      "RDMA devices, and RPMEM_ENABLE_SOCKETS is not 1");
	return errmsg_fail(ENOMEDIUM,
			   "cannot find provider: no RDMA device of this machine reaches %s; "
			   "RPMEM_ENABLE_SOCKETS=1 allows the software RNIC over TCP",
			   target->host);
}

int device_open(const struct device *device, const char *addr, struct rpma_peer **peer)
{
	const char *provider = device->is_softrnic ? "softrnic" : "verbs";
	struct ibv_context *ctx;
	int rc = device_get(provider, addr, &ctx);

	if (!rc)
		rc = rpma_peer_new(ctx, peer);
	if (!rc)
		return 0;
	return errmsg_fail(rc == RPMA_E_NOMEM ? ENOMEM : ENOMEDIUM,
			   "cannot find provider for %s: %s", addr, rpma_err_last());
}

int device_register(struct rpma_peer *peer, void *ptr, size_t size, int usage,
		    struct rpma_mr_local **mr)
{
	int rc;

	pthread_mutex_lock(&device_lock);
	rc = rpma_mr_reg(peer, ptr, size, usage, mr);
	pthread_mutex_unlock(&device_lock);
	return rc;
}

void device_deregister(struct rpma_mr_local **mr)
{
	pthread_mutex_lock(&device_lock);
	rpma_mr_dereg(mr);
	pthread_mutex_unlock(&device_lock);
}
