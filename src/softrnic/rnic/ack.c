/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ack.c -- the Ack message (doc/wire.md s6). An Ack states how many of the peer's messages this end
 * has placed or delivered. At its receiver the Ack completes work requests that get no answer. A
 * Send that waits for a receive also delays the count of all later messages, even of Writes that
 * were placed meanwhile.
 */
#include "softrnic/rnic/qp_impl.h"

/* --- counting the peer's messages --------------------------------------------------------- */

void ack_rewind(struct qp *qp)
{
	qp->acks = (struct qp_acks){
		.before = qp->counters.sends_in + qp->counters.writes_in,
		.next = qp->sq.head,
	};
	rnr_rewind(qp);
}

/* Update the count before a failure is settled, not when the Ack is built, because a failed queue
 * pair has dropped its parked Sends. */
void ack_update_count(struct qp *qp)
{
	const struct park_seg *waits = park_first(&qp->recv.park);
	uint64_t writes = waits ? waits->writes_before : qp->counters.writes_in;
	struct qp_acks *a = &qp->acks;

	/* Number of the peer's messages that are done. Sends are delivered in order, so exactly the
	 * Sends before the first parked one are delivered. */
	a->taken = qp->counters.sends_in + writes - a->before;
	a->waits = qp->rnr.told && !park_is_empty(&qp->recv.park);
	a->due = a->taken > a->sent || (a->waits && qp->rnr.for_next != a->taken + 1);
}

bool ack_build(struct qp *qp)
{
	struct ext_ack msg = {
		.word = {.kind = EXT_ACK, .arg = qp->acks.waits ? qp->rnr.told : 0},
		.count = qp->acks.taken,
	};
	uint8_t bytes[EXT_ACK_LEN];

	if (!tx_build_control(qp, RDMAP_EXT_REQ, bytes, ext_ack_encode(bytes, sizeof(bytes), &msg)))
		return false;
	qp->acks.sent = msg.count;
	if (msg.word.arg)
		qp->rnr.for_next = msg.count + 1;
	qp->acks.due = false;
	qp->counters.acks_out++;
	return true;
}

/* --- completing this end's requests ------------------------------------------------------- */

static void ack_cover_next(struct qp *qp, const struct sq_wr *wr)
{
	qp->acks.covered += wr->op->messages;
	qp->acks.next++;
	qp->tx.done = wr->end_pos;
}

void ack_pass_local_ones(struct qp *qp)
{
	while (qp->acks.next < qp->sq.next && sq_at(&qp->sq, qp->acks.next)->op->is_local)
		ack_cover_next(qp, sq_at(&qp->sq, qp->acks.next));
}

/* Advance past the work requests that `count` messages cover. Returns false if fewer messages were
 * sent. */
static bool ack_cover(struct qp *qp, uint64_t count)
{
	struct qp_acks *a = &qp->acks;

	while (a->covered < count) {
		const struct sq_wr *wr;

		if (a->next == qp->sq.tail)
			return false;
		wr = sq_at(&qp->sq, a->next);
		/* The count may end between the two messages of a Write with Immediate: the Write
		 * may be counted before its Immediate Data is sent. */
		if (count - a->covered < wr->op->messages &&
		    (a->next < qp->sq.next || qp->tx.imm_due))
			return true;
		if (a->next == qp->sq.next || wr->end_pos > qp->tx.sent)
			return false;
		ack_cover_next(qp, wr);
	}
	ack_pass_local_ones(qp);
	return true;
}

/* The peer executes a request after it has placed and delivered all earlier messages. */
void ack_on_answer(struct qp *qp, uint64_t index)
{
	while (qp->acks.next <= index)
		ack_cover_next(qp, sq_at(&qp->sq, qp->acks.next));
	ack_pass_local_ones(qp);
}

static void ack_refuse(struct qp *qp, const struct rx_seg *seg, const char *why, uint64_t count)
{
	LOG_WARNING_LIMITED("qp %u: the peer's Ack of %llu messages is refused: %s", qp->cfg.qp_num,
			    (unsigned long long)count, why);
	qp_refuse_seg(qp, TERM_RDMAP_STREAM_CATASTROPHIC, seg);
}

static void ack_take(struct qp *qp, const struct rx_seg *seg, uint64_t count, uint32_t told)
{
	struct qp_acks *a = &qp->acks;

	if (!a->on) {
		ack_refuse(qp, seg, "this end did not ask for it", count);
	} else if (count < a->came) {
		ack_refuse(qp, seg, "an earlier Ack had a higher number", count);
	} else if (!ack_cover(qp, count)) {
		ack_refuse(qp, seg, "fewer messages were sent", count);
	} else {
		a->came = count;
		qp->sq.proven = a->next > qp->sq.proven ? a->next : qp->sq.proven;
		qp_sq_retire(qp);
		rnr_take(qp, told);
	}
}

static enum rx_verdict ack_whole(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	struct ext_ack msg;

	ext_ack_decode(bytes, seg->payload, &msg);
	qp->counters.acks_in++;
	ack_take(qp, seg, msg.count, msg.word.arg);
	return RX_DONE;
}

static const struct op_rx ack_rx = {
	.whole = ack_whole,
};

const struct qp_op op_ack = {
	/* an Ack has no answer */
	.level = RDMAP_LEVEL_OURS,
	.message = &ack_rx,
	.answer = &op_ignored_rx,
};
