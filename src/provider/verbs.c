/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.c -- rdma-core as it is: hardware, siw and rxe.
 *
 * On a machine without an RDMA stack every call here fails with ENODEV or the like; nothing is
 * called before an address is probed.
 */
#include "provider/provider.h"

#include <stdio.h>
#include <string.h>

#include "softrnic/softrnic.h"

static bool verbs_owns_context(const struct ibv_context *ctx)
{
	return ctx && !softrnic_owns_context(ctx);
}

static bool verbs_serves(const char *addr, enum provider_role role, char *why, size_t why_len)
{
	struct ibv_context *ctx;
	const char *call = "";
	int err = provider_find_context(&provider_verbs, addr, role, &ctx, &call);

	if (err) {
		snprintf(why, why_len, "no RDMA device %s it (%s: %s)",
			 role == PROVIDER_PASSIVE ? "owns" : "reaches", call, strerror(err));
		return false;
	}
	/* Under the interposer rdma-core's calls end in the software RNIC, which is no hardware. */
	if (softrnic_owns_context(ctx)) {
		snprintf(why, why_len,
			 "the only device behind it, %s, is the software RNIC in disguise",
			 ctx->device->name);
		return false;
	}
	snprintf(why, why_len, "RDMA device %s %s it", ctx->device->name,
		 role == PROVIDER_PASSIVE ? "owns" : "reaches");
	return true;
}

/* rdma-core 44 has no call that posts a flush. */
static bool verbs_qp_has_flush(struct ibv_qp *qp)
{
	return provider_stubs.qp_has_flush(qp);
}

static int verbs_post_flush(struct ibv_qp *qp, uint64_t wr_id, unsigned int send_flags,
			    uint32_t rkey, uint64_t remote_addr, uint64_t len,
			    enum provider_flush_type type)
{
	return provider_stubs.post_flush(qp, wr_id, send_flags, rkey, remote_addr, len, type);
}

/* rdma-core 44 has one, but cannot tell whether the device and the peer do. */
static bool verbs_qp_has_atomic_write(struct ibv_qp *qp)
{
	return provider_stubs.qp_has_atomic_write(qp);
}

static int verbs_post_atomic_write(struct ibv_qp *qp, uint64_t wr_id, unsigned int send_flags,
				   uint32_t rkey, uint64_t remote_addr, const void *bytes)
{
	return provider_stubs.post_atomic_write(qp, wr_id, send_flags, rkey, remote_addr, bytes);
}

#define CM_ROW(ret, name, params, args, kind)    .name = rdma_##name,
#define VERBS_ROW(ret, name, params, args, kind) .name = ibv_##name,
const struct provider provider_verbs = {.name = "verbs",
					.owns_context = verbs_owns_context,
					.serves = verbs_serves,
					.event_str = rdma_event_str,
					.qp_has_flush = verbs_qp_has_flush,
					.post_flush = verbs_post_flush,
					.qp_has_atomic_write = verbs_qp_has_atomic_write,
					.post_atomic_write = verbs_post_atomic_write,
					PROVIDER_CM_CALLS(CM_ROW) PROVIDER_VERBS_CALLS(VERBS_ROW)};
