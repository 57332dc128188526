/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.c -- rdma-core as it is: hardware, siw and rxe.
 *
 * On a machine without an RDMA stack every call here fails with ENODEV or the like; nothing is
 * called before an address is probed.
 */
#include "provider/provider.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "provider/verbs_cm.h"
#include "provider/verbs_native.h"
#include "provider/wait.h"
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

/* RFC 5040 s5.2: the responder addresses the sink through its STag, and cards check that as a
 * Write. */
static int verbs_read_sink_access(const struct ibv_context *ctx)
{
	return ctx->device->transport_type == IBV_TRANSPORT_IWARP ? IBV_ACCESS_REMOTE_WRITE : 0;
}

static int verbs_qp_counters(struct ibv_qp *qp, const char *const **names, uint64_t *values,
			     int max)
{
	return provider_stubs.qp_counters(qp, names, values, max);
}

#define VERBS_ROW(ret, name, params, args, kind) .name = ibv_##name,
#define LIFE_ROW(ret, name, params, args, kind)  .name = verbs_##name,
const struct provider provider_verbs = {.name = "verbs",
					.owns_context = verbs_owns_context,
					.serves = verbs_serves,
					.event_str = rdma_event_str,
					.read_sink_access = verbs_read_sink_access,
					.qp_caps = verbs_qp_caps,
					.qp_counters = verbs_qp_counters,
					.post_list = verbs_post_list,
					/* Not rdma-core's own: verbs_cm.h, verbs_native.h. */
					.create_event_channel = verbs_create_event_channel,
					.destroy_event_channel = verbs_destroy_event_channel,
					.get_cm_event = verbs_get_cm_event,
					.ack_cm_event = verbs_ack_cm_event,
					.create_id = verbs_create_id,
					.destroy_id = verbs_destroy_id,
					.migrate_id = verbs_migrate_id,
					.connect = verbs_connect,
					.create_qp_ex = verbs_create_qp_ex,
					.getaddrinfo = rdma_getaddrinfo,
					.freeaddrinfo = rdma_freeaddrinfo,
					.bind_addr = rdma_bind_addr,
					.resolve_addr = rdma_resolve_addr,
					.resolve_route = rdma_resolve_route,
					.listen = rdma_listen,
					.accept = rdma_accept,
					.reject = rdma_reject,
					.disconnect = rdma_disconnect,
					.destroy_qp = rdma_destroy_qp,
					PROVIDER_VERBS_CALLS(VERBS_ROW)
						PROVIDER_LIFE_CALLS(LIFE_ROW)};
