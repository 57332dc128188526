/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.c -- states, events and what they have in common. */
#include "softrnic/stream/stream.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/stream/stream_impl.h"

#define BIT(name) (1u << CM_##name)

static const unsigned cm_successors[] = {
	[CM_IDLE] = BIT(DIALING) | BIT(REQ_WAIT) | BIT(CLOSED),
	[CM_DIALING] = BIT(REQ_SENT) | BIT(CLOSED),
	[CM_REQ_SENT] = BIT(LIVE) | BIT(DIALING) | BIT(CLOSING) | BIT(CLOSED),
	[CM_REQ_WAIT] = BIT(REQ_RCVD) | BIT(CLOSING) | BIT(CLOSED),
	[CM_REQ_RCVD] = BIT(REP_SENT) | BIT(CLOSING) | BIT(CLOSED),
	[CM_REP_SENT] = BIT(LIVE) | BIT(DRAINING) | BIT(CLOSING) | BIT(CLOSED),
	[CM_LIVE] = BIT(DRAINING) | BIT(CLOSING) | BIT(CLOSED),
	[CM_DRAINING] = BIT(CLOSING) | BIT(LINGERING) | BIT(CLOSED),
	[CM_CLOSING] = BIT(LINGERING) | BIT(CLOSED),
	[CM_LINGERING] = BIT(CLOSED),
	[CM_CLOSED] = 0,
};

const char *cm_state_str(enum cm_state state)
{
	static const char *const names[] = {
#define X(name) [CM_##name] = #name,
		CM_STATES(X)
#undef X
	};

	return names[state];
}

static void cm_free_buffers(struct cm_stream *s)
{
	cm_frames_delete(s);
	free(s->discard);
	s->discard = NULL;
	free(s->rest);
	s->rest = NULL;
	s->rest_len = s->rest_sent = 0;
}

void cm_set_state(struct cm_stream *s, enum cm_state to, const char *why)
{
	if (!(cm_successors[s->state] & 1u << to)) {
		LOG_ERROR("stream %p: %s must not follow %s", (void *)s, cm_state_str(to),
			  cm_state_str(s->state));
		assert(!"illegal transition");
	}
	LOG_INFO("stream %p: %s -> %s (%s)", (void *)s, cm_state_str(s->state), cm_state_str(to),
		 why);
	s->state = to;
	if (to == CM_LIVE || to == CM_CLOSED) {
		s->deadline = CLOCK_NEVER;
		cm_free_buffers(s);
	}
	if (to != CM_LIVE) {
		s->hold_notice = CLOCK_NEVER;
		liveness_off(&s->liveness);
	}
}

void cm_end(struct cm_stream *s, enum cm_stream_event event, int status)
{
	if (s->ended)
		return;
	s->ended = true;
	s->cfg.event(s->cfg.owner, event, status);
}

enum cm_stream_event cm_event_of(int err)
{
	switch (err) {
	case ECONNREFUSED:
	case ECONNRESET:
	case EPIPE:
		return CM_EV_REJECTED;
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
		return CM_EV_UNREACHABLE;
	default:
		return CM_EV_CONNECT_ERROR;
	}
}

uint64_t cm_after(uint64_t now, uint64_t ns)
{
	return ns < CLOCK_NEVER - now ? now + ns : CLOCK_NEVER;
}

bool cm_qp_is_failed(const struct cm_stream *s)
{
	return s->started && s->qp && qp_is_failed(s->qp);
}

bool cm_qp_receives(const struct cm_stream *s)
{
	switch (s->state) {
	case CM_REP_SENT:
	case CM_LIVE:
	case CM_DRAINING:
	case CM_CLOSING:
		return s->started && s->qp && !s->fin_in && !qp_is_failed(s->qp);
	case CM_IDLE:
	case CM_DIALING:
	case CM_REQ_SENT:
	case CM_REQ_WAIT:
	case CM_REQ_RCVD:
	case CM_LINGERING:
	case CM_CLOSED:
		return false;
	}
	return false;
}

