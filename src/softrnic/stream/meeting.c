/* SPDX-License-Identifier: BSD-3-Clause */
/* meeting.c -- implements the rules of doc/architecture/meeting.md. doc/model/meeting.pml models
 * the same rules, and states what goes wrong if a rule is missing. */
#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "softrnic/stream/meeting_impl.h"

const char *meeting_state_str(enum meeting_state state)
{
	static const char *const names[] = {
#define X(name) #name,
		MEETING_STATES(X)
#undef X
	};

	return state < sizeof(names) / sizeof(*names) ? names[state] : "?";
}

static void meeting_set_state(struct meeting *m, enum meeting_state to, const char *why)
{
	if (m->state == to)
		return;
	LOG_INFO("meeting of queue pair 0x%06x: %s -> %s (%s)", m->ends.own.qpn,
		 meeting_state_str(m->state), meeting_state_str(to), why);
	m->state = to;
}

static bool meeting_has_attempt(const struct meeting *m)
{
	return meeting_looks(m) ? m->dial != MEETING_DIAL_NONE
				: m->state == MEETING_GREETING || m->state == MEETING_MET;
}

static bool meeting_is_present(const struct meeting *m, uint32_t attempt)
{
	return attempt == m->attempt && meeting_has_attempt(m);
}

void meeting_finish(const struct meeting *m, struct meeting_todo *todo)
{
	todo->deadline = m->retry_at;
	if (meeting_looks(m))
		todo->deadline =
			meeting_earlier(todo->deadline, meeting_earlier(m->dial_at, m->yield_at));
}

/* End dialing: no dial is in progress, and none is due. */
static void meeting_stop_dialing(struct meeting *m)
{
	m->dial = MEETING_DIAL_NONE;
	m->dial_at = CLOCK_NEVER;
	m->yield_at = CLOCK_NEVER;
}

void meeting_init(struct meeting *m)
{
	*m = (struct meeting){.state = MEETING_NONE, .retry_ns = CLOCK_NEVER};
	meeting_stop_dialing(m);
	meeting_stop_retry_clock(m);
}

/* --- attempts ---------------------------------------------------------------------------------- */

static void meeting_close(struct meeting *m, struct meeting_todo *todo)
{
	if (meeting_has_attempt(m))
		todo->todo |= MEETING_DO_CLOSE;
	meeting_stop_dialing(m);
}

static void meeting_start_attempt(struct meeting *m, unsigned how, struct meeting_todo *todo)
{
	todo->todo |= how;
	todo->attempt = ++m->attempt;
}

static void meeting_dial(struct meeting *m, uint64_t now, struct meeting_todo *todo)
{
	m->dial = MEETING_DIAL_CONNECTING;
	m->dial_at = meeting_after(now, MEETING_CONNECT_NS);
	meeting_start_attempt(m, MEETING_DO_DIAL, todo);
}

static void meeting_accept(struct meeting *m, struct meeting_inbound *in, const char *why,
			   struct meeting_todo *todo)
{
	if (m->dial != MEETING_DIAL_NONE)
		todo->todo |= MEETING_DO_CLOSE;
	meeting_stop_dialing(m);
	meeting_unpark(m, in);
	todo->accept = in;
	meeting_start_attempt(m, MEETING_DO_ACCEPT, todo);
	meeting_set_state(m, MEETING_GREETING, why);
}

/*
 * Is this end the one that dials? The end with the greater name dials. Numbers are compared before
 * GIDs, as InfiniBand connection managers do.
 */
static bool meeting_dials(const struct meeting_ends *ends)
{
	return ends->own.qpn != ends->peer.qpn
		       ? ends->own.qpn > ends->peer.qpn
		       : memcmp(ends->own.gid, ends->peer.gid, MEET_GID_LEN) > 0;
}

/*
 * Search for the peer. No attempt is in progress. First accept a parked dial of the peer, because
 * the peer waits for this answer and does not dial again. Reject the other parked dials, so that
 * their senders get the error. Returns true if the peer had a parked dial.
 */
