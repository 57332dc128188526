/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_plain_do.c -- performs what the meeting of a plain queue pair decides, for its home
 * connection.
 *
 * An event of the present stream occurs in the middle of a call on the stream. So the event is only
 * recorded, and the bit CONN_PLAIN makes the thread that holds the lock report it to the meeting
 * after the call. A stream is used only once: each attempt gives the home a new stream, and the
 * queue pair moves to the new stream with all posted requests.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/io/conn_parts.h"
#include "softrnic/io/conn_plain_impl.h"
#include "softrnic/io/link_self.h"

#define GIVE_AWAY_AGAIN_NS NSEC_PER_MS

void conn_plain_ask(struct conn *c)
{
	atomic_fetch_or(&c->want, CONN_PLAIN);
	conn_again(c);
}

static void plain_note(struct conn *c, unsigned news)
{
	c->plain->news |= news;
	atomic_fetch_or(&c->want, CONN_PLAIN);
}

/* --- the stream of an attempt --------------------------------------------------------------- */

/*
 * End the stream and its link by a reset, and attach the queue pair to a new stream. A stream that
 * was not used yet stays. `same_host` is true if both ends are on one host; the stream's offers of
 * checksums and rings depend on it.
 */
int conn_plain_renew_stream(struct conn *c, bool same_host)
{
	struct stream *old = c->stream;
	struct stream_update u;
	struct qp *qp;
	int ret;

	if (stream_state(old) == STREAM_IDLE && c->same_host == same_host)
		return 0;
	c->same_host = same_host;
	qp = stream_take_back_qp(old, &u);
	stream_abort(old, &u);
	conn_perform(c, &u);
	ret = conn_renew_stream(c, STREAM_INITIATOR);
	if (!ret)
		stream_set_meets(c->stream);
	stream_attach_qp(c->stream, qp);
	/* Forget work that was requested for the old stream, and its events. */
	atomic_fetch_and(&c->want, ~(unsigned)(CONN_READY | CONN_CUT | CONN_FENCED));
	c->plain->news &= PLAIN_TIME;
	atomic_store(&c->caps, 0);
	c->may_meet = c->has_met = false;
	return ret;
}

static void plain_close(struct conn *c)
{
	struct stream_update u;

	if (stream_qp_is_failed(c->stream)) { /* a failed queue pair gets no new stream */
		stream_abort(c->stream, &u);
		conn_perform(c, &u);
	} else {
		(void)conn_plain_renew_stream(c, c->same_host);
	}
}

/* --- private data for the peer -------------------------------------------------------------- */

static void plain_params(const struct conn_plain *p, struct stream_params *params)
{
	struct meet_data data = {
		.uc = p->rtr.ends.uc,
		.from = p->rtr.ends.own,
		.to = p->rtr.ends.peer,
		.rq_psn = p->rtr.rq_psn,
		.sq_psn = p->has_rts ? p->rts.sq_psn : MEET_NO_PSN,
		.path_mtu = p->rtr.path_mtu,
		.max_dest_rd_atomic = p->rtr.max_dest_rd_atomic,
		.max_rd_atomic = p->has_rts ? p->rts.max_rd_atomic : MEET_NO_RD,
	};

	*params = (struct stream_params){
		.ird = RNIC_MAX_RD_ATOM, .ord = RNIC_MAX_RD_ATOM, .pdata_len = MEET_LEN};
	(void)meet_data_encode(params->pdata, sizeof(params->pdata), &data);
}

/* Does the reply name the queue pair that was dialed? */
static bool plain_reply_fits(struct conn *c)
{
	const struct stream_params *remote = stream_remote(c->stream);
	const struct meeting_ends *ends = &c->plain->rtr.ends;
	struct meet_data *peer = &c->plain->peer;
	const char *why;

	return !meet_data_decode(remote->pdata, remote->pdata_len, peer, &why) &&
	       meet_end_equals(&peer->from, &ends->peer) &&
	       meet_end_equals(&peer->to, &ends->own) && peer->uc == ends->uc;
}

/*
 * Do the packet sequence numbers (PSN) of the two ends match? A hardware card drops all packets of
 * a peer whose numbers do not match. Here TCP orders the bytes, so such a program works
 * nevertheless, and only a notice is logged, unless SOFTRNIC_STRICT_PSN is set. An end has no
 * sending number before RTS. Returns false if the peer must be refused.
 */
