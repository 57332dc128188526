/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liveness.c -- three looks a limit. Whoever heard nothing since the last one asks. Whoever heard
 * something but said nothing speaks up unasked, because the peer's question may be stuck behind
 * what the peer is sending. So silence means that the peer, or the way to it, is gone.
 */
#include "softrnic/stream/liveness.h"

#include "softrnic/stream/stream_impl.h"

#define LOOKS   3            /* a limit */
#define DEAF_NS NSEC_PER_SEC /* who does not read cannot see what the peer asks for */

static uint64_t at_least(uint64_t ns, uint64_t min)
{
	return ns > min ? ns : min;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Often enough for both ends' limits. */
static uint64_t period_ns(const struct liveness *l, bool deaf)
{
	uint64_t ns = (earlier(l->limit_ns, l->peer_ns) + LOOKS - 1) / LOOKS;

	return deaf ? earlier(ns, DEAF_NS) : ns;
}

static void look_later(struct liveness *l, bool deaf, uint64_t now)
{
	l->at = earlier(stream_after(now, period_ns(l, deaf)), stream_after(l->heard, l->limit_ns));
}

void liveness_off(struct liveness *l)
{
	*l = (struct liveness){.at = CLOCK_NEVER};
}

void liveness_begin(struct liveness *l, uint64_t limit_ns, const struct liveness_view *view,
		    uint64_t now)
{
	*l = (struct liveness){
		.limit_ns = at_least(limit_ns, LIVENESS_MIN_NS),
		.peer_ns = LIVENESS_ASSUMED_NS,
		.heard = now,
		.rx = view->rx,
		.tx = view->tx,
	};
	look_later(l, false, now);
}

void liveness_told(struct liveness *l, uint32_t peer_ms, uint64_t now)
{
	uint64_t ns = at_least(peer_ms * NSEC_PER_MS, LIVENESS_MIN_NS);

	if (!peer_ms || l->at == CLOCK_NEVER || ns == l->peer_ns)
		return;
	l->peer_ns = ns;
	l->at = earlier(l->at, stream_after(now, period_ns(l, false)));
}

enum liveness_act liveness_look(struct liveness *l, const struct liveness_view *view, uint64_t now)
{
	/* So late that this process did not run itself: its peer's answers may not be read yet. */
	bool late = now - l->at > period_ns(l, view->deaf);
	bool heard = view->rx != l->rx, spoke = view->tx != l->tx;

	if (heard || view->deaf || late)
		l->heard = now;
	if (now - l->heard >= l->limit_ns) {
		liveness_off(l);
		return LIVENESS_LOST;
	}
	l->rx = view->rx;
	l->tx = view->tx;
	look_later(l, view->deaf, now);
	if (heard || view->deaf)
		return spoke ? LIVENESS_NOTHING : LIVENESS_PONG;
	return l->limit_ns == CLOCK_NEVER ? LIVENESS_NOTHING : LIVENESS_PING;
}

/* --- of a stream -------------------------------------------------------------------------- */

static struct liveness_view view_of(const struct stream *s)
{
	return (struct liveness_view){
		.rx = qp_counters(s->qp)->rx_bytes,
		.tx = qp_counters(s->qp)->tx_bytes,
		.deaf = qp_rx_is_stalled(s->qp),
	};
}

static void ping(struct stream *s)
{
	uint64_t ms = s->liveness.limit_ns / NSEC_PER_MS;

	qp_ping(s->qp, ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX);
}

void stream_liveness_begin(struct stream *s, uint64_t now)
{
	struct liveness_view view;

	if (!s->agreed.consent || !s->qp || s->cfg.liveness_ns == 0)
		return;
	view = view_of(s);
	liveness_begin(&s->liveness, s->cfg.liveness_ns, &view, now);
	stream_liveness_heard(s, now); /* what its HELLO states */
}

void stream_liveness_heard(struct stream *s, uint64_t now)
{
	liveness_told(&s->liveness, qp_peer_limit_ms(s->qp), now);
}

bool stream_is_deaf(const struct stream *s)
{
	return s->liveness.at != CLOCK_NEVER && qp_rx_is_stalled(s->qp);
}

bool stream_liveness_on_time(struct stream *s, uint64_t now)
{
	struct liveness_view view;

	if (s->liveness.at > now)
		return true;
	view = view_of(s);
	switch (liveness_look(&s->liveness, &view, now)) {
	case LIVENESS_NOTHING:
		break;
	case LIVENESS_PING:
		ping(s);
		break;
	case LIVENESS_PONG:
		qp_pong(s->qp);
		break;
	case LIVENESS_LOST:
		return false;
	}
	return true;
}
