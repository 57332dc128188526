/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_rings.c -- changes a connection within one host from TCP to rings in shared memory.
 *
 * The responder begins after the connection has carried some messages, because rings cost memory,
 * and most connections of a process may be idle. When both ends have mapped the memory, the
 * initiator switches its direction to the ring, and then the responder switches the other
 * direction. Before the first switch either end may stop, and the connection stays on TCP
 * unchanged.
 */
#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/io/conn_parts.h"
#include "softrnic/io/link_shm.h"
#include "softrnic/io/link_shm_meet.h"

#define MEET_NS (2 * NSEC_PER_SEC)

static void conn_rings_go_on(struct conn *c, enum meet_next next, struct stream_update *u);
static void conn_rings_failed(struct conn *c, enum shm_state why, struct stream_update *u);

static bool conn_is_initiator(const struct conn *c)
{
	return stream_role(c->stream) == STREAM_INITIATOR;
}

static bool conn_rings_new(struct conn *c)
{
	c->has_met = true;
	c->meet = meet_new(conn_is_initiator(c), &c->source, clock_now_ns() + MEET_NS);
	return c->meet;
}

/* Delete the meeting. The pointer is cleared first, because a forked child must not find a pointer
 * to a deleted object. */
void conn_rings_stop(struct conn *c)
{
	struct meet *meet = c->meet;

	c->meet = NULL;
	c->may_meet = false;
	meet_delete(meet);
}

void conn_rings_forked(struct conn *c)
{
	meet_forked(c->meet);
	c->meet = NULL;
}

/* --- begin ---------------------------------------------------------------------------------- */

void conn_rings_allow(struct conn *c)
{
	bool fit = stream_offers_rings(c->stream) && c->link;

	stream_link_note(c->stream, fit ? SHM_OFFERED : SHM_NONE);
	c->may_meet = fit && !conn_is_initiator(c);
}

void conn_rings_consider(struct conn *c, struct stream_update *u)
{
	const struct qp_counters *n;

	if (!stream_offers_rings(c->stream)) {
		c->may_meet = false;
		return;
	}
	n = stream_counters(c->stream);
	/* heartbeats do not count as messages */
	if (n->rx_fpdus + n->tx_fpdus - n->pings_in - n->pings_out - n->pongs_in - n->pongs_out <
	    config_get()->shm_after)
		return;
	c->may_meet = false;
	if (conn_rings_new(c))
		conn_rings_go_on(c, meet_begin(c->meet), u);
	else
		conn_rings_failed(c, SHM_WHY_MEMORY, u);
	stream_perform(c->stream, u);
}

/* --- the meeting ---------------------------------------------------------------------------- */

/*
 * Forget reported hang-ups. The link and the Unix sockets share one source, so a hang-up of a Unix
 * socket looks like one of the link. A real hang-up of the link is reported again.
 */
static void conn_rings_forget_hangups(struct conn *c)
{
	if (!c->hangup || c->reset || !c->registered)
		return;
	c->hangup = false;
	c->link->ops->watch_write(c->link, c->watching);
}

/* Use the new link, whose directions are switched later. A thread that polls the old link checks
 * only the old one, so it has to begin its polling again. */
static void conn_rings_use(struct conn *c)
{
	struct shm_memory memory;
	struct link *link;
	int fd;

	conn_rings_forget_hangups(c);
	link = meet_take(c->meet, &memory, &fd);
	link_shm_init(link, c->link, &c->source, conn_is_initiator(c), &memory, fd);
	conn_own_move(c);
	c->link = link;
}

static void conn_rings_failed(struct conn *c, enum shm_state why, struct stream_update *u)
{
	LOG_INFO("connection %p stays on TCP: %s", (void *)c, shm_state_str(why));
	stream_link_note(c->stream, why);
	conn_rings_forget_hangups(c);
	conn_rings_stop(c);
	stream_link_post(c->stream, EXT_LINK_STOP, NULL, u);
}

static void conn_rings_go_on(struct conn *c, enum meet_next next, struct stream_update *u)
{
	uint8_t token[EXT_LINK_TOKEN];
	enum ext_link_step step;

	switch (next) {
	case MEET_SAY:
		step = meet_said(c->meet, token);
		stream_link_post(c->stream, step, token, u);
		break;
	case MEET_DONE:
		conn_rings_use(c);
		conn_rings_stop(c);
		if (conn_is_initiator(c))
			stream_link_post(c->stream, EXT_LINK_SWITCH, NULL, u);
		break;
	case MEET_FAILED:
		conn_rings_failed(c, meet_why(c->meet), u);
		break;
	case MEET_WAIT:
		stream_look(c->stream, u);
		break;
	}
}