static bool plain_psns_permit(const struct conn_plain *p, const struct meet_data *peer)
{
	bool sends_fit = !p->has_rts || p->rts.sq_psn == peer->rq_psn;
	bool receives_fit = peer->sq_psn == MEET_NO_PSN || peer->sq_psn == p->rtr.rq_psn;
	bool strict = config_get()->strict_psn;

	if (sends_fit && receives_fit)
		return true;
	LOG_NOTICE_LIMITED(
		"queue pair 0x%06x: the packet sequence numbers of the two ends differ "
		"(sq_psn of one and rq_psn of the other): RDMA hardware would not connect%s",
		p->place.qpn,
		strict ? ", and these do not connect either (SOFTRNIC_STRICT_PSN)" : "");
	return !strict;
}

/* The level of a message that each dial repeats: a warning the first time, later info. */
static enum log_level plain_level_once(bool *warned)
{
	enum log_level level = *warned ? LOG_LVL_INFO : LOG_LVL_WARNING;

	*warned = true;
	return level;
}

static void plain_log_reject(struct conn *c)
{
	const struct stream_params *remote = stream_remote(c->stream);
	const struct meeting_ends *ends = &c->plain->rtr.ends;
	enum log_level level;
	struct meet_data data;
	const char *why;

	if (meet_data_decode(remote->pdata, remote->pdata_len, &data, &why))
		return;
	if (data.reason == MEET_NOT_PEER) {
		level = plain_level_once(&c->plain->warned_rejected);
		LOG_LIMITED_AT(level,
			       "queue pair 0x%06x: its peer 0x%06x expects another queue pair: "
			       "are the numbers or the GIDs exchanged correctly, and are both "
			       "of the same type (RC, UC)?",
			       ends->own.qpn, ends->peer.qpn);
	} else {
		LOG_INFO("queue pair 0x%06x: its peer 0x%06x rejects the dial: %s", ends->own.qpn,
			 ends->peer.qpn, meet_reason_str(data.reason));
	}
}

/* --- what the meeting decides --------------------------------------------------------------- */

static void plain_ended(struct conn *c, uint32_t attempt, enum meeting_use use)
{
	struct meeting_todo todo;

	meeting_on_end(&c->plain->meeting, attempt, use, clock_now_ns(), &todo);
	conn_plain_do(c, &todo);
	if (stream_has_posted(c->stream))
		conn_plain_on_post(c);
}

/* Has an unreliable queue pair lost its peer? It connects to no other peer until it is reset. */
static bool plain_is_alone(const struct conn_plain *p)
{
	return p->meeting.state == MEETING_LOST && p->meeting.ends.uc;
}

/* Called when an attempt fails before it has a stream. Only record the end of the attempt: this
 * code runs within a call on the meeting, and the meeting must not be called again before that call
 * has returned. */
static void plain_came_to_nothing(struct conn *c)
{
	c->plain->use = MEETING_UNUSED;
	plain_note(c, PLAIN_ENDED);
}

/* Connect the queue pair to itself. The link for this is the only one without a descriptor: it
 * calls the event source directly. */
static void plain_join_self(struct conn *c, uint32_t attempt)
{
	struct conn_plain *p = c->plain;
	struct stream_params params;
	struct stream_update u;
	const char *why;

	p->attempt = attempt;
	plain_params(p, &params);
	if (!conn_plain_renew_stream(c, c->same_host))
		c->link = link_self_new(&c->source);
	if (!c->link || stream_join_self(c->stream, &params, clock_now_ns(), &u)) {
		plain_came_to_nothing(c);
		return;
	}
	(void)meet_data_decode(params.pdata, params.pdata_len, &p->peer, &why);
	c->registered = c->readable = c->writable = true;
	conn_get(c);
	conn_settle(c);
}

static void plain_dial(struct conn *c, uint32_t attempt)
{
	struct conn_plain *p = c->plain;
	struct stream_params params;
	struct stream_update u;
	bool same_host;

	p->attempt = attempt;
	/* A number with so low a port belongs to a hardware card or to an id, so no listener exists
	 * for it. */
	if (QP_PORT_OF(p->rtr.ends.peer.qpn) < QP_PORT_MIN) {
		plain_came_to_nothing(c);
		return;
	}
	c->src = p->rtr.from;
	c->dst = p->rtr.to;
	c->dst.port = (uint16_t)QP_PORT_OF(p->rtr.ends.peer.qpn);
	/* the connection must not repeat a refused dial, because the meeting repeats it */
	c->patient_until = 1;
	plain_params(p, &params);
	same_host = link_of(&c->dst)->connecting->same_host(&c->src, &c->dst);
	if (conn_plain_renew_stream(c, same_host) ||
	    stream_connect(c->stream, &params, clock_now_ns(), &u)) {
		plain_came_to_nothing(c);
		return;
	}
	conn_dial(c, NULL);
	conn_settle(c);
}

