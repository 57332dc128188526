/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * startup_origin.c -- the barrier: bytes of former connections are not placed after this connection
 * is established (doc/wire.md s6).
 *
 * The initiator names the connections that it has given up, and is established only after the
 * target has cut them. The next ORIGIN names connections that were given up in the meantime. If
 * there are no such connections, the ORIGIN asks for no answer. It is the last one, and the user
 * may send after it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/stream/stream_impl.h"

#define ORIGIN_LIMIT_NS (60 * NSEC_PER_SEC) /* longest time that a target works on one ORIGIN */

/* --- initiator ------------------------------------------------------------------------------ */

/* Time limit for the target's answer: half of the remaining time, so that the answer arrives before
 * this end gives up. */
static uint32_t stream_fence_limit_ms(const struct stream *s, uint64_t now)
{
	uint64_t left = s->deadline > now ? s->deadline - now : 0;

	if (left > ORIGIN_LIMIT_NS)
		left = ORIGIN_LIMIT_NS;
	return left > 2 * NSEC_PER_MS ? (uint32_t)(left / 2 / NSEC_PER_MS) : 1;
}

static bool stream_post_origin(struct stream *s, uint64_t now)
{
	struct ext_origin *o = s->origin;

	*o = (struct ext_origin){.asks = false};
	if (!s->cfg.host->origin(s->cfg.owner, qp_peer_hello(s->qp)->instance, o))
		return false;
	o->limit_ms = stream_fence_limit_ms(s, now);
	return qp_origin_post(s->qp, o) == 0;
}

/* Post the next ORIGIN. Returns true if this was the last ORIGIN. */
static bool stream_name_next(struct stream *s, uint64_t now)
{
	if (!s->origin)
		s->origin = malloc(sizeof(*s->origin));
	if (!s->origin || !stream_post_origin(s, now)) {
		stream_startup_failed(s, STREAM_EV_CONNECT_ERROR, ENOMEM,
				      "no memory for an Origin");
		return false;
	}
	s->opened = !s->origin->asks;
	return s->opened;
}

/* Called when the target did not cut the former connections. They stay in the registry (former.h),
 * so the next attempt to connect names them again. */
static void stream_not_fenced(struct stream *s, const struct ext_answer *answer)
{
	if (answer->word.arg == EXT_ORIGIN_STUCK)
		LOG_WARNING_LIMITED(
			"stream %p: former connections of this process or owner still place bytes "
			"at the target (%u of them), and the target could not end them within %u "
			"ms: is its memory or file system stuck? The connection is not established",
			(void *)s, answer->detail, s->origin->limit_ms);
	else
		LOG_WARNING_LIMITED("stream %p: the target cannot end former connections now "
				    "(status %u); the connection is not established",
				    (void *)s, answer->word.arg);
	stream_startup_failed(s, STREAM_EV_CONNECT_ERROR, EBUSY, "former connections are not over");
}

static bool stream_names_itself(struct stream *s, uint64_t now)
{
	struct ext_answer answer;

	if (s->origin) {
		if (!qp_origin_answered(s->qp, &answer))
			return false;
		if (answer.word.arg != EXT_ORIGIN_CUT) {
			stream_not_fenced(s, &answer);
			return false;
		}
		s->cfg.host->fenced(s->cfg.owner, s->origin);
	}
	return stream_name_next(s, now);
}

/* --- responder ------------------------------------------------------------------------------ */

static void stream_judge_origin(struct stream *s, const struct ext_origin *o, uint64_t now)
{
	uint64_t limit = o->limit_ms * NSEC_PER_MS;

	switch (s->cfg.host->identify(s->cfg.owner, o)) {
	case STREAM_FENCE_DONE:
		if (o->asks) {
			qp_origin_answer(s->qp, EXT_ORIGIN_CUT, 0);
		} else {
			s->identified = true;
			qp_origin_accept(s->qp);
		}
		break;
	case STREAM_FENCE_WAIT:
		s->fencing = true;
		s->deadline = stream_after(now, limit < ORIGIN_LIMIT_NS ? limit : ORIGIN_LIMIT_NS);
		break;
	case STREAM_FENCE_BUSY:
		qp_origin_answer(s->qp, EXT_ORIGIN_BUSY, 0);
		break;
	case STREAM_FENCE_CUT:
		LOG_INFO("stream %p: a later connection of its initiator has ended it", (void *)s);
		stream_on_lost(s, ECONNABORTED);
		break;
	}
}

