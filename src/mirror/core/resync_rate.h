/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resync_rate.h -- how much of a resync may be in flight, so that flushes stay fast.
 *
 * The rate is controlled by the bytes in flight. If there are flushes, the window begins with two
 * of the smallest pieces and doubles while flushes are calm; 64 MiB at once would fill a slow
 * link's queue before the first flush is late. Later it grows by small steps. A piece is at most
 * half a window, because a flush may have to wait for what is sent at once.
 *
 * Two rules bound the window. First, pieces that wait for each other make a flush wait for all of
 * them: so no more is in flight than the link takes in three quarters of the calm p99. Second, if
 * more than a hundredth of the flushes take nearly twice the calm p99, nothing is sent for a
 * moment. If flushes are as slow then, the machine has other work, and their present times become
 * the calm ones; else the window gets smaller. Two limits in bytes a second frame all that. All
 * times are the caller's, in microseconds.
 */
#ifndef MIRROR_CORE_RESYNC_RATE_H
#define MIRROR_CORE_RESYNC_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define RESYNC_MIN_RATE_DEFAULT (20ull << 20) /* bytes a second */
#define RESYNC_WINDOW_MAX       (64u << 20)
#define RESYNC_LATENCIES        192 /* classes of the histogram: 8 a power of two */

struct resync_limits {
	uint64_t min_rate; /* reached whatever it costs flushes, so that a resync ends */
	uint64_t max_rate; /* 0: none */
};

struct resync_latencies {
	uint32_t classes[RESYNC_LATENCIES];
	uint32_t count;
};

enum resync_rest {
	RESYNC_REST_NONE,
	RESYNC_REST_ENTERED, /* nothing more is sent, but pieces are in flight */
	RESYNC_REST          /* the link has nothing but flushes */
};

struct resync_rate {
	struct resync_limits limits;
	uint32_t piece_max;
	uint32_t window_max;
	uint32_t piece; /* bytes that are sent at a time, now */
	/* bytes that may be in flight; less than a piece: with a pause after each */
	uint32_t window;
	bool is_probing; /* no flush was slow yet: the window doubles */
	bool was_full;   /* the window was used up in this interval */
	enum resync_rest rest;
	uint32_t suspect;  /* slow flushes of 1000 before this rest */
	uint64_t calm_us;  /* p99 of flushes without a resync; 0: unknown */
	uint64_t p99_us;   /* of the last interval with flushes */
	uint64_t piece_us; /* how long a piece takes, smoothed */
	uint64_t least_us; /* shortest time of a piece since the last rest */
	uint64_t through;  /* the most bytes a second lately */
	uint64_t next_us;  /* no piece before this, while the window is smaller than one */
	struct resync_latencies latencies; /* of this interval, or rest */
	uint64_t interval_us;              /* when this interval, or rest, began */
	uint64_t interval_sent;            /* bytes since */
	uint64_t rest_us;                  /* no rest before this */
	uint64_t second_us;                /* when this second began, for the limits */
	uint64_t sent;                     /* bytes since */
	uint64_t throughput;               /* bytes a second, of the last second */
};

/* piece: the largest size of what is sent at a time. calm_us: a known value, else 0. */
void resync_rate_init(struct resync_rate *rate, const struct resync_limits *limits, uint32_t piece,
		      uint64_t calm_us, uint64_t now_us);
/* May so many bytes be sent now, with in_flight on their way? If not, *wake_us is the latest
 * time to ask again. */
bool resync_rate_permits(struct resync_rate *rate, uint64_t in_flight, uint64_t len,
			 uint64_t now_us, uint64_t *wake_us);
void resync_rate_on_sent(struct resync_rate *rate, uint64_t len, uint64_t now_us);
/* A piece was durable so long after it had been permitted. */
void resync_rate_on_done(struct resync_rate *rate, uint64_t took_us);
/* A flush that the resync may have slowed down took so long. */
void resync_rate_on_flush(struct resync_rate *rate, uint64_t took_us, uint64_t now_us);

void resync_latencies_add(struct resync_latencies *l, uint64_t took_us);
/* So many of a hundred were as fast, or faster. The value is at most an eighth too high; 0:
 * there were none. */
uint64_t resync_latencies_percentile(const struct resync_latencies *l, unsigned percent);
static inline uint64_t resync_latencies_p99(const struct resync_latencies *l)
{
	return resync_latencies_percentile(l, 99);
}

#endif
