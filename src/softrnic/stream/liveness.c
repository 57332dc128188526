/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liveness.c -- decides when an end sends a heartbeat, and when its peer is lost. An end checks
 * ("looks at") the connection's byte counts twice within a limit, and three times within a short
 * limit. An end that received nothing since the last check sends a ping. An end that received bytes
 * but sent none sends an unrequested pong, because the peer's ping may be stuck behind other data
 * of the peer. So silence for a whole limit means that the peer or the path to it is gone.
 */
#include "softrnic/stream/liveness.h"

#include "softrnic/stream/stream_impl.h"

/*
 * Number of checks within one limit. After a check the peer has the rest of the limit to answer.
 * Fewer checks cost the process of an idle connection less time. A short limit has one more check,
 * because a busy machine's scheduler may delay the peer's answer for a large part of a short limit.
 */
#define LOOKS       2
#define LOOKS_SHORT 3
#define SHORT_NS    (10 * NSEC_PER_SEC)

/* period of checks while this end does not read, because it cannot see the peer's pings then */
#define STALLED_NS NSEC_PER_SEC

static uint64_t liveness_at_least(uint64_t ns, uint64_t min)
{
	return ns > min ? ns : min;
}

static uint64_t liveness_earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The period between two checks. It suits the shorter of both ends' limits. */
static uint64_t liveness_period_ns(const struct liveness *l, bool stalled)
{
	uint64_t limit = liveness_earlier(l->limit_ns, l->peer_ns);
	uint64_t looks = limit < SHORT_NS ? LOOKS_SHORT : LOOKS;
	uint64_t ns = (limit + looks - 1) / looks;

	return stalled ? liveness_earlier(ns, STALLED_NS) : ns;
}

/*
 * Delay each check by up to an eighth of its period, so that many connections are checked at the
 * same time, and one wake-up serves all of them. The two ends of a connection may have the same
 * clock. Their checks are offset against each other, so that the end that checks later already
 * finds the other end's ping.
 */
static uint64_t liveness_gather(const struct liveness *l, uint64_t at)
{
	uint64_t tick = 1, offset, eighth = liveness_period_ns(l, false) / 8;

	if (at == CLOCK_NEVER)
		return at;
	while (tick <= eighth / 2)
		tick *= 2;
	offset = l->second ? tick / 2 : 0;
	return (at - offset + tick - 1) / tick * tick + offset;
}

static void liveness_set(struct liveness *l, uint64_t at, bool exactly)
{
	l->at = at;
	l->due = exactly ? at : liveness_gather(l, at);
}

static void liveness_look_later(struct liveness *l, bool stalled, uint64_t now)
{
	liveness_set(l,
		     liveness_earlier(stream_after(now, liveness_period_ns(l, stalled)),
				      stream_after(l->heard, l->limit_ns)),
		     stalled);
}

void liveness_off(struct liveness *l)
{
	*l = (struct liveness){.at = CLOCK_NEVER, .due = CLOCK_NEVER};
}

void liveness_begin(struct liveness *l, bool second, uint64_t limit_ns,
		    const struct liveness_view *view, uint64_t now)
{
	*l = (struct liveness){
		.second = second,
		.limit_ns = liveness_at_least(limit_ns, LIVENESS_MIN_NS),
		.peer_ns = LIVENESS_ASSUMED_NS,
		.heard = now,
		.rx = view->rx,
		.tx = view->tx,
	};
	liveness_look_later(l, false, now);
}

static uint64_t liveness_peer_ns(uint32_t peer_ms)
{
	return liveness_at_least(peer_ms * NSEC_PER_MS, LIVENESS_MIN_NS);
}

bool liveness_knows_peer_limit(const struct liveness *l, uint32_t peer_ms)
{
	return !peer_ms || l->at == CLOCK_NEVER || liveness_peer_ns(peer_ms) == l->peer_ns;
}

void liveness_on_peer_limit(struct liveness *l, uint32_t peer_ms, uint64_t now)
{
	if (liveness_knows_peer_limit(l, peer_ms))
		return;
	l->peer_ns = liveness_peer_ns(peer_ms);
	liveness_set(l, liveness_earlier(l->at, stream_after(now, liveness_period_ns(l, false))),
		     false);
}

enum liveness_act liveness_look(struct liveness *l, const struct liveness_view *view, uint64_t now)
{
	/* If the check is late by more than a period, this process itself did not run for some
	 * time, and answers of the peer may be unread. */
	bool late = now - l->at > liveness_period_ns(l, view->stalled);
	bool heard = view->rx != l->rx, spoke = view->tx != l->tx;

	if (heard || view->stalled || late)
		l->heard = now;
	if (now - l->heard >= l->limit_ns) {
		liveness_off(l);
		return LIVENESS_LOST;
	}
	l->rx = view->rx;
	l->tx = view->tx;
	liveness_look_later(l, view->stalled, now);
	if (heard || view->stalled)
		return spoke ? LIVENESS_NOTHING : LIVENESS_PONG;
	return l->limit_ns == CLOCK_NEVER ? LIVENESS_NOTHING : LIVENESS_PING;
}

/* --- the liveness of a stream ------------------------------------------------------------- */

static struct liveness_view stream_liveness_view(const struct stream *s)
{
	return (struct liveness_view){
		.rx = qp_counters(s->qp)->rx_bytes,
		.tx = qp_counters(s->qp)->tx_bytes,
		.stalled = qp_rx_is_stalled(s->qp),
	};
}

void stream_liveness_begin(struct stream *s, uint64_t now)
{
	struct liveness_view view;

	if (!s->agreed.consent || !s->qp || s->cfg.liveness_ns == 0)
		return;
	view = stream_liveness_view(s);
	liveness_begin(&s->liveness, s->cfg.role == STREAM_RESPONDER, s->cfg.liveness_ns, &view,
		       now);
	/* from now on use the limit that the peer's HELLO states */
	stream_liveness_on_bytes(s, now);
}

void stream_liveness_on_bytes(struct stream *s, uint64_t now)
{
	liveness_on_peer_limit(&s->liveness, qp_peer_limit_ms(s->qp), now);
}

bool stream_is_stalled(const struct stream *s)
{
	return s->liveness.at != CLOCK_NEVER && qp_rx_is_stalled(s->qp);
}

bool stream_liveness_on_time(struct stream *s, uint64_t now)
{
	uint64_t ms = s->liveness.limit_ns / NSEC_PER_MS;
	struct liveness_view view;

	if (s->liveness.at > now)
		return true;
	view = stream_liveness_view(s);
	switch (liveness_look(&s->liveness, &view, now)) {
	case LIVENESS_NOTHING:
		break;
	case LIVENESS_PING:
		qp_requests_trim(s->qp);
		qp_ping(s->qp, ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX);
		break;
	case LIVENESS_PONG:
		qp_pong(s->qp);
		break;
	case LIVENESS_LOST:
		return false;
	}
	return true;
}
