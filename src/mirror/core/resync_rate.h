/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resync_rate.h -- limits the bytes of a resync that are in flight, so that flushes stay fast.
 *
 * The number of bytes in flight, the window, controls the rate. p99 is the 99th percentile of the
 * durations of flushes; the calm p99 is the p99 without a resync. If there are flushes, the window
 * begins with two of the smallest pieces and doubles as long as no flush is slow. A window of 64
 * MiB would fill a slow link's queue before the first flush is late. Later the window grows by
 * small steps. A piece is at most half a window, because a flush may have to wait for a whole
 * piece.
 *
 * Two rules limit the window. First, pieces that queue make a flush wait for all of them, so no
 * more bytes are in flight than the link carries in three quarters of the calm p99. Second, if
 * more than a hundredth of the flushes take nearly twice the calm p99, nothing is sent for a
 * moment (a rest). If flushes are as slow during the rest, the machine has other work, and the
 * calm p99 is set to their present p99. Otherwise the window gets smaller. The result is kept
 * between a lowest and a highest rate in bytes a second. The caller passes all times, in
 * microseconds.
 */
#ifndef MIRROR_CORE_RESYNC_RATE_H
#define MIRROR_CORE_RESYNC_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define RESYNC_MIN_RATE_DEFAULT (20ull << 20) /* bytes a second */
#define RESYNC_WINDOW_MAX       (64u << 20)
#define RESYNC_LATENCIES        192 /* classes of the histogram: 8 for each power of two */

struct resync_limits {
	uint64_t min_rate; /* kept even if flushes get slower, so that a resync ends */
	uint64_t max_rate; /* 0: no limit */
};

struct resync_latencies {
	uint32_t classes[RESYNC_LATENCIES];
	uint32_t count;
};

enum resync_rest {
	RESYNC_REST_NONE,
	RESYNC_REST_ENTERED, /* nothing more is sent, but pieces are still in flight */
	RESYNC_REST          /* the link carries only flushes */
};

struct resync_rate {
	struct resync_limits limits;
	uint32_t piece_max;
	uint32_t window_max;
	uint32_t piece; /* present size of a piece in bytes */
	/* bytes that may be in flight; if less than a piece, a pause follows each piece */
	uint32_t window;
	bool is_probing; /* no flush was slow so far, so the window doubles */
	bool was_full;   /* the window was used up in this interval */
	enum resync_rest rest;
	uint32_t suspect;  /* slow flushes of 1000 before this rest */
	uint64_t calm_us;  /* p99 of flushes without a resync; 0: unknown */
	uint64_t p99_us;   /* p99 of the last interval that had flushes */
	uint64_t piece_us; /* duration of a piece, smoothed */
	uint64_t least_us; /* shortest duration of a piece since the last rest */
	uint64_t through;  /* highest recent rate, in bytes a second */
	uint64_t next_us;  /* while the window is smaller than a piece: time of the next piece */
	struct resync_latencies latencies; /* durations of flushes in this interval or rest */
	uint64_t interval_us;              /* start of this interval or rest */
	uint64_t interval_sent;            /* number of bytes sent since that start */
	uint64_t rest_us;                  /* earliest time of the next rest */
	uint64_t second_us;                /* start of this second, for the limits */
	uint64_t sent;                     /* number of bytes sent since that start */
	uint64_t throughput;               /* bytes a second, measured over the last second */
};

/* piece: largest size of a piece. calm_us: the p99 of flushes without a resync; 0: unknown. */
void resync_rate_init(struct resync_rate *rate, const struct resync_limits *limits, uint32_t piece,
		      uint64_t calm_us, uint64_t now_us);
/* Returns true if a piece of `len` bytes may be sent now, with in_flight bytes in flight.
 * Otherwise *wake_us is the latest time to ask again. */
bool resync_rate_permits(struct resync_rate *rate, uint64_t in_flight, uint64_t len,
			 uint64_t now_us, uint64_t *wake_us);
void resync_rate_on_sent(struct resync_rate *rate, uint64_t len, uint64_t now_us);
/* Report that a piece has become durable, took_us after it was permitted. */
void resync_rate_on_done(struct resync_rate *rate, uint64_t took_us);
/* Report the duration, took_us, of a flush that the resync may have slowed down. */
void resync_rate_on_flush(struct resync_rate *rate, uint64_t took_us, uint64_t now_us);

void resync_latencies_add(struct resync_latencies *l, uint64_t took_us);
/* Returns the duration that this percentage of the flushes did not exceed. The value is at most an
 * eighth too high. 0: no flush was counted. */
uint64_t resync_latencies_percentile(const struct resync_latencies *l, unsigned percent);
static inline uint64_t resync_latencies_p99(const struct resync_latencies *l)
{
	return resync_latencies_percentile(l, 99);
}

#endif
