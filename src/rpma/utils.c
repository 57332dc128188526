/* SPDX-License-Identifier: BSD-3-Clause */
/* utils.c -- from an address to a device, what the device can, names of events. */
#include "rpma/utils.h"

#include "rpma/err.h"

int rpma_utils_get_ibv_context(const char *addr, enum rpma_util_ibv_context_type type,
			       struct ibv_context **ibv_ctx_ptr)
{
	enum provider_role role;
	const struct provider *prov;
	const char *call = "";
	int err;

	if (!addr || !ibv_ctx_ptr ||
	    (type != RPMA_UTIL_IBV_CONTEXT_LOCAL && type != RPMA_UTIL_IBV_CONTEXT_REMOTE))
		return RPMA_E_INVAL;
	role = type == RPMA_UTIL_IBV_CONTEXT_LOCAL ? PROVIDER_PASSIVE : PROVIDER_ACTIVE;
	prov = provider_for_addr(addr, role);
	if (!prov)
		return RPMA_E_PROVIDER;
	err = provider_find_context(prov, addr, role, ibv_ctx_ptr, &call);
	if (err)
		return PROVIDER_FAILED(err, "%s(addr=%s)", call, addr);
	return 0;
}

int utils_query(const struct provider *prov, struct ibv_context *ctx, struct abilities *can)
{
	const uint32_t needed = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
	struct ibv_device_attr_ex attr = {0};
	int err = prov->query_device_ex(ctx, NULL, &attr);

	if (err)
		return PROVIDER_FAILED(err, "%s", "ibv_query_device_ex()");
	can->odp = attr.odp_caps.general_caps & IBV_ODP_SUPPORT &&
		   (attr.odp_caps.per_transport_caps.rc_odp_caps & needed) == needed;
	can->send_sge = RPMA_SEND_SEGMENTS_MAX;
	if (attr.orig_attr.max_sge < RPMA_SEND_SEGMENTS_MAX)
		can->send_sge = attr.orig_attr.max_sge < 1 ? 1 : (uint32_t)attr.orig_attr.max_sge;
	return 0;
}

int rpma_utils_ibv_context_is_odp_capable(struct ibv_context *ibv_ctx, int *is_odp_capable)
{
	struct abilities can;
	int ret;

	if (!ibv_ctx || !is_odp_capable)
		return RPMA_E_INVAL;
	*is_odp_capable = 0;
	ret = utils_query(provider_of_context(ibv_ctx), ibv_ctx, &can);
	if (!ret)
		*is_odp_capable = can.odp;
	return ret;
}

const char *rpma_utils_conn_event_2str(enum rpma_conn_event conn_event)
{
	switch (conn_event) {
	case RPMA_CONN_UNDEFINED:
		return "Undefined connection event";
	case RPMA_CONN_ESTABLISHED:
		return "Connection established";
	case RPMA_CONN_CLOSED:
		return "Connection closed";
	case RPMA_CONN_LOST:
		return "Connection lost";
	case RPMA_CONN_REJECTED:
		return "Connection rejected";
	case RPMA_CONN_UNREACHABLE:
		return "Connection unreachable";
	}
	return "Unsupported connection event";
}

const char *rpma_utils_durability_2str(enum rpma_durability durability)
{
	switch (durability) {
	case RPMA_DURABILITY_VOLATILE:
		return "volatile";
	case RPMA_DURABILITY_FILE:
		return "file";
	case RPMA_DURABILITY_DAX:
		return "dax";
	case RPMA_DURABILITY_UNKNOWN:
		break;
	}
	return "unknown";
}