static void plain_accept(struct conn *c, uint32_t attempt, struct meeting_inbound *in)
{
	struct conn_plain *p = c->plain;
	struct stream_params params;
	struct stream_update u;
	struct meet_data peer = in->data;
	int ret;

	p->attempt = attempt;
	ret = plain_psns_permit(p, &peer) ? conn_plain_renew_stream(c, c->same_host) : -EPROTO;
	if (!ret)
		ret = conn_plain_take_over(c, qp_port_remove(&p->place, qp_dial_of(in)));
	else
		conn_plain_drop(qp_port_remove(&p->place, qp_dial_of(in)),
				ret == -EPROTO ? MEET_NOT_PEER : MEET_BUSY);
	if (!ret) {
		p->peer = peer;
		plain_params(p, &params);
		conn_origin_arrives(c);
		ret = stream_accept(c->stream, &params, conn_segment(c), clock_now_ns(), &u);
		conn_perform(c, &u);
	}
	if (ret)
		plain_came_to_nothing(c);
}

static const char *plain_type_str(bool uc)
{
	return uc ? "unreliable (UC)" : "reliable (RC)";
}

/* Report that a dial is not from the queue pair that this one expects. */
static void plain_log_not_peer(struct conn *c, const struct meet_data *data)
{
	const struct meeting *m = &c->plain->meeting;
	enum log_level level = plain_level_once(&c->plain->warned_rejects);

	if (data->uc != m->ends.uc)
		LOG_LIMITED_AT(level,
			       "queue pair 0x%06x is %s, but is dialed by 0x%06x, which is %s: "
			       "make both of the same type",
			       c->plain->place.qpn, plain_type_str(m->ends.uc), data->from.qpn,
			       plain_type_str(data->uc));
	else
		LOG_LIMITED_AT(level,
			       "queue pair 0x%06x expects queue pair 0x%06x as its peer, but is "
			       "dialed by 0x%06x, which expects 0x%06x: are the numbers or the "
			       "GIDs exchanged correctly?",
			       c->plain->place.qpn, m->ends.peer.qpn, data->from.qpn, data->to.qpn);
}

static void plain_reject(struct conn *c, const struct meeting_reject *r)
{
	if (r->reason == MEET_NOT_PEER)
		plain_log_not_peer(c, &r->inbound->data);
	conn_plain_drop(qp_port_remove(&c->plain->place, qp_dial_of(r->inbound)), r->reason);
}

void conn_plain_do(struct conn *c, const struct meeting_todo *todo)
{
	struct conn_plain *p = c->plain;
	struct stream_update u;

	p->deadline = todo->deadline;
	if (todo->todo & MEETING_DO_CLOSE && !p->shut)
		plain_close(c);
	for (unsigned i = 0; todo->todo & MEETING_DO_REJECT && i < todo->n_rejects; i++)
		plain_reject(c, &todo->rejects[i]);
	if (todo->todo & MEETING_DO_FAIL) {
		stream_give_up_qp(c->stream, &u);
		conn_perform(c, &u);
	}
	if (todo->todo & MEETING_DO_SELF)
		plain_join_self(c, todo->attempt);
	if (todo->todo & MEETING_DO_ACCEPT)
		plain_accept(c, todo->attempt, todo->accept);
	if (todo->todo & MEETING_DO_DIAL)
		plain_dial(c, todo->attempt);
}

/* Limit the outstanding requests: the user of each end has stated how many requests it sends and
 * how many it accepts. */
void conn_plain_limit_requests(struct conn *c, struct stream_update *u)
{
	const struct conn_plain *p = c->plain;
	uint8_t own = p->rts.max_rd_atomic, peer = p->peer.max_dest_rd_atomic;

	if (p->has_rts && stream_state(c->stream) == STREAM_LIVE)
		stream_limit_requests(c->stream, own < peer ? own : peer, u);
}

/* --- reports to the meeting ----------------------------------------------------------------- */

static void plain_run_stream(struct conn *c, unsigned news)
{
	struct conn_plain *p = c->plain;
	struct meeting_todo todo;

	if (news & PLAIN_ESTABLISHED) {
		meeting_on_established(&p->meeting, p->attempt, &todo);
		conn_plain_do(c, &todo);
	}
	if (news & PLAIN_REPLIED) {
		meeting_on_reply(&p->meeting, p->attempt, &todo);
		conn_plain_do(c, &todo);
	}
	if (news & PLAIN_LIVE) {
		meeting_on_live(&p->meeting, p->attempt, &todo);
		conn_plain_do(c, &todo);
	}
	if (news & PLAIN_ENDED)
		plain_ended(c, p->attempt, p->use);
}