static bool meeting_look(struct meeting *m, const char *why, struct meeting_todo *todo)
{
	struct meeting_inbound *in = meeting_parked_peer(m);

	if (in) {
		meeting_accept(m, in, why, todo);
		return true;
	}
	meeting_reject_parked(m, MEET_NOT_PEER, todo);
	meeting_set_state(m, meeting_dials(&m->ends) ? MEETING_DIALING : MEETING_AWAITING, why);
	return false;
}

/*
 * The pause before the next dial. After MEETING_PATIENCE_NS an end without posted requests dials
 * only every MEETING_SELDOM_NS, but never stops dialing, because the peer may need minutes to get
 * ready, and a firewall may let only this end's dials pass.
 */
static uint64_t meeting_pause(struct meeting *m, uint64_t now)
{
	uint64_t pause = m->pause_ns;

	m->pause_ns = meeting_earlier(2 * pause, MEETING_RETRY_MAX_NS);
	return m->posted || now - m->since < MEETING_PATIENCE_NS ? pause : MEETING_SELDOM_NS;
}

/* Called when this end's dial was closed without a stream: dial again later. */
static void meeting_redial_later(struct meeting *m, uint64_t now, struct meeting_todo *todo)
{
	meeting_stop_dialing(m);
	if (!meeting_look(m, "its dial ended", todo))
		m->dial_at = meeting_after(now, meeting_pause(m, now));
}

/* Called when a stream has ended without a message of either user: search for the peer again.
 * Either the peer was reset and may search for this end, too, or the accepted dial was an outdated
 * one. */
static void meeting_look_again(struct meeting *m, uint64_t now, struct meeting_todo *todo)
{
	if (m->state == MEETING_MET) {
		m->since = now;
		m->pause_ns = MEETING_RETRY_MIN_NS;
	}
	if (meeting_look(m, "an unused stream ended", todo))
		return;
	m->dial_at = meeting_after(now, m->state == MEETING_DIALING ? meeting_pause(m, now)
								    : MEETING_AWAIT_NS);
}

static void meeting_fail(struct meeting *m, const char *why, struct meeting_todo *todo)
{
	meeting_stop_dialing(m);
	meeting_stop_retry_clock(m);
	todo->todo |= MEETING_DO_FAIL;
	meeting_set_state(m, MEETING_NONE, why);
}

/* --- what the user does ------------------------------------------------------------------------ */

static void meeting_start_looking(struct meeting *m, uint64_t now, struct meeting_todo *todo)
{
	if (meeting_look(m, "RTR", todo))
		return;
	if (m->state == MEETING_DIALING)
		meeting_dial(m, now, todo);
	else
		m->dial_at = meeting_after(now, MEETING_AWAIT_NS);
}

void meeting_on_rtr(struct meeting *m, const struct meeting_ends *ends, uint64_t now,
		    struct meeting_todo *todo)
{
	assert(m->state == MEETING_NONE);
	meeting_begin(todo);
	m->ends = *ends;
	m->since = now;
	m->pause_ns = MEETING_RETRY_MIN_NS;
	meeting_stop_retry_clock(m);
	if (meet_end_equals(&ends->own, &ends->peer)) {
		meeting_start_attempt(m, MEETING_DO_SELF, todo);
		meeting_set_state(m, MEETING_GREETING, "its own peer");
	} else {
		meeting_start_looking(m, now, todo);
	}
	meeting_finish(m, todo);
}

void meeting_on_leave(struct meeting *m, enum meeting_leave how, struct meeting_todo *todo)
{
	static const char *const why[] = {"RESET", "ERR", "destroyed"};

	meeting_begin(todo);
	meeting_close(m, todo);
	meeting_stop_retry_clock(m);
	if (how == MEETING_LEAVE_DESTROY)
		meeting_reject_parked(m, MEET_NO_QP, todo);
	if (m->state != MEETING_NONE)
		meeting_set_state(m, MEETING_NONE, why[how]);
	meeting_finish(m, todo);
}

/* --- inbound dials ----------------------------------------------------------------------------- */

/*
 * Called when the peer's dial arrives while this end searches for the peer. If this end's request
 * is sent, keep this end's dial: when the peer reads the request, it accepts this dial and ends its
 * own dial. If the request is not sent yet, the peer cannot accept this end's dial, so accept the
 * peer's dial immediately.
 */
