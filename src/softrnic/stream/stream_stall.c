/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream_stall.c -- detects the peer's FIN while Sends wait for receives. Sends without a posted
 * receive hold up all later bytes, including the peer's FIN. A user that waits for the end may
 * never post a receive again. So while nothing is delivered, the stream searches for the FIN. It
 * first asks the link, and later receives more Sends into memory to find a FIN after them. If it
 * finds the FIN, it reports the end, and the Sends in front of the FIN are still delivered to
 * receives.
 */
#include "base/clock.h"
#include "base/log.h"
#include "softrnic/stream/stream_impl.h"

/* period of the checks; a user that posts receives one by one posts more often than this */
#define STALL_LOOK_NS NSEC_PER_SEC

static bool stall_is_on(const struct stream *s)
{
	return s->state == STREAM_LIVE && !s->ended && stream_runs_qp(s) && qp_rx_is_stalled(s->qp);
}

bool stream_stall_is_new(const struct stream *s)
{
	return s->deadline == CLOCK_NEVER && stall_is_on(s);
}

void stream_stall_watch(struct stream *s, uint64_t now)
{
	uint64_t delivered;

	if (!stream_stall_is_new(s))
		return;
	delivered = qp_counters(s->qp)->sends_in;
	if (!s->stall_since || delivered != s->stall_delivered)
		s->stall_since = now;
	s->stall_delivered = delivered;
	s->deadline = stream_after(now, STALL_LOOK_NS);
}

/* Has the stall lasted longer than a drain? A peer that disconnects sends its FIN within its own
 * drain limit. The peer's limit is not announced, so assume that it equals this end's limit. */
static bool stall_outlasts_a_drain(const struct stream *s, uint64_t now)
{
	return now >= stream_after(s->stall_since, stream_after(s->cfg.drain_ns, STALL_LOOK_NS));
}

static void stall_look(struct stream *s, uint64_t now)
{
	const struct stream_host *host = s->cfg.host;

	if (host->has_ended && host->has_ended(s->cfg.owner)) {
		LOG_INFO("stream %p: the peer's FIN follows Sends for which no receive is posted",
			 (void *)s);
		stream_end(s, STREAM_EV_DISCONNECTED, 0);
	} else if (stall_outlasts_a_drain(s, now)) {
		qp_rx_widen(s->qp);
	}
}

void stream_stall_on_time(struct stream *s, uint64_t now)
{
	s->deadline = CLOCK_NEVER; /* stream_stall_watch() may set a new deadline afterwards */
	if (!stall_is_on(s))
		s->stall_since = 0;
	else if (qp_counters(s->qp)->sends_in == s->stall_delivered)
		stall_look(s, now);
}