static void plain_run_dials(struct conn *c)
{
	struct conn_plain *p = c->plain;
	struct meeting_todo todo;
	struct qp_dial *dial;

	while ((dial = qp_port_news(&p->place))) {
		if (!dial->gone) {
			meeting_on_inbound(&p->meeting, &dial->in, clock_now_ns(), &todo);
			conn_plain_do(c, &todo);
			continue;
		}
		if (dial->known) {
			meeting_on_parked_end(&p->meeting, &dial->in, &todo);
			conn_plain_do(c, &todo);
		}
		qp_port_remove(&p->place, dial);
		conn_plain_drop(dial, MEET_BUSY);
	}
}

static void plain_on_time(struct conn *c)
{
	const struct meeting_ends *ends = &c->plain->rtr.ends;
	struct meeting_todo todo;

	meeting_on_time(&c->plain->meeting, clock_now_ns(), &todo);
	if (todo.todo & MEETING_DO_FAIL)
		LOG_WARNING_LIMITED("queue pair 0x%06x: no connection with its peer 0x%06x within "
				    "the retry time (SOFTRNIC_RETRY_MS): is the peer's program "
				    "running, has it moved its queue pair to RTR, and is the port "
				    "%u open?",
				    ends->own.qpn, ends->peer.qpn, ends->peer.qpn >> 8);
	conn_plain_do(c, &todo);
}

void conn_plain_run(struct conn *c)
{
	struct conn_plain *p = c->plain;
	unsigned news = p->news;

	p->news = 0;
	plain_run_stream(c, news);
	if (p->shut)
		return;
	plain_run_dials(c);
	if (clock_now_ns() >= p->deadline) {
		plain_on_time(c);
		if (plain_is_alone(p))
			conn_plain_on_post(c);
	}
	conn_settle(c); /* conn_settle() also sets the timer */
}

void conn_plain_on_dialed(struct conn *c)
{
	plain_note(c, PLAIN_ESTABLISHED);
}

void conn_plain_on_time(struct conn *c)
{
	if (clock_now_ns() >= c->plain->deadline)
		plain_note(c, PLAIN_TIME);
}

static enum meeting_use plain_use(const struct conn *c)
{
	if (stream_qp(c->stream) && stream_qp_is_failed(c->stream))
		return MEETING_FAILED;
	return stream_was_used(c->stream) ? MEETING_USED : MEETING_UNUSED;
}

void conn_plain_on_event(struct conn *c, enum stream_event event, int status)
{
	struct conn_plain *p = c->plain;
	/* not used: the caller of this function asks the stream for its tasks afterwards */
	struct stream_update u;

	if (event == STREAM_EV_REPLIED && plain_reply_fits(c) && plain_psns_permit(p, &p->peer)) {
		plain_note(c, PLAIN_REPLIED);
	} else if (event == STREAM_EV_ESTABLISHED) {
		conn_plain_limit_requests(c, &u);
		plain_note(c, PLAIN_LIVE);
	} else {
		if (event == STREAM_EV_REJECTED)
			plain_log_reject(c);
		p->use = plain_use(c);
		if (event == STREAM_EV_REPLIED)
			stream_abort(c->stream, &u);
		plain_note(c, PLAIN_ENDED);
	}
}

/* Compare the packet sequence numbers after the move to RTS. This end's reply may have been sent
 * before this end had a number, and the peer does not compare numbers after the reply. */
void conn_plain_compare_psns(struct conn *c)
{
	const struct conn_plain *p = c->plain;
	enum meeting_state state = p->meeting.state;
	enum meeting_use use = plain_use(c);
	struct stream_update u;

	if ((state != MEETING_GREETING && state != MEETING_MET) || plain_psns_permit(p, &p->peer))
		return;
	stream_abort(c->stream, &u);
	conn_perform(c, &u);
	plain_ended(c, p->attempt, use);
}

/*
 * Complete posted requests of an unreliable queue pair whose peer is gone: they need no answer, so
 * no other event completes them. If a Bind has to wait for another connection that uses its window,
 * try again later.
 */
static void plain_give_away(struct conn *c)
{
	struct stream_update u;

	stream_give_away(c->stream, &u);
	conn_perform(c, &u);
	if (!stream_qp_is_failed(c->stream) && stream_has_posted(c->stream))
		c->plain->deadline = clock_now_ns() + GIVE_AWAY_AGAIN_NS;
}

void conn_plain_on_post(struct conn *c)
{
	struct meeting_todo todo;

	if (c->plain->meeting.state == MEETING_MET)
		return;
	if (plain_is_alone(c->plain)) {
		plain_give_away(c);
		return;
	}
	meeting_on_post(&c->plain->meeting, clock_now_ns(), &todo);
	conn_plain_do(c, &todo);
	conn_settle(c);
}