static void stream_judge_peer(struct stream *s, uint64_t now)
{
	struct ext_origin *o;

	while (stream_runs_qp(s) && (o = qp_origin_take(s->qp))) {
		stream_judge_origin(s, o, now);
		free(o);
		if (s->state != STREAM_CLOSED)
			qp_rx_resume(s->qp);
	}
}

/*
 * Handle an ORIGIN that arrives after this end began to leave. This end's HELLO has established the
 * connection for the peer, which may send until it receives this end's FIN. So the ORIGIN still
 * identifies this connection. If it asks for an answer, the answer is an error, because this
 * connection is no longer established here.
 */
void stream_origin_late(struct stream *s)
{
	struct ext_origin *o;

	if (!stream_runs_qp(s) || !(o = qp_origin_take(s->qp)))
		return;
	if (o->asks)
		qp_origin_answer(s->qp, EXT_ORIGIN_BUSY, 0);
	else
		stream_judge_origin(s, o, 0);
	free(o);
	if (s->state != STREAM_CLOSED)
		qp_rx_resume(s->qp);
}

static void stream_answer_fence(struct stream *s, enum ext_origin_status status, uint64_t now)
{
	s->fencing = false;
	s->deadline = stream_after(now, s->cfg.request_ns);
	qp_origin_answer(s->qp, status, status == EXT_ORIGIN_STUCK);
}

void stream_fence_end(struct stream *s, uint64_t now, struct stream_update *u)
{
	if (s->fencing && s->state == STREAM_HELLO)
		stream_answer_fence(s, EXT_ORIGIN_CUT, now);
	stream_report_at(s, now, u);
}

void stream_cut_off(struct stream *s, struct stream_update *u)
{
	if (stream_runs_qp(s)) /* parked Sends are no longer delivered */
		qp_fail(s->qp, IBV_WC_WR_FLUSH_ERR);
	stream_on_lost(s, ECONNABORTED);
	stream_report(s, u);
}

/* --- both ----------------------------------------------------------------------------------- */

bool stream_origin_settles(struct stream *s, uint64_t now)
{
	if (!qp_takes_part(s->qp))
		return true;
	if (s->cfg.role == STREAM_INITIATOR)
		return stream_names_itself(s, now);
	stream_judge_peer(s, now);
	return s->identified && s->state == STREAM_HELLO;
}

void stream_origin_on_deadline(struct stream *s, uint64_t now)
{
	if (s->fencing)
		stream_answer_fence(s, EXT_ORIGIN_STUCK, now);
	else
		stream_startup_failed(s, STREAM_EV_UNREACHABLE, ETIMEDOUT, "time limit");
}

/* Returns true if the peer takes part in the barrier, or if this is not known because its HELLO has
 * not arrived yet. */
static bool stream_peer_may_take_part(const struct stream *s)
{
	return s->agreed.takes_part && s->agreed.consent &&
	       (!qp_peer_hello(s->qp) || qp_takes_part(s->qp));
}

bool stream_leaves_first(struct stream *s)
{
	if (s->left || s->cfg.role != STREAM_RESPONDER || !stream_runs_qp(s) ||
	    !stream_peer_may_take_part(s))
		return false;
	s->left = true;
	qp_leave(s->qp);
	return true;
}

/*
 * Set s->over if the target certainly places no more bytes. A responder that ends first sends a
 * LEAVE before its FIN. So a FIN without a LEAVE proves that the responder's queue pair had already
 * ended, provided that all bytes in front of the FIN were parsed.
 */
void stream_note_over(struct stream *s)
{
	bool sent;

	if (!stream_runs_qp(s))
		return;
	if (qp_terminate(s->qp, &sent) && !sent)
		s->over = true;
	if (s->fin_in && !qp_is_failed(s->qp) && !qp_rx_is_stalled(s->qp) && !qp_peer_leaves(s->qp))
		s->over = true;
}

bool stream_is_over(const struct stream *s)
{
	bool sent;

	if (s->over || !s->opened)
		return true;
	return stream_runs_qp(s) && qp_terminate(s->qp, &sent) && !sent;
}
