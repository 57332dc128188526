/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hello.c -- the HELLO (doc/wire.md s3, s6): the first message in each direction between ends that
 * agreed to use softrnic's extensions. Until the peer's HELLO arrives (and its last ORIGIN, if both
 * ends take part), this end sends no message of the user, and accepts only messages of the start-up
 * and a Terminate.
 */
#include <string.h>

#include "softrnic/rnic/qp_impl.h"

void hello_begin(struct qp *qp)
{
	qp->hello.unsent = qp->hello.missing = qp->hello.awaited = qp->stream.consent;
	hello_update(qp);
}

void hello_update(struct qp *qp)
{
	qp->hello.due = qp->hello.unsent || origin_is_due(qp);
}

const struct ext_hello *qp_peer_hello(const struct qp *qp)
{
	return qp->stream.consent && !qp->hello.missing ? &qp->hello.peer : NULL;
}

/* --- sending ------------------------------------------------------------------------------ */

static bool hello_build_own(struct qp *qp)
{
	struct ext_hello own = {
		.major = EXT_HELLO_MAJOR,
		.minor = EXT_HELLO_MINOR,
		.kinds = op_kinds(),
		.limit_ms = qp->stream.limit_ms,
		.max_ulpdu = MPA_ULPDU_MAX,
		.rings = qp->stream.rings,
		.has_instance = qp->stream.takes_part,
		.acks = qp->cfg.acks ? EXT_ACKS_VERSION : 0,
	};
	uint8_t bytes[EXT_HELLO_MAX];

	memcpy(own.instance, qp->stream.instance, sizeof(own.instance));
	if (!tx_build_control(qp, RDMAP_EXT_REQ, bytes,
			      ext_hello_encode(bytes, sizeof(bytes), &own)))
		return false;
	qp->hello.unsent = false;
	return true;
}

/* Build the next message that is due. */
bool hello_build(struct qp *qp)
{
	bool built = qp->hello.unsent ? hello_build_own(qp) : origin_build(qp);

	hello_update(qp);
	return built;
}

/* --- receiving ---------------------------------------------------------------------------- */

bool hello_permits(const struct qp *qp, const struct rx_seg *seg)
{
	if (seg->rx == op_hello.message || seg->rx == op_terminate.message)
		return true;
	if (qp->hello.missing)
		return false;
	return seg->rx == op_origin.message || seg->rx == op_origin.answer ||
	       (seg->rx == op_leave.message && qp->stream.initiates);
}

/* Use the largest ULPDU that the peer accepts, but no more than MPA_ULPDU_MAX. */
static void hello_agree(struct qp *qp, const struct ext_hello *peer)
{
	qp->hello.missing = false;
	qp->origin.agreed = qp->stream.takes_part && peer->has_instance;
	qp->hello.awaited = qp->origin.agreed;
	qp->hello.peer = *peer;
	qp->acks.on = qp->cfg.acks && peer->acks;
	qp->hello.caps = op_caps(peer->kinds);
	qp->heartbeat.peer_limit_ms = peer->limit_ms;
	if (peer->max_ulpdu < qp->tx.mulpdu)
		qp->tx.mulpdu = peer->max_ulpdu;
}

static void hello_refuse(struct qp *qp, const struct rx_seg *seg, const char *why)
{
	LOG_WARNING_LIMITED("qp %u: the peer's HELLO is refused: %s; do both ends run the same "
			    "version of this software?",
			    qp->cfg.qp_num, why);
	qp_refuse_seg(qp, TERM_RDMAP_STREAM_CATASTROPHIC, seg);
}

static enum rx_verdict hello_whole(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	struct ext_hello peer;
	const char *why;

	if (!qp->hello.missing)
		hello_refuse(qp, seg, "it is the second HELLO of the connection");
	else if (ext_hello_decode(bytes, seg->payload, &peer, &why))
		hello_refuse(qp, seg, why);
	else
		hello_agree(qp, &peer);
	return RX_DONE;
}

static const struct op_rx hello_rx = {
	.whole = hello_whole,
};

const struct qp_op op_hello = {
	.level = RDMAP_LEVEL_OURS,
	.message = &hello_rx,
	.answer = &op_ignored_rx, /* a HELLO has no answer */
};
