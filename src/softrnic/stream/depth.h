/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * depth.h -- the agreement on IRD and ORD (RFC 6581 s9): each side's ORD becomes at most the other
 * side's IRD. Revision 1 does not carry the depths. There each side uses the depths that its own
 * user requested, clipped to the device's limits, and the users agree on them by other means.
 */
#ifndef STREAM_DEPTH_H
#define STREAM_DEPTH_H

#include <stdint.h>

#include "softrnic/stream/stream.h"
#include "softrnic/proto/mpa.h"

/* Clip the user's depths to the device's. */
uint16_t stream_depth_clip(uint16_t asked);
/* Initiator, before the request. The IRD is at least 1, as some peers cannot handle 0. */
void stream_depth_ask(struct mpa_start *req, const struct stream_params *user);
/* Initiator, after the reply. -ENOSPC: the responder needs more IRD than we have. */
int stream_depth_settle(struct qp_stream *agreed, const struct mpa_start *req,
			const struct mpa_start *rep);
/* Responder: fill in the reply's depths and the agreed depths. */
void stream_depth_answer(struct qp_stream *agreed, struct mpa_start *rep,
			 const struct mpa_start *req, const struct stream_params *user);
/* Responder: the depths that the request allows its user to ask for. */
void stream_depth_offered(struct stream_params *remote, const struct mpa_start *req);

#endif
