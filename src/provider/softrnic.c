/* SPDX-License-Identifier: BSD-3-Clause */
/* softrnic.c -- the provider for the software RNIC, which needs no hardware and serves every
 * address of this machine. */
#include "provider/provider.h"

#include <stdio.h>

#include "softrnic/softrnic.h"

static bool provider_softrnic_serves(const char *addr, enum provider_role role, char *why,
				     size_t why_len)
{
	snprintf(why, why_len, "%s", softrnic_why());
	return true;
}

/*
 * Announce to the peer that this end does not flush by reading, so that the peer may answer Reads
 * without writing back. librpma flushes by the Flush operation if the peer agreed to the
 * extensions. Peers that did not agree get no announcement.
 */
static bool provider_softrnic_announce(struct rdma_cm_id *id)
{
	errno = softrnic_announce_flushes(id);
	return errno == 0;
}

static int provider_softrnic_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	return provider_softrnic_announce(id) ? softrnic_connect(id, param) : -1;
}

static int provider_softrnic_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	return provider_softrnic_announce(id) ? softrnic_accept(id, param) : -1;
}

/*
 * No right of a remote write is needed for the sink, because softrnic checks every Read Response
 * against its Read.
 */
static int provider_softrnic_read_sink_access(const struct ibv_context *ctx)
{
	return 0;
}

static enum vext_rejection provider_softrnic_rejection(const struct rdma_cm_event *ev)
{
	switch (ev->status) {
	case -EACCES:
		return VEXT_REJECTION_REFUSED;
	case -ECONNREFUSED:
		return VEXT_REJECTION_NO_LISTENER;
	case -ECONNRESET:
	case -EPIPE:
		return VEXT_REJECTION_CLOSED;
	default:
		return VEXT_REJECTION_UNKNOWN;
	}
}

#define ROW(ret, name, ...) .name = softrnic_##name,
const struct provider provider_softrnic = {
	.name = "softrnic",
	.owns_context = softrnic_owns_context,
	.serves = provider_softrnic_serves,
	.event_str = softrnic_event_str,
	.read_sink_access = provider_softrnic_read_sink_access,
	.gives_reasons = softrnic_owns_context,
	.rejection = provider_softrnic_rejection,
	.qp_caps = softrnic_qp_caps,
	.qp_counters = softrnic_qp_counters,
	.post_list = softrnic_post,
	.create_qp_ex = softrnic_create_qp_ex,
	.connect = provider_softrnic_connect,
	.accept = provider_softrnic_accept,
	VEXT_EVENT_CALLS(ROW) VEXT_ID_CALLS(ROW) VEXT_VERBS_CALLS(ROW) PROVIDER_ADDR_CALLS(ROW)
		PROVIDER_DEVICE_CALLS(ROW) PROVIDER_LIFE_CALLS(ROW)};

int provider_durability(const void *addr, size_t len, uint32_t *cls, char *why, size_t why_size)
{
	return softrnic_durability(addr, len, cls, why, why_size);
}

void provider_log_set(log_sink *sink, enum log_level level)
{
	softrnic_log_set(sink, level);
}