struct cm_config cm_config_of(enum cm_role role, bool crc, bool extensions)
{
	return (struct cm_config){
		.role = role, .crc = crc, .offer_consent = extensions, .revision = MPA_REVISION_2};
}

int cm_stream_new(const struct cm_config *cfg, struct cm_stream **out)
{
	struct cm_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	s->state = CM_IDLE;
	s->deadline = CLOCK_NEVER;
	s->hold_notice = CLOCK_NEVER;
	liveness_off(&s->liveness);
	if (cfg->revision == MPA_REVISION_1)
		s->attempt = CM_ATTEMPT_REV1;
	else if (cfg->p2p)
		s->attempt = CM_ATTEMPT_P2P;
	*out = s;
	return 0;
}

void cm_stream_delete(struct cm_stream *s)
{
	if (!s)
		return;
	cm_free_buffers(s);
	free(s);
}

enum cm_state cm_stream_state(const struct cm_stream *s)
{
	return s->state;
}

/* The user may destroy a failed QP as soon as he hears of it; the peer is told why all the same. */
static void cm_keep_rest(struct cm_stream *s)
{
	if (s->state == CM_CLOSING && cm_qp_is_failed(s) && !s->fin_out && cm_frame_is_sent(s))
		s->rest_len = qp_tx_take_rest(s->qp, &s->rest);
}

/* Without its QP the stream cannot go on, and may have stopped inside an FPDU. */
static void cm_on_detached(struct cm_stream *s)
{
	switch (s->state) {
	case CM_REP_SENT:
		cm_startup_failed(s, CM_EV_CONNECT_ERROR, ECONNABORTED, "QP detached");
		break;
	case CM_LIVE:
		cm_set_state(s, CM_CLOSED, "QP detached");
		cm_end(s, CM_EV_DISCONNECTED, 0);
		break;
	case CM_DRAINING:
		cm_set_state(s, CM_CLOSING, "QP detached");
		break;
	case CM_IDLE:
	case CM_DIALING:
	case CM_REQ_SENT:
	case CM_REQ_WAIT:
	case CM_REQ_RCVD:
	case CM_CLOSING:
	case CM_LINGERING:
	case CM_CLOSED:
		break;
	}
}

void cm_stream_set_qp(struct cm_stream *s, struct qp *qp)
{
	bool had = s->qp != NULL;

	if (had && !qp)
		cm_keep_rest(s);
	s->qp = qp;
	s->rx_into = CM_RX_NOTHING;
	s->tx_of_qp = false;
	if (had && !qp)
		cm_on_detached(s);
}

/* A peer that has gone while its request waited changes nothing for the user. */
static bool cm_is_before_startup(const struct cm_stream *s)
{
	return s->state == CM_IDLE || s->state == CM_REQ_RCVD || s->gone;
}

int cm_stream_set_limits(struct cm_stream *s, uint64_t connect_ns, uint64_t liveness_ns)
{
	if (!cm_is_before_startup(s))
		return -EINVAL;
	s->cfg.connect_ns = connect_ns;
	s->cfg.liveness_ns = liveness_ns;
	return 0;
}

int cm_stream_set_user_flushes(struct cm_stream *s, bool user_flushes)
{
	if (!cm_is_before_startup(s))
		return -EINVAL;
	s->cfg.user_flushes = user_flushes;
	return 0;
}

const struct cm_params *cm_stream_remote(const struct cm_stream *s)
{
	return &s->remote;
}

const struct qp_stream *cm_stream_agreed(const struct cm_stream *s)
{
	return &s->agreed;
}

uint64_t cm_deadline(const struct cm_stream *s)
{
	uint64_t at = s->deadline < s->hold_notice ? s->deadline : s->hold_notice;

	return at < s->liveness.at ? at : s->liveness.at;
}
