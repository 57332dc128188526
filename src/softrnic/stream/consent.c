/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/stream/consent.h"

void stream_consent_put(struct mpa_start *start, enum stream_consent consent)
{
	start->p2p = false;
	start->rtr_send = consent != STREAM_CONSENT_NONE;
	start->rtr_write = start->rtr_read = consent == STREAM_CONSENT_FLUSHES;
}

enum stream_consent stream_consent_get(const struct mpa_start *start)
{
	/* If bit A (p2p) is set, the bits B, C and D have the meaning that the RFC gives them. */
	if (!start->enhanced || start->p2p || !start->rtr_send)
		return STREAM_CONSENT_NONE;
	if (start->rtr_write != start->rtr_read)
		return STREAM_CONSENT_NONE;
	return start->rtr_write ? STREAM_CONSENT_FLUSHES : STREAM_CONSENT_READS;
}
