/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * depth.h -- the agreement on IRD and ORD (RFC 6581 s9): each side's ORD becomes at most the other
 * side's IRD. Frames of revision 1 do not carry the depths. With such a peer each side uses the
 * depths that its own user requested, clipped to the device's limits, and the users must agree on
 * depths by other means.
 */
#ifndef STREAM_DEPTH_H
#define STREAM_DEPTH_H

#include <stdint.h>

#include "softrnic/stream/stream.h"
#include "softrnic/proto/mpa.h"

/* Limits a depth that the user requests to the device's greatest depth. */
uint16_t stream_depth_clip(uint16_t asked);
/* Initiator, before the request is sent: set the request's depths. The IRD is at least 1, because
 * some peers cannot handle 0. */
void stream_depth_ask(struct mpa_start *req, const struct stream_params *user);
/* Initiator, after the reply: set the agreed depths. Returns 0, or -ENOSPC if the responder needs a
 * greater IRD than this end can give. */
int stream_depth_settle(struct qp_stream *agreed, const struct mpa_start *req,
			const struct mpa_start *rep);
/* Responder: fill in the reply's depths and the agreed depths. */
void stream_depth_answer(struct qp_stream *agreed, struct mpa_start *rep,
			 const struct mpa_start *req, const struct stream_params *user);
/* Responder: set the depths that the responder's user may use, according to the request. */
void stream_depth_offered(struct stream_params *remote, const struct mpa_start *req);

#endif
