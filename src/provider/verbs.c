/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.c -- the provider for rdma-core: hardware, siw and rxe.
 *
 * On a machine without an RDMA stack every call here fails, for instance with ENODEV. No call is
 * made before an address is looked up.
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
	/*
	 * Under the interposer, calls of rdma-core go to the software RNIC, so the device that was
	 * found is not hardware.
	 */
	if (softrnic_owns_context(ctx)) {
		snprintf(
			why, why_len,
			"the only device behind it, %s, is the software RNIC, shown by the interposer",
			ctx->device->name);
		return false;
	}
	snprintf(why, why_len, "RDMA device %s %s it", ctx->device->name,
		 role == PROVIDER_PASSIVE ? "owns" : "reaches");
	return true;
}

/*
 * The responder addresses the sink of a Read by its STag (RFC 5040 s5.2), and cards check the
 * response like a Write.
 */
static int verbs_read_sink_access(const struct ibv_context *ctx)
{
	return ctx->device->transport_type == IBV_TRANSPORT_IWARP ? IBV_ACCESS_REMOTE_WRITE : 0;
}

static int verbs_qp_counters(struct ibv_qp *qp, const char *const **names, uint64_t *values,
			     int max)
{
	return provider_stubs.qp_counters(qp, names, values, max);
}

static bool verbs_gives_reasons(const struct ibv_context *ctx)
{
	return false;
}

/*
 * Reject reasons of the InfiniBand architecture (vol. 1, table 107): there is no listener; the
 * application rejects.
 */
enum { REJ_INVALID_SERVICE_ID = 8, REJ_CONSUMER = 28 };

/*
 * Which end rejected a connection? Devices for InfiniBand and RoCE report this. Among iWARP
 * devices, siw reports ECONNRESET if the peer's program rejected, and fails the connect itself if
 * there is no listener. The other iWARP devices report the same errno in both cases.
 */
static enum vext_rejection verbs_rejection(const struct rdma_cm_event *ev)
{
	if (ev->status == REJ_CONSUMER || ev->status == -ECONNRESET)
		return VEXT_REJECTION_REFUSED;
	if (ev->status == REJ_INVALID_SERVICE_ID)
		return VEXT_REJECTION_NO_LISTENER;
	return ev->param.conn.private_data_len ? VEXT_REJECTION_REFUSED : VEXT_REJECTION_UNKNOWN;
}

#define OWN_ROW(ret, name, ...)   .name = verbs_##name,
#define CM_ROW(ret, name, ...)    .name = rdma_##name,
#define VERBS_ROW(ret, name, ...) .name = ibv_##name,
const struct provider provider_verbs = {
	.name = "verbs",
	.owns_context = verbs_owns_context,
	.serves = verbs_serves,
	.event_str = rdma_event_str,
	.read_sink_access = verbs_read_sink_access,
	.gives_reasons = verbs_gives_reasons,
	.rejection = verbs_rejection,
	.qp_caps = verbs_qp_caps,
	.qp_counters = verbs_qp_counters,
	.post_list = verbs_post_list,
	.create_qp_ex = verbs_create_qp_ex,
	.connect = verbs_connect,
	.accept = rdma_accept,
	VEXT_EVENT_CALLS(OWN_ROW) VEXT_ID_CALLS(CM_ROW) VEXT_VERBS_CALLS(VERBS_ROW)
		PROVIDER_ADDR_CALLS(CM_ROW) PROVIDER_DEVICE_CALLS(VERBS_ROW)
			PROVIDER_LIFE_CALLS(OWN_ROW)};
