/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.c -- the messages by which a stream moves to another link (doc/wire.md s6, "Link"). A SWITCH
 * is the last message of its direction on the present link. After this end's SWITCH no message is
 * built until the owner sends over the other link. After the peer's SWITCH nothing is received
 * until the owner receives from the other link.
 */
#include <string.h>

#include "softrnic/rnic/qp_impl.h"

static void link_put(struct qp_link_msg *steps, unsigned *n, const struct qp_link_msg *msg)
{
	if (*n < QP_LINK_STEPS)
		++*n;
	steps[*n - 1] = *msg;
}

static void link_remove_first(struct qp_link_msg *steps, unsigned *n)
{
	--*n;
	memmove(&steps[0], &steps[1], *n * sizeof(steps[0]));
}

/* --- sending ------------------------------------------------------------------------------ */

void qp_link_post(struct qp *qp, const struct qp_link_msg *msg)
{
	link_put(qp->link.out, &qp->link.out_due, msg);
}

bool link_build(struct qp *qp)
{
	struct qp_link *l = &qp->link;
	unsigned step = l->out[0].step;
	struct ext_link msg = {.word = {.kind = EXT_LINK, .arg = step}};
	uint8_t bytes[EXT_LINK_LEN];

	memcpy(msg.token, l->out[0].token, sizeof(msg.token));
	if (!tx_build_control(qp, RDMAP_EXT_REQ, bytes,
			      ext_link_encode(bytes, sizeof(bytes), &msg)))
		return false;
	link_remove_first(l->out, &l->out_due);
	if (step == EXT_LINK_SWITCH) {
		l->tx_switching = true;
		l->tx_end = qp->tx.built;
	}
	return true;
}

void qp_link_tx_switched(struct qp *qp)
{
	qp->link.tx_switching = false;
	qp->link.tx_switched = true;
}

/* --- receiving ---------------------------------------------------------------------------- */

void link_refuse(struct qp *qp)
{
	qp->rx.stop &= (uint8_t)~RX_STOP_SWITCH;
	if (!qp_is_failed(qp))
		qp_refuse(qp, TERM_RDMAP_STREAM_CATASTROPHIC, NULL, 0, NULL);
}

static enum rx_verdict link_whole(struct qp *qp, struct rx_seg *seg, const uint8_t *bytes)
{
	struct qp_link *l = &qp->link;
	struct qp_link_msg step;
	struct ext_link msg;

	ext_link_decode(bytes, seg->payload, &msg);
	step.step = msg.word.arg;
	memcpy(step.token, msg.token, sizeof(step.token));
	link_put(l->in, &l->in_due, &step);
	if (step.step != EXT_LINK_SWITCH)
		return RX_DONE;
	if (l->rx_switched)
		link_refuse(qp);
	else
		qp->rx.stop |= RX_STOP_SWITCH;
	return RX_DONE;
}

void qp_link_rx_switched(struct qp *qp)
{
	qp->rx.stop &= (uint8_t)~RX_STOP_SWITCH;
	qp->link.rx_switched = true;
}

void qp_link_refuse(struct qp *qp)
{
	link_refuse(qp);
	qp_settle(qp);
}

void qp_link_note(struct qp *qp, unsigned state)
{
	qp->counters.shm_state = state;
}

bool qp_link_take(struct qp *qp, struct qp_link_msg *msg)
{
	struct qp_link *l = &qp->link;

	if (l->in_due) {
		*msg = l->in[0];
		link_remove_first(l->in, &l->in_due);
		return true;
	}
	*msg = (struct qp_link_msg){.step = QP_LINK_SENT};
	return link_switch_is_sent(qp);
}

static const struct op_rx link_rx = {
	.whole = link_whole,
};

const struct qp_op op_link = {
	.level = RDMAP_LEVEL_OURS,
	.message = &link_rx,
	.answer = &op_ignored_rx, /* these messages have no answer */
};