static void meeting_choose(struct meeting *m, struct meeting_inbound *in, uint64_t now,
			   struct meeting_todo *todo)
{
	if (m->state == MEETING_DIALING && m->dial == MEETING_DIAL_SENT) {
		meeting_park(m, in, todo);
		m->yield_at = meeting_earlier(m->yield_at, meeting_after(now, MEETING_YIELD_NS));
	} else {
		meeting_accept(m, in, "the peer dialed", todo);
	}
}

void meeting_on_inbound(struct meeting *m, struct meeting_inbound *in, uint64_t now,
			struct meeting_todo *todo)
{
	meeting_begin(todo);
	if (!meeting_looks(m))
		meeting_park(m, in, todo);
	else if (meeting_is_peer(m, in))
		meeting_choose(m, in, now, todo);
	else
		meeting_reject(in, MEET_NOT_PEER, todo);
	meeting_finish(m, todo);
}

void meeting_on_parked_end(struct meeting *m, const struct meeting_inbound *in,
			   struct meeting_todo *todo)
{
	meeting_begin(todo);
	meeting_unpark(m, in);
	if (!meeting_parked_peer(m))
		m->yield_at = CLOCK_NEVER;
	meeting_finish(m, todo);
}

/* --- the attempt ------------------------------------------------------------------------------- */

void meeting_on_established(struct meeting *m, uint32_t attempt, struct meeting_todo *todo)
{
	meeting_begin(todo);
	if (meeting_is_present(m, attempt) && m->dial == MEETING_DIAL_CONNECTING) {
		m->dial = MEETING_DIAL_SENT;
		/* no time limit for the reply: the peer may need minutes to move to RTR */
		m->dial_at = CLOCK_NEVER;
	}
	meeting_finish(m, todo);
}

void meeting_on_reply(struct meeting *m, uint32_t attempt, struct meeting_todo *todo)
{
	meeting_begin(todo);
	if (meeting_is_present(m, attempt) && m->dial == MEETING_DIAL_SENT) {
		meeting_stop_dialing(m);
		meeting_set_state(m, MEETING_GREETING, "the peer accepted");
	}
	meeting_finish(m, todo);
}

void meeting_on_live(struct meeting *m, uint32_t attempt, struct meeting_todo *todo)
{
	meeting_begin(todo);
	if (meeting_is_present(m, attempt) && m->state == MEETING_GREETING) {
		meeting_stop_retry_clock(m);
		meeting_set_state(m, MEETING_MET, "both HELLOs");
	}
	meeting_finish(m, todo);
}

void meeting_on_end(struct meeting *m, uint32_t attempt, enum meeting_use use, uint64_t now,
		    struct meeting_todo *todo)
{
	meeting_begin(todo);
	if (!meeting_is_present(m, attempt))
		;
	else if (meeting_looks(m))
		meeting_redial_later(m, now, todo);
	else if (m->state == MEETING_GREETING || use == MEETING_UNUSED)
		meeting_look_again(m, now, todo);
	else if (use == MEETING_FAILED)
		meeting_fail(m, "its queue pair failed", todo);
	else
		meeting_set_state(m, MEETING_LOST, "its stream ended");
	meeting_finish(m, todo);
}

/* --- time -------------------------------------------------------------------------------------- */

void meeting_on_time(struct meeting *m, uint64_t now, struct meeting_todo *todo)
{
	meeting_begin(todo);
	if (m->retry_at <= now) {
		meeting_close(m, todo);
		meeting_fail(m, "the peer was not met in time", todo);
	} else if (meeting_looks(m) && m->yield_at <= now) {
		meeting_accept(m, meeting_parked_peer(m), "its own dial has no reply", todo);
	} else if (meeting_looks(m) && m->dial_at <= now) {
		if (m->dial == MEETING_DIAL_NONE) {
			meeting_dial(m, now, todo);
		} else {
			todo->todo |= MEETING_DO_CLOSE; /* the TCP connect got no answer in time */
			meeting_redial_later(m, now, todo);
		}
	}
	meeting_finish(m, todo);
}