void conn_rings_look(struct conn *c, struct stream_update *u)
{
	conn_rings_go_on(c, meet_look(c->meet), u);
}

void conn_rings_on_time(struct conn *c, uint64_t now, struct stream_update *u)
{
	if (meet_is_over_at(c->meet, now))
		conn_rings_failed(c, SHM_WHY_TIME, u);
}

/* --- switching ------------------------------------------------------------------------------ */

/* Called when this end's SWITCH is sent: from now on all bytes of this end go through the ring. */
static void conn_rings_switch_tx(struct conn *c, struct stream_update *u)
{
	if (c->watching)
		c->link->ops->watch_write(c->link, false);
	c->watching = false;
	c->writable = true;
	link_shm_switch_tx(c->link);
	LOG_INFO("connection %p sends through shared memory", (void *)c);
	stream_link_note(c->stream, SHM_USED);
	stream_link_tx_switched(c->stream, u);
}

static void conn_rings_switch_rx(struct conn *c, struct stream_update *u)
{
	if (!link_is_shm(c->link) || link_shm_receives(c->link)) {
		LOG_WARNING_LIMITED("connection %p: the peer switches to a link that was not "
				    "agreed on",
				    (void *)c);
		stream_link_refuse(c->stream, u);
		return;
	}
	conn_own_move(c);
	link_shm_switch_rx(c->link);
	/* So far all bytes came over TCP, whose reset has the same effect as the word in shared
	 * memory. The word is read before the ring's first FPDU is executed, even if the peer wrote
	 * it earlier. */
	stream_watch_given_up(c->stream, link_shm_given_up(c->link));
	c->readable = true;
	LOG_INFO("connection %p receives through shared memory", (void *)c);
	stream_link_rx_switched(c->stream, u);
	if (!conn_is_initiator(c))
		stream_link_post(c->stream, EXT_LINK_SWITCH, NULL, u);
}

/* Called when the peer cannot use the memory: continue over TCP. */
static void conn_rings_undo(struct conn *c, struct stream_update *u)
{
	LOG_INFO("connection %p stays on TCP: the peer does not share memory", (void *)c);
	stream_link_note(c->stream, SHM_WHY_PEER);
	conn_own_move(c);
	link_shm_undo(&c->link);
	c->readable = true;
	stream_look(c->stream, u);
}

/* Called when the peer cannot begin the meeting: stop the meeting. */
static void conn_rings_refused(struct conn *c, struct stream_update *u)
{
	stream_link_note(c->stream, SHM_WHY_PEER);
	c->has_met = true;
	c->may_meet = false;
	stream_look(c->stream, u);
}

/*
 * Called when a message of the peer arrives while there is no meeting. Either this is the peer's
 * first message, or the peer sent it before it received this end's STOP. A connection has at most
 * one meeting. Otherwise a peer could make this process connect again and again to any socket whose
 * name the peer has seen.
 */
static void conn_rings_on_first(struct conn *c, const struct qp_link_msg *msg,
				struct stream_update *u)
{
	bool undo = msg->step == EXT_LINK_STOP && link_is_shm(c->link) && !conn_is_initiator(c) &&
		    !link_shm_receives(c->link);

	if (undo)
		conn_rings_undo(c, u);
	else if (msg->step == EXT_LINK_STOP && !c->has_met)
		conn_rings_refused(c, u);
	else if (msg->step != EXT_LINK_MEET || !conn_is_initiator(c) || c->has_met ||
		 link_is_shm(c->link) || !c->link || !stream_offers_rings(c->stream))
		stream_look(c->stream, u);
	else if (conn_rings_new(c))
		conn_rings_go_on(c, meet_on_step(c->meet, msg->step, msg->token), u);
	else
		conn_rings_failed(c, SHM_WHY_MEMORY, u);
}

/* Used after the link is closed: a message about the link has no effect. */
static void conn_rings_ignore(struct conn *c, const struct qp_link_msg *msg,
			      struct stream_update *u)
{
	if (msg->step == QP_LINK_SENT)
		stream_link_tx_switched(c->stream, u);
	else if (msg->step == EXT_LINK_SWITCH)
		stream_link_rx_switched(c->stream, u);
	else
		stream_look(c->stream, u);
}

void conn_rings_on_step(void *owner, const struct qp_link_msg *msg, struct stream_update *u)
{
	struct conn *c = owner;

	if (!c->link)
		conn_rings_ignore(c, msg, u);
	else if (msg->step == QP_LINK_SENT)
		conn_rings_switch_tx(c, u);
	else if (msg->step == EXT_LINK_SWITCH)
		conn_rings_switch_rx(c, u);
	else if (c->meet)
		conn_rings_go_on(c, meet_on_step(c->meet, msg->step, msg->token), u);
	else
		conn_rings_on_first(c, msg, u);
}
