/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liveness.h -- whether the peer is alive: the timing of the heartbeat (doc/wire.md s6).
 *
 * Single messages do not count: the owner looks from time to time, and compares how many bytes went
 * each way. So an idle connection costs a few timers a limit, and a busy one no more.
 */
#ifndef STREAM_LIVENESS_H
#define STREAM_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * The smallest effective limit of either end; also the peer's limit until the peer announces one.
 */
#define LIVENESS_MIN_NS     (300 * NSEC_PER_MS)
#define LIVENESS_ASSUMED_NS (15 * NSEC_PER_SEC)

struct liveness {
	uint64_t limit_ns; /* CLOCK_NEVER: the peer is never lost, but still gets heartbeats */
	uint64_t peer_ns;  /* the peer's limit */
	uint64_t at;       /* time of the next look; CLOCK_NEVER: off */
	/* time at which the owner is to be woken for it: see liveness_gather() */
	uint64_t due;
	bool second; /* this end is the one that looks a little later than the other */
	/* last time at which the peer was not silent, or this end did not read */
	uint64_t heard;
	uint64_t rx, tx; /* bytes, at the last look */
};

/* The counters at a look. */
struct liveness_view {
	uint64_t rx, tx; /* bytes of the stream so far */
	bool stalled;    /* this end does not read, for want of receives */
};

enum liveness_act {
	LIVENESS_NOTHING,
	LIVENESS_PING, /* the peer has been silent */
	LIVENESS_PONG, /* the peer was not silent, but has received nothing from us */
	LIVENESS_LOST, /* the peer was silent for the limit; no further look follows */
};

void liveness_off(struct liveness *l);
void liveness_begin(struct liveness *l, bool second, uint64_t limit_ns,
		    const struct liveness_view *view, uint64_t now);
/* The peer announced its limit; the next look may be due earlier. */
void liveness_on_peer_limit(struct liveness *l, uint32_t peer_ms, uint64_t now);
bool liveness_knows_peer_limit(const struct liveness *l, uint32_t peer_ms);
/* To be called at l->at. */
enum liveness_act liveness_look(struct liveness *l, const struct liveness_view *view, uint64_t now);

#endif
