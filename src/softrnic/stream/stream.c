/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.c -- the states and events of a stream, and functions that the other files of this folder
 * share. */
#include "softrnic/stream/stream.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/stream/consent.h"
#include "softrnic/stream/stream_impl.h"

#define BIT(name) (1u << STREAM_##name)

static const unsigned stream_successors[] = {
	[STREAM_IDLE] = BIT(DIALING) | BIT(REQ_WAIT) | BIT(HELLO) | BIT(CLOSED),
	[STREAM_DIALING] = BIT(REQ_SENT) | BIT(CLOSED),
	[STREAM_REQ_SENT] = BIT(HELLO) | BIT(LIVE) | BIT(DIALING) | BIT(CLOSING) | BIT(CLOSED),
	[STREAM_REQ_WAIT] = BIT(REQ_RCVD) | BIT(CLOSING) | BIT(CLOSED),
	[STREAM_REQ_RCVD] = BIT(REP_SENT) | BIT(CLOSING) | BIT(CLOSED),
	[STREAM_REP_SENT] = BIT(HELLO) | BIT(LIVE) | BIT(DRAINING) | BIT(CLOSING) | BIT(CLOSED),
	[STREAM_HELLO] = BIT(LIVE) | BIT(DRAINING) | BIT(CLOSING) | BIT(CLOSED),
	[STREAM_LIVE] = BIT(DRAINING) | BIT(CLOSING) | BIT(CLOSED),
	[STREAM_DRAINING] = BIT(CLOSING) | BIT(LINGERING) | BIT(CLOSED),
	[STREAM_CLOSING] = BIT(LINGERING) | BIT(CLOSED),
	[STREAM_LINGERING] = BIT(CLOSED),
	[STREAM_CLOSED] = 0,
};

const char *stream_state_str(enum stream_state state)
{
	static const char *const names[] = {
#define X(name) [STREAM_##name] = #name,
		STREAM_STATES(X)
#undef X
	};

	return names[state];
}

void stream_free_buffers(struct stream *s)
{
	stream_frames_delete(s);
	free(s->discard);
	s->discard = NULL;
	free(s->origin);
	s->origin = NULL;
	free(s->rest);
	s->rest = NULL;
	s->rest_len = s->rest_sent = 0;
}

void stream_set_state(struct stream *s, enum stream_state to, const char *why)
{
	if (!(stream_successors[s->state] & 1u << to)) {
		LOG_ERROR("stream %p: %s must not follow %s", (void *)s, stream_state_str(to),
			  stream_state_str(s->state));
		assert(!"illegal transition");
	}
	LOG_INFO("stream %p: %s -> %s (%s)", (void *)s, stream_state_str(s->state),
		 stream_state_str(to), why);
	s->state = to;
	if (to == STREAM_LIVE || to == STREAM_CLOSED) {
		s->deadline = s->rnr_at = CLOCK_NEVER;
		stream_free_buffers(s);
	}
	if (to != STREAM_LIVE) {
		s->hold_notice = CLOCK_NEVER;
		liveness_off(&s->liveness);
	}
}

enum stream_event stream_event_of(int err)
{
	switch (err) {
	case ECONNREFUSED:
	case ECONNRESET:
	case EPIPE:
		return STREAM_EV_REJECTED;
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
		return STREAM_EV_UNREACHABLE;
	default:
		return STREAM_EV_CONNECT_ERROR;
	}
}

uint64_t stream_after(uint64_t now, uint64_t ns)
{
	return ns < CLOCK_NEVER - now ? now + ns : CLOCK_NEVER;
}

struct stream_config stream_config_of(enum stream_role role, bool crc, bool extensions)
{
	return (struct stream_config){
		.role = role, .crc = crc, .offer_consent = extensions, .revision = MPA_REVISION_2};
}

int stream_new(const struct stream_config *cfg, struct stream **out)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	s->state = STREAM_IDLE;
	s->deadline = CLOCK_NEVER;
	s->hold_notice = s->rnr_at = CLOCK_NEVER;
	liveness_off(&s->liveness);
	if (cfg->revision == MPA_REVISION_1)
		s->attempt = STREAM_ATTEMPT_REV1;
	else if (cfg->p2p)
		s->attempt = STREAM_ATTEMPT_P2P;
	*out = s;
	return 0;
}

void stream_delete(struct stream *s)
{
	if (!s)
		return;
	assert(s->rx_into == STREAM_RX_NOTHING);
	stream_free_buffers(s);
	free(s);
}

void stream_set_meets(struct stream *s)
{
	assert(s->state == STREAM_IDLE);
	s->cfg.meets = s->cfg.offer_consent = true;
}

void stream_move(struct stream *s, void *owner)
{
	s->cfg.owner = owner;
}

bool stream_peer_consents(const struct stream *s)
{
	return stream_consent_get(&s->request) != STREAM_CONSENT_NONE;
}

bool stream_has_posted(const struct stream *s)
{
	return s->qp && qp_has_posted(s->qp);
}

bool stream_was_used(const struct stream *s)
{
	return stream_runs_qp(s) && qp_traffic(s->qp) != s->traffic;
}

enum stream_state stream_state(const struct stream *s)
{
	return s->state;
}

enum stream_role stream_role(const struct stream *s)
{
	return s->cfg.role;
}

/* Does the user still see the stream as before its start-up? This remains so if the peer closes
 * while its request waits for the user. */
static bool stream_is_before_startup(const struct stream *s)
{
	return s->state == STREAM_IDLE || s->state == STREAM_REQ_RCVD || s->gone;
}

int stream_set_limits(struct stream *s, uint64_t connect_ns, uint64_t liveness_ns)
{
	if (!stream_is_before_startup(s))
		return -EINVAL;
	s->cfg.connect_ns = connect_ns;
	s->cfg.liveness_ns = liveness_ns;
	return 0;
}

int stream_set_user_flushes(struct stream *s, bool user_flushes)
{
	if (!stream_is_before_startup(s))
		return -EINVAL;
	s->cfg.user_flushes = user_flushes;
	return 0;
}

const struct stream_params *stream_remote(const struct stream *s)
{
	return &s->remote;
}

const struct qp_stream *stream_agreed(const struct stream *s)
{
	return &s->agreed;
}
