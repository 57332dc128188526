/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * consent.h -- how two ends agree ("consent") to use softrnic's extensions. The bits for this have
 * no effect on peers without the extensions.
 *
 * RFC 6581 s9 gives the bits B, C and D of the enhanced block a meaning only if A is set, and lets
 * receivers ignore them otherwise. Two ends agree if both the request and the reply have A clear
 * and one of the patterns below. The pattern stands for version 2 of the extensions (doc/wire.md),
 * and states how the sender's user flushes. Peers that echo the flag byte do not echo these bits.
 *
 *   B C D = 1 1 1   the sender's user issues native flushes
 *   B C D = 1 0 0   the sender's user flushes by reading
 */
#ifndef STREAM_CONSENT_H
#define STREAM_CONSENT_H

#include <stdbool.h>

#include "softrnic/proto/mpa.h"

enum stream_consent { STREAM_CONSENT_NONE, STREAM_CONSENT_FLUSHES, STREAM_CONSENT_READS };

static inline enum stream_consent stream_consent_of_user(bool user_flushes)
{
	return user_flushes ? STREAM_CONSENT_FLUSHES : STREAM_CONSENT_READS;
}

/* Sets the bits A, B, C and D of the frame. */
void stream_consent_put(struct mpa_start *start, enum stream_consent consent);
enum stream_consent stream_consent_get(const struct mpa_start *start);

#endif
