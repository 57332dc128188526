/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liveness.h -- the timing of the heartbeat, which detects a dead peer (doc/wire.md s6).
 *
 * The owner checks ("looks at") the byte counts of both directions from time to time, and compares
 * them with the last ones. Single messages are not tracked. So a connection, idle or busy, costs
 * only a few timers within each limit.
 */
#ifndef STREAM_LIVENESS_H
#define STREAM_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* the least limit; a shorter limit of either end is raised to this value */
#define LIVENESS_MIN_NS     (300 * NSEC_PER_MS)
#define LIVENESS_ASSUMED_NS (15 * NSEC_PER_SEC) /* the peer's limit until the peer announces one */

struct liveness {
	/* limit for the peer's silence; CLOCK_NEVER: the peer is never lost, but still gets
	 * heartbeats */
	uint64_t limit_ns;
	uint64_t peer_ns; /* limit that the peer applies to this end's silence */
	uint64_t at;      /* time of the next check; CLOCK_NEVER: there are no checks */
	/* time at which the owner wakes up for this check, see liveness_gather() */
	uint64_t due;
	bool second; /* this end checks a little later than the other end */
	/* the last time at which the peer was not silent, or this end did not read */
	uint64_t heard;
	uint64_t rx, tx; /* byte counts at the last check */
};

/* The connection's counters at the time of a check. */
struct liveness_view {
	uint64_t rx, tx; /* bytes of the stream so far */
	bool stalled;    /* this end does not read, because receives are missing */
};

enum liveness_act {
	LIVENESS_NOTHING,
	LIVENESS_PING, /* the peer has been silent */
	LIVENESS_PONG, /* the peer sent bytes, but has received none from this end */
	LIVENESS_LOST, /* the peer was silent for the whole limit; no further check follows */
};

void liveness_off(struct liveness *l);
void liveness_begin(struct liveness *l, bool second, uint64_t limit_ns,
		    const struct liveness_view *view, uint64_t now);
/* Called when the peer has announced its limit. The next check may become due earlier. */
void liveness_on_peer_limit(struct liveness *l, uint32_t peer_ms, uint64_t now);
bool liveness_knows_peer_limit(const struct liveness *l, uint32_t peer_ms);
/* Check the connection. Must be called at the time l->at. */
enum liveness_act liveness_look(struct liveness *l, const struct liveness_view *view, uint64_t now);

#endif
