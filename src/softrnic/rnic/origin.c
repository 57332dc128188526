/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * origin.c -- sends and receives the ORIGIN, the message that names this connection and the former
 * connections whose bytes must not be placed any more (doc/wire.md s6, "Origin"). The owner handles
 * the content of the message. After an ORIGIN arrives, no further byte is parsed until the owner
 * has handled it.
 */
#include <errno.h>
#include <stdlib.h>

#include "softrnic/rnic/qp_impl.h"

bool qp_takes_part(const struct qp *qp)
{
	return qp->origin.agreed;
}

/* --- sending ------------------------------------------------------------------------------ */

bool origin_is_due(const struct qp *qp)
{
	const struct qp_origin *o = &qp->origin;

	return o->out || o->answer_due || o->leave_due;
}

static bool origin_build_answer(struct qp *qp)
{
	struct qp_origin *o = &qp->origin;
	uint8_t bytes[EXT_ANSWER_LEN];

	if (!tx_build_control(qp, RDMAP_EXT_RESP, bytes,
			      ext_answer_encode(bytes, sizeof(bytes), &o->answer)))
		return false;
	o->answer_due = false;
	return true;
}

static bool origin_build_leave(struct qp *qp)
{
	struct ext_word word = {.kind = EXT_LEAVE};
	uint8_t bytes[EXT_LEAVE_LEN];

	if (!tx_build_control(qp, RDMAP_EXT_REQ, bytes,
			      ext_word_encode(bytes, sizeof(bytes), &word)))
		return false;
	qp->origin.leave_due = false;
	return true;
}

bool origin_build(struct qp *qp)
{
	struct qp_origin *o = &qp->origin;

	if (!o->out)
		return o->answer_due ? origin_build_answer(qp) : origin_build_leave(qp);
	if (!tx_build_control(qp, RDMAP_EXT_REQ, o->out, o->out_len))
		return false;
	free(o->out);
	o->out = NULL;
	return true;
}

int qp_origin_post(struct qp *qp, const struct ext_origin *origin)
{
	size_t size = EXT_ORIGIN_LEN + origin->n * (size_t)EXT_ORIGIN_RANGE_LEN;
	struct qp_origin *o = &qp->origin;

	o->out = malloc(size);
	if (!o->out)
		return -ENOMEM;
	o->out_len = ext_origin_encode(o->out, size, origin);
	o->asked = origin->asks;
	qp->hello.awaited = origin->asks;
	hello_update(qp);
	return 0;
}

void qp_origin_accept(struct qp *qp)
{
	qp->hello.awaited = false;
}

void qp_origin_answer(struct qp *qp, enum ext_origin_status status, uint32_t detail)
{
	qp->origin.answer = (struct ext_answer){
		.word = {.kind = EXT_ORIGIN, .arg = status},
		.detail = detail,
	};
	qp->origin.answer_due = true;
	qp->origin.asked = false;
	hello_update(qp);
}

void qp_leave(struct qp *qp)
{
	qp->origin.leave_due = true;
	hello_update(qp);
}

void origin_fini(struct qp *qp)
{
	free(qp->origin.came);
	free(qp->origin.out);
}

/* --- receiving ---------------------------------------------------------------------------- */

static void origin_refuse(struct qp *qp, const struct rx_seg *seg, const char *why)
{
	LOG_WARNING_LIMITED("qp %u: the peer breaks the rules of the Origin: %s", qp->cfg.qp_num,
			    why);
	qp_refuse_seg(qp, TERM_RDMAP_STREAM_CATASTROPHIC, seg);
}

/*
 * May the peer send an ORIGIN now? The initiator sends it before its user's first message, and
 * after the answer to its previous ORIGIN.
 */
static bool origin_is_in_turn(const struct qp *qp)
{
	const struct qp_origin *o = &qp->origin;

	return o->agreed && !qp->stream.initiates && qp->hello.awaited && !o->came && !o->asked &&
	       !o->answer_due;
}

static enum rx_verdict origin_whole(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	struct qp_origin *o = &qp->origin;
	const char *why;

	if (!origin_is_in_turn(qp)) {
		origin_refuse(qp, seg, "it was sent out of order");
		return RX_FAULT;
	}
	o->came = malloc(sizeof(*o->came));
	if (!o->came) {
		qp_fault_local(qp, ENOMEM, "no memory for an Origin");
	} else if (ext_origin_decode(bytes, seg->payload, o->came, &why)) {
		origin_refuse(qp, seg, why);
	} else {
		o->asked = o->came->asks;
		qp->rx.stop |= RX_STOP_ORIGIN;
	}
	return RX_DONE;
}

bool qp_origin_is_here(const struct qp *qp)
{
	return qp->rx.stop & RX_STOP_ORIGIN;
}

struct ext_origin *qp_origin_take(struct qp *qp)
{
	struct ext_origin *came = qp->origin.came;

	if (!qp_origin_is_here(qp))
		return NULL;
	qp->origin.came = NULL;
	qp->rx.stop &= (uint8_t)~RX_STOP_ORIGIN;
	return came;
}

static enum rx_verdict origin_whole_answer(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	struct qp_origin *o = &qp->origin;

	if (!qp->stream.initiates || !o->asked || o->out || o->answered) {
		origin_refuse(qp, seg, "it is a reply without a request");
		return RX_FAULT;
	}
	ext_answer_decode(bytes, seg->payload, &o->answer);
	o->answered = true;
	return RX_DONE;
}

bool qp_origin_answered(struct qp *qp, struct ext_answer *answer)
{
	struct qp_origin *o = &qp->origin;

	if (!o->answered)
		return false;
	*answer = o->answer;
	o->answered = o->asked = false;
	return true;
}

static enum rx_verdict origin_whole_leave(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	qp->origin.peer_leaves = true;
	if (!qp->stream.initiates)
		origin_refuse(qp, seg, "it is a Leave from an initiator");
	return RX_DONE;
}

bool qp_peer_leaves(const struct qp *qp)
{
	return qp->origin.peer_leaves;
}

static const struct op_rx origin_rx = {
	.whole = origin_whole,
};

static const struct op_rx origin_answer_rx = {
	.whole = origin_whole_answer,
};

static const struct op_rx leave_rx = {
	.whole = origin_whole_leave,
};

const struct qp_op op_origin = {
	.level = RDMAP_LEVEL_OURS,
	.message = &origin_rx,
	.answer = &origin_answer_rx,
};

const struct qp_op op_leave = {
	.level = RDMAP_LEVEL_OURS,
	.message = &leave_rx,
	.answer = &op_ignored_rx, /* a LEAVE has no answer */
};
