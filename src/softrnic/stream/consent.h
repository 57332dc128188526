/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * consent.h -- agreeing on our extensions without a peer that lacks them noticing.
 *
 * RFC 6581 s9 gives the bits B, C and D of the enhanced block a meaning only while A is set
 * and tells receivers to ignore them otherwise. An exact pattern of them with A clear, in
 * the request and in the reply, is the agreement: version 1 of the extensions that
 * doc/wire.md lists, and how the sender's user flushes. Peers that echo the flag byte do
 * not echo these bits.
 *
 *   B C D = 1 1 0   my user issues native flushes
 *   B C D = 1 0 1   my user flushes by reading
 */
#ifndef CM_CONSENT_H
#define CM_CONSENT_H

#include <stdbool.h>

#include "softrnic/proto/mpa.h"

enum cm_consent { CM_CONSENT_NONE, CM_CONSENT_FLUSHES, CM_CONSENT_READS };

static inline enum cm_consent cm_consent_of_user(bool user_flushes)
{
	return user_flushes ? CM_CONSENT_FLUSHES : CM_CONSENT_READS;
}

/* Sets A, B, C and D. */
void cm_consent_put(struct mpa_start *start, enum cm_consent consent);
enum cm_consent cm_consent_get(const struct mpa_start *start);

#endif
