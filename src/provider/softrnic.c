/* SPDX-License-Identifier: BSD-3-Clause */
/* softrnic.c -- the software RNIC: every address of this machine, no hardware. */
#include "provider/provider.h"

#include <stdio.h>

#include "softrnic/softrnic.h"

_Static_assert((int)PROVIDER_FLUSH_VISIBLE == (int)SOFTRNIC_FLUSH_VISIBLE &&
		       (int)PROVIDER_FLUSH_PERSISTENT == (int)SOFTRNIC_FLUSH_PERSISTENT,
	       "flush types are passed through");

static bool soft_serves(const char *addr, enum provider_role role, char *why, size_t why_len)
{
	snprintf(why, why_len, "%s", softrnic_why());
	return true;
}

static int soft_post_flush(struct ibv_qp *qp, uint64_t wr_id, unsigned int send_flags,
			   uint32_t rkey, uint64_t remote_addr, uint64_t len,
			   enum provider_flush_type type)
{
	return softrnic_post_flush(qp, wr_id, send_flags, rkey, remote_addr, len,
				   (enum softrnic_flush_type)type);
}

#define ROW(ret, name, params, args, kind) .name = softrnic_##name,
const struct provider provider_softrnic = {.name = "softrnic",
					   .owns_context = softrnic_owns_context,
					   .serves = soft_serves,
					   .event_str = softrnic_event_str,
					   .qp_has_flush = softrnic_qp_has_flush,
					   .post_flush = soft_post_flush,
					   .qp_has_atomic_write = softrnic_qp_has_atomic_write,
					   .post_atomic_write = softrnic_post_atomic_write,
					   PROVIDER_CM_CALLS(ROW) PROVIDER_VERBS_CALLS(ROW)};
