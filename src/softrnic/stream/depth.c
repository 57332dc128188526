/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/stream/depth.h"

#include <errno.h>

#include "softrnic/rnic/rnic.h"

static uint16_t depth_min(uint16_t a, uint16_t b)
{
	return a < b ? a : b;
}

uint16_t stream_depth_clip(uint16_t asked)
{
	return depth_min(asked, RNIC_MAX_RD_ATOM);
}

/* MPA_DEPTH_ULP sets no limit: the two ULPs agree on the depth by themselves. */
static uint16_t depth_limit(uint16_t own, uint16_t peer)
{
	return peer == MPA_DEPTH_ULP ? own : depth_min(own, peer);
}

void stream_depth_ask(struct mpa_start *req, const struct stream_params *user)
{
	req->ird = user->ird ? stream_depth_clip(user->ird) : 1;
	req->ord = stream_depth_clip(user->ord);
}

int stream_depth_settle(struct qp_stream *agreed, const struct mpa_start *req,
			const struct mpa_start *rep)
{
	agreed->ird = req->ird;
	agreed->ord = req->ord;
	if (!req->enhanced)
		return 0;
	agreed->ord = depth_limit(req->ord, rep->ird);
	if (rep->ord == MPA_DEPTH_ULP || rep->ord <= req->ird)
		return 0;
	if (rep->ord > RNIC_MAX_RD_ATOM)
		return -ENOSPC;
	agreed->ird = rep->ord;
	return 0;
}

void stream_depth_answer(struct qp_stream *agreed, struct mpa_start *rep,
			 const struct mpa_start *req, const struct stream_params *user)
{
	agreed->ird = stream_depth_clip(user->ird);
	agreed->ord = stream_depth_clip(user->ord);
	if (!req->enhanced)
		return;
	/* If the RTR message is a Read, this end must be able to answer it, so the IRD is at least
	 * 1 even if the user requested 0 (RFC 6581 s9). */
	if (agreed->rtr_in == QP_RTR_READ && !agreed->ird)
		agreed->ird = 1;
	agreed->ord = depth_limit(agreed->ord, req->ird);
	rep->ird = req->ord == MPA_DEPTH_ULP ? MPA_DEPTH_ULP : agreed->ird;
	rep->ord = req->ird == MPA_DEPTH_ULP ? MPA_DEPTH_ULP : agreed->ord;
}

void stream_depth_offered(struct stream_params *remote, const struct mpa_start *req)
{
	remote->ird = req->enhanced ? depth_limit(RNIC_MAX_RD_ATOM, req->ord) : RNIC_MAX_RD_ATOM;
	remote->ord = req->enhanced ? depth_limit(RNIC_MAX_RD_ATOM, req->ird) : RNIC_MAX_RD_ATOM;
}
