/* SPDX-License-Identifier: BSD-3-Clause */
/* event.h -- waits for an event of rdma_cm with a time limit. */
#ifndef RPMA_EVENT_H
#define RPMA_EVENT_H

#include "provider/provider.h"
#include "rpma/err.h"

/*
 * Wait for an event, which the caller must acknowledge. Returns RPMA_E_NO_EVENT if no event came in
 * time; the error text is then `advice`, unless the limit is 0. Returns RPMA_E_PROVIDER if the call
 * failed.
 */
static inline int event_wait(const struct provider *prov, struct rdma_event_channel *evch,
			     int timeout_ms, const char *advice, struct rdma_cm_event **event)
{
	if (!prov->wait_cm_event(evch, timeout_ms, event))
		return 0;
	if (errno == ETIMEDOUT || is_no_event(errno))
		return err_time_limit(RPMA_E_NO_EVENT, timeout_ms, advice);
	return PROVIDER_FAILED(errno, "rdma_get_cm_event(timeout_ms=%d)", timeout_ms);
}

#endif
