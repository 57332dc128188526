/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between the devices themselves (doc/wire.md s6): the heartbeat. When to ask and what
 * silence means is the owner's; here is what is due. However many pings come, one answer is owed.
 */
#include "softrnic/rnic/qp_impl.h"

void qp_ping(struct qp *qp, uint32_t limit_ms)
{
	qp->engine.limit_ms = limit_ms;
	qp->engine.ping_due = true;
}

void qp_pong(struct qp *qp)
{
	qp->engine.pong_due = true;
}

uint32_t qp_peer_limit_ms(const struct qp *qp)
{
	return qp->engine.peer_limit_ms;
}

bool qp_engine_is_due(const struct qp *qp)
{
	return (qp->engine.ping_due || qp->engine.pong_due) && qp->stream.consent;
}

struct rdmap_engine qp_engine_next(const struct qp *qp)
{
	const struct qp_engine *e = &qp->engine;

	if (e->ping_due)
		return (struct rdmap_engine){
			.kind = RDMAP_ENGINE_PING,
			.limit_ms = e->limit_ms,
			.token = qp->counters.pings_out + 1,
		};
	return (struct rdmap_engine){.kind = RDMAP_ENGINE_PONG, .token = e->pong_token};
}

void qp_engine_sent(struct qp *qp)
{
	struct qp_engine *e = &qp->engine;

	if (e->ping_due) {
		e->ping_due = false;
		qp->counters.pings_out++;
		return;
	}
	e->pong_due = false;
	e->pong_token = 0;
	qp->counters.pongs_out++;
}

static enum rx_verdict accept_engine(struct qp *qp, struct rx_seg *seg, bool whole)
{
	return qp_rx_is_next(qp, seg) ? RX_DONE : RX_DEAD;
}

static void finish_engine(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct rdmap_engine msg;

	qp->rx.msn[DDP_QN_ENGINE]++;
	if (rdmap_engine_decode(bytes, seg->payload, &msg) < 0)
		return;
	switch (msg.kind) {
	case RDMAP_ENGINE_PING:
		qp->counters.pings_in++;
		qp->engine.pong_due = true;
		qp->engine.pong_token = msg.token;
		if (msg.limit_ms)
			qp->engine.peer_limit_ms = msg.limit_ms;
		break;
	case RDMAP_ENGINE_PONG:
		qp->counters.pongs_in++; /* that bytes came is all it says */
		break;
	default: /* of a later release */
		break;
	}
}

const struct rx_op qp_rx_engine = {accept_engine, NULL, finish_engine};
