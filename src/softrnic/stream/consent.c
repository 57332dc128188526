/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/stream/consent.h"

void cm_consent_put(struct mpa_start *start, enum cm_consent consent)
{
	start->p2p = false;
	start->rtr_send = consent != CM_CONSENT_NONE;
	start->rtr_write = consent == CM_CONSENT_FLUSHES;
	start->rtr_read = consent == CM_CONSENT_READS;
}

enum cm_consent cm_consent_get(const struct mpa_start *start)
{
	/* With A set the bits are the RFC's again. */
	if (!start->enhanced || start->p2p || !start->rtr_send)
		return CM_CONSENT_NONE;
	if (start->rtr_write == start->rtr_read)
		return CM_CONSENT_NONE;
	return start->rtr_write ? CM_CONSENT_FLUSHES : CM_CONSENT_READS;
}
