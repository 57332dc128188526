/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heartbeat, which is exchanged between the devices without the users (doc/wire.md s6). The
 * owner decides when to send a ping, and when a silent peer is lost. This file records which
 * messages are due, builds them and receives them. One pong answers all pings that have arrived.
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

bool heartbeat_build(struct qp *qp)
{
	struct qp_heartbeat *h = &qp->heartbeat;
	bool is_ping = h->ping_due;
	struct ext_heartbeat msg = {
		.word = {.kind = EXT_HEARTBEAT},
		.limit_ms = is_ping ? h->limit_ms : 0,
		.token = is_ping ? qp->counters.pings_out + 1 : h->pong_token,
	};
	uint8_t bytes[EXT_HEARTBEAT_LEN];

	if (!tx_build_control(qp, is_ping ? RDMAP_EXT_REQ : RDMAP_EXT_RESP, bytes,
			      ext_heartbeat_encode(bytes, sizeof(bytes), &msg)))
		return false;
	if (is_ping) {
		h->ping_due = false;
		qp->counters.pings_out++;
	} else {
		h->pong_due = false;
		h->pong_token = 0;
		qp->counters.pongs_out++;
	}
	return true;
}

static enum rx_verdict heartbeat_on_ping(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	struct ext_heartbeat msg;

	ext_heartbeat_decode(bytes, seg->payload, &msg);
	qp->counters.pings_in++;
	qp->heartbeat.pong_due = true;
	qp->heartbeat.pong_token = msg.token;
	if (msg.limit_ms)
		qp->heartbeat.peer_limit_ms = msg.limit_ms;
	return RX_DONE;
}

/* The content of a pong has no meaning; only its arrival counts. */
static enum rx_verdict heartbeat_on_pong(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	qp->counters.pongs_in++;
	return RX_DONE;
}

static const struct op_rx heartbeat_ping_rx = {
	.whole = heartbeat_on_ping,
};

static const struct op_rx heartbeat_pong_rx = {
	.whole = heartbeat_on_pong,
};

const struct qp_op op_heartbeat = {
	.level = RDMAP_LEVEL_OURS,
	.message = &heartbeat_ping_rx,
	.answer = &heartbeat_pong_rx,
};

/* --- messages of later versions on the control queue --------------------------------- */

/* Accept and ignore the message. */
static enum rx_verdict heartbeat_on_unknown(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	return RX_DONE;
}

const struct op_rx op_ignored_rx = {
	.whole = heartbeat_on_unknown,
};

const struct qp_op op_unknown = {
	.level = RDMAP_LEVEL_OURS,
	.message = &op_ignored_rx,
	.answer = &op_ignored_rx,
};
