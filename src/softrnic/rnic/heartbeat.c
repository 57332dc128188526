/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heartbeat between the devices themselves (doc/wire.md s6). When to ask and what silence means
 * is the owner's; here is what is due. However many pings come, one answer is owed.
 */
#include "softrnic/rnic/qp_impl.h"

void qp_ping(struct qp *qp, uint32_t limit_ms)
{
	qp->heartbeat.limit_ms = limit_ms;
	qp->heartbeat.ping_due = true;
}

void qp_pong(struct qp *qp)
{
	qp->heartbeat.pong_due = true;
}

uint32_t qp_peer_limit_ms(const struct qp *qp)
{
	return qp->heartbeat.peer_limit_ms;
}

static struct rdmap_engine heartbeat_next(const struct qp *qp)
{
	const struct qp_heartbeat *h = &qp->heartbeat;

	if (h->ping_due)
		return (struct rdmap_engine){
			.kind = RDMAP_ENGINE_PING,
			.limit_ms = h->limit_ms,
			.token = qp->counters.pings_out + 1,
		};
	return (struct rdmap_engine){.kind = RDMAP_ENGINE_PONG, .token = h->pong_token};
}

static void heartbeat_sent(struct qp *qp)
{
	struct qp_heartbeat *h = &qp->heartbeat;

	if (h->ping_due) {
		h->ping_due = false;
		qp->counters.pings_out++;
		return;
	}
	h->pong_due = false;
	h->pong_token = 0;
	qp->counters.pongs_out++;
}

bool heartbeat_build(struct qp *qp)
{
	struct ddp_hdr hdr = tx_untagged(qp, RDMAP_ENGINE);
	struct rdmap_engine msg = heartbeat_next(qp);
	uint8_t bytes[RDMAP_ENGINE_LEN];

	if (!tx_build_small(qp, &hdr, bytes, rdmap_engine_encode(bytes, sizeof(bytes), &msg)))
		return false;
	heartbeat_sent(qp);
	return true;
}

static void heartbeat_finish(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct rdmap_engine msg;

	qp->rx.msn[DDP_QN_ENGINE]++;
	if (rdmap_engine_decode(bytes, seg->payload, &msg) < 0)
		return;
	switch (msg.kind) {
	case RDMAP_ENGINE_PING:
		qp->counters.pings_in++;
		qp->heartbeat.pong_due = true;
		qp->heartbeat.pong_token = msg.token;
		if (msg.limit_ms)
			qp->heartbeat.peer_limit_ms = msg.limit_ms;
		break;
	case RDMAP_ENGINE_PONG:
		qp->counters.pongs_in++; /* only that it came matters */
		break;
	default: /* of a later release */
		break;
	}
}

static const struct op_rx heartbeat_rx = {
	.accept = qp_rx_accept_next,
	.finish = heartbeat_finish,
};

const struct qp_op op_heartbeat = {
	.level = RDMAP_LEVEL_OURS,
	.message = &heartbeat_rx,
};
