/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_link.c -- moves a stream to another link. */
#include <string.h>

#include "softrnic/stream/stream_impl.h"

bool stream_offers_rings(const struct stream *s)
{
	const struct ext_hello *peer = stream_runs_qp(s) ? qp_peer_hello(s->qp) : NULL;

	return peer && s->state == STREAM_LIVE && s->agreed.rings &&
	       peer->rings == s->agreed.rings && !s->fin_in;
}

void stream_link_post(struct stream *s, enum ext_link_step step, const uint8_t *token,
		      struct stream_update *u)
{
	struct qp_link_msg msg = {.step = step};

	if (token)
		memcpy(msg.token, token, sizeof(msg.token));
	if (s->qp)
		qp_link_post(s->qp, &msg);
	stream_report(s, u);
}

void stream_link_tx_switched(struct stream *s, struct stream_update *u)
{
	qp_link_tx_switched(s->qp);
	stream_report(s, u);
}

void stream_link_rx_switched(struct stream *s, struct stream_update *u)
{
	qp_link_rx_switched(s->qp);
	stream_report(s, u);
}

void stream_link_refuse(struct stream *s, struct stream_update *u)
{
	qp_link_refuse(s->qp);
	stream_report(s, u);
}

void stream_link_note(struct stream *s, enum shm_state state)
{
	if (s->qp)
		qp_link_note(s->qp, state);
}

void stream_watch_given_up(struct stream *s, const atomic_uint *word)
{
	if (s->qp)
		qp_watch_given_up(s->qp, word);
}
