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

#include "provider/wait.h"
#include "softrnic/softrnic.h"

enum { CHAIN_MAX = 16 };

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

/* rdma-core 44 posts no flush, and cannot tell what else the device and the peer know. */
static uint32_t verbs_qp_caps(struct ibv_qp *qp)
{
	return provider_stubs.qp_caps(qp);
}

static int verbs_qp_counters(struct ibv_qp *qp, const char *const **names, uint64_t *values,
			     int max)
{
	return provider_stubs.qp_counters(qp, names, values, max);
}

/* Chained, so that the device is told once. */
static int post_chain(struct ibv_qp *qp, const struct softrnic_wr *wrs, int n, int *posted)
{
	struct ibv_send_wr chain[CHAIN_MAX], *bad;
	int err;

	for (int i = 0; i < n; i++) {
		chain[i] = wrs[i].wr;
		chain[i].next = i + 1 < n ? &chain[i + 1] : NULL;
	}
	err = ibv_post_send(qp, chain, &bad);
	*posted += err ? (int)(bad - chain) : n;
	return err;
}

static int verbs_post_list(struct ibv_qp *qp, const struct softrnic_wr *wrs, int n, int *posted)
{
	int err = 0;

	*posted = 0;
	for (int i = 0; i < n; i++)
		if (wrs[i].op != SOFTRNIC_OP_VERBS)
			return EOPNOTSUPP;
	while (!err && *posted < n) {
		int left = n - *posted;

		err = post_chain(qp, wrs + *posted, left < CHAIN_MAX ? left : CHAIN_MAX, posted);
	}
	return err;
}

/* rdma_cm's limits are the kernel's own. */
static int verbs_set_limits(struct rdma_cm_id *id, int connect_ms, int liveness_ms)
{
	return connect_ms || liveness_ms ? EOPNOTSUPP : 0;
}

/* Only rdma_destroy_id() ends what rdma_connect() began. */
static int verbs_cancel_connect(struct rdma_cm_id *id)
{
	return provider_stubs.cancel_connect(id);
}

#define CM_ROW(ret, name, params, args, kind)    .name = rdma_##name,
#define VERBS_ROW(ret, name, params, args, kind) .name = ibv_##name,
#define LIFE_ROW(ret, name, params, args, kind)  .name = verbs_##name,
const struct provider provider_verbs = {.name = "verbs",
					.owns_context = verbs_owns_context,
					.serves = verbs_serves,
					.event_str = rdma_event_str,
					.qp_caps = verbs_qp_caps,
					.qp_counters = verbs_qp_counters,
					.post_list = verbs_post_list,
					PROVIDER_CM_CALLS(CM_ROW) PROVIDER_VERBS_CALLS(VERBS_ROW)
						PROVIDER_LIFE_CALLS(LIFE_ROW)};
