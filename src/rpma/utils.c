/* SPDX-License-Identifier: BSD-3-Clause */
/* utils.c -- finds the device of an address and its capabilities, and names events. */
#include "rpma/utils.h"

#include "rpma/err.h"

static int utils_find_context(const struct provider *prov, const char *addr,
			      enum provider_role role, struct ibv_context **ibv_ctx_ptr)
{
	const char *call = "";
	int err = provider_find_context(prov, addr, role, ibv_ctx_ptr, &call);

	return err ? PROVIDER_FAILED(err, "%s(addr=%s)", call, addr) : 0;
}

int rpma_utils_get_ibv_context(const char *addr, enum rpma_util_ibv_context_type type,
			       struct ibv_context **ibv_ctx_ptr)
{
	enum provider_role role = utils_role(type);
	const struct provider *prov;

	if (!addr || !ibv_ctx_ptr || !utils_is_context_type(type))
		return INVALID();
	prov = provider_for_addr(addr, role);
	return prov ? utils_find_context(prov, addr, role, ibv_ctx_ptr) : RPMA_E_PROVIDER;
}

int rpma_utils_get_ibv_context_from(const char *provider, const char *addr,
				    enum rpma_util_ibv_context_type type,
				    struct ibv_context **ibv_ctx_ptr)
{
	enum provider_role role = utils_role(type);
	const struct provider *prov;
	char why[UTILS_WHY_LEN];

	if (!provider || !addr || !ibv_ctx_ptr || !utils_is_context_type(type))
		return INVALID();
	prov = provider_named(provider);
	if (!prov) {
		LOG_ERROR("%s: no such provider; there are %s", provider, provider_names());
		return RPMA_E_INVAL;
	}
	if (!prov->serves(addr, role, why, sizeof(why))) {
		LOG_ERROR("provider %s cannot serve the address %s: %s", provider, addr, why);
		return RPMA_E_PROVIDER;
	}
	return utils_find_context(prov, addr, role, ibv_ctx_ptr);
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
	can->atomics = attr.orig_attr.atomic_cap != IBV_ATOMIC_NONE;
	can->flush = (attr.device_cap_flags_ex & VEXT_DEVICE_FLUSH) == VEXT_DEVICE_FLUSH;
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
		return INVALID();
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
