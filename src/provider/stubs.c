/* SPDX-License-Identifier: BSD-3-Clause */
/* stubs.c -- a complete table that supports nothing, so that no caller needs to test for NULL. */
#include "provider/provider.h"

#include <errno.h>
#include <stdio.h>

#define STUB_NUL (errno = EOPNOTSUPP, NULL)
#define STUB_NEG (errno = EOPNOTSUPP, -1)
#define STUB_ERR EOPNOTSUPP
#define STUB_VOID

#define STUB(ret, name, params, args, failure, act)                                                \
	static ret stub_##name params                                                              \
	{                                                                                          \
		return STUB_##failure;                                                             \
	}
PROVIDER_CALLS(STUB)

static bool stub_owns_context(const struct ibv_context *ctx)
{
	return false;
}

static bool stub_serves(const char *addr, enum provider_role role, char *why, size_t why_len)
{
	snprintf(why, why_len, "there is no provider behind it");
	return false;
}

static const char *stub_event_str(enum rdma_cm_event_type event)
{
	return "unknown event";
}

static int stub_read_sink_access(const struct ibv_context *ctx)
{
	return 0;
}

static bool stub_gives_reasons(const struct ibv_context *ctx)
{
	return false;
}

static enum vext_rejection stub_rejection(const struct rdma_cm_event *ev)
{
	return VEXT_REJECTION_UNKNOWN;
}

static uint32_t stub_qp_caps(struct ibv_qp *qp)
{
	return VEXT_CAP_KNOWN;
}

static int stub_qp_counters(struct ibv_qp *qp, const char *const **names, uint64_t *values, int max)
{
	return -1;
}

#define ROW(ret, name, ...) .name = stub_##name,
const struct provider provider_stubs = {.name = "stubs",
					.owns_context = stub_owns_context,
					.serves = stub_serves,
					.event_str = stub_event_str,
					.read_sink_access = stub_read_sink_access,
					.gives_reasons = stub_gives_reasons,
					.rejection = stub_rejection,
					.qp_caps = stub_qp_caps,
					.qp_counters = stub_qp_counters,
					PROVIDER_CALLS(ROW)};
