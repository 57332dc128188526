/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/resync_rate.h"

#include <string.h>

#define SECOND_US   1000000u
#define INTERVAL_US 100000u /* time between two decisions, if an interval contains enough flushes */
/* number of flushes after which a decision is due: the slowest hundredth are then three flushes */
#define INTERVAL_COUNT 300
#define COUNT_MIN      5 /* fewer flushes in a second are no basis for a decision */
#define WINDOW_MIN     512u
/* smaller pieces cost more processor time than they gain on the link */
#define PIECE_MIN 16384u
/* Enough for any link: one piece is in transfer, one is queued, and the completion of a third
 * comes back. */
#define WINDOW_LEAST (3 * PIECE_MIN)
#define FLOOR_PART   4 /* in flight: at most 1/4 of the bytes that min_rate gives a second */

/* A flush counts as slow from 7/4 of the calm p99 (resync_rate.h) on. The documented limit is
 * 8/4. */
#define QUARTERS_SLOW 7
/* Numbers of slow flushes per 1000. Above the first number the rate falls a little, above the
 * second by half; below the third the rate grows. The p99 itself is no measure here: with few
 * flushes a single outlier sets it. */
#define PERMIL_LESS 15
#define PERMIL_HALF 100
#define PERMIL_MORE 8
/* A rest ends after this time or this number of flushes. Rests take at most a quarter of all
 * time. */
#define REST_US      100000u
#define REST_COUNT   200
#define REST_SHARE   4
#define REST_LOOK_US 5000
/* measure again after this time, because the calm p99 and the link's speed change */
#define REST_AGAIN_US (5 * SECOND_US)

#define QUARTERS_QUEUE 3  /* a piece may wait for other pieces for at most 3/4 of the calm p99 */
#define MOST_FORGETS   16 /* each interval reduces the remembered highest rate by a sixteenth */

static unsigned resync_rate_class(uint64_t us)
{
	unsigned log, class;

	if (us < 8)
		return (unsigned)us;
	log = 63 - (unsigned)__builtin_clzll(us);
	class = (log - 2) * 8 + (unsigned)(us >> (log - 3) & 7);
	return class < RESYNC_LATENCIES ? class : RESYNC_LATENCIES - 1;
}

/* Returns the largest value of a class. */
static uint64_t resync_rate_class_top(unsigned class)
{
	unsigned log = class / 8 + 2;

	if (class < 8)
		return class;
	return ((8ull + class % 8 + 1) << (log - 3)) - 1;
}

void resync_latencies_add(struct resync_latencies *l, uint64_t took_us)
{
	l->classes[resync_rate_class(took_us)]++;
	l->count++;
}

uint64_t resync_latencies_percentile(const struct resync_latencies *l, unsigned percent)
{
	uint64_t slower = (uint64_t)l->count * (100 - percent) / 100 + 1, seen = 0;
	unsigned class = RESYNC_LATENCIES;

	if (!l->count)
		return 0;
	while (seen < slower)
		seen += l->classes[--class];
	return resync_rate_class_top(class);
}

/* Set the window, and the piece to half a window in whole blocks: one piece is in transfer while
 * the completion of another comes back. So a flush waits for no more than a window. */
static void resync_rate_set_window(struct resync_rate *rate, uint32_t window)
{
	uint32_t piece = rate->piece_max;

	if (window > rate->window_max)
		window = rate->window_max;
	if (window < WINDOW_MIN)
		window = WINDOW_MIN;
	while (piece > PIECE_MIN && piece * 2 > window)
		piece /= 2;
	rate->window = window;
	rate->piece = piece;
}

void resync_rate_init(struct resync_rate *rate, const struct resync_limits *limits, uint32_t piece,
		      uint64_t calm_us, uint64_t now_us)
{
	memset(rate, 0, sizeof(*rate));
	rate->limits = *limits;
	rate->piece_max = piece;
	rate->window_max = RESYNC_WINDOW_MAX;
	/* Without flushes the window may be large: no flush can be slowed down. */
	resync_rate_set_window(rate, calm_us ? 2 * PIECE_MIN : 2 * piece);
	rate->is_probing = true;
	rate->calm_us = calm_us;
	rate->interval_us = rate->second_us = rate->rest_us = now_us;
}

static void resync_rate_grow(struct resync_rate *rate)
{
	bool is_small = rate->window < 2 * PIECE_MIN;
	uint32_t by = rate->is_probing ? rate->window : rate->window / (is_small ? 4 : 8);

	resync_rate_set_window(rate, rate->window + (rate->was_full ? by : 0));
}

/* Limit the window: bytes beyond this limit would only queue, and make flushes wait. */
static void resync_rate_limit_queue(struct resync_rate *rate, uint64_t now_us)
{
	uint64_t through = rate->interval_sent * SECOND_US / (now_us - rate->interval_us), most;

	rate->through -= rate->through / MOST_FORGETS;
	if (through > rate->through)
		rate->through = through;
	most = rate->through * (rate->least_us + rate->calm_us * QUARTERS_QUEUE / 4) / SECOND_US;
	if (!rate->calm_us || rate->latencies.count < COUNT_MIN || most > RESYNC_WINDOW_MAX)
		most = RESYNC_WINDOW_MAX;
	rate->window_max = most < WINDOW_LEAST ? WINDOW_LEAST : (uint32_t)most;
}

/* Returns the number of slow flushes per 1000. */
static uint32_t resync_rate_slow(const struct resync_rate *rate)
{
	unsigned class = resync_rate_class(rate->calm_us * QUARTERS_SLOW / 4);
	uint32_t slow = 0;

	while (++class < RESYNC_LATENCIES)
		slow += rate->latencies.classes[class];
	return (uint32_t)((uint64_t)slow * 1000 / rate->latencies.count);
}

/* Begin a rest, to find out whether flushes are slow without a resync as well. */
static void resync_rate_enter_rest(struct resync_rate *rate, uint32_t slow)
{
	rate->rest = RESYNC_REST_ENTERED;
	rate->suspect = slow;
}

static void resync_rate_decide(struct resync_rate *rate, uint64_t now_us)
{
	uint32_t slow;

	resync_rate_limit_queue(rate, now_us);
	if (rate->latencies.count < COUNT_MIN) {
		resync_rate_grow(rate);
		return;
	}
	rate->p99_us = resync_latencies_p99(&rate->latencies);
	/* the first p99 is measured with a small window, so use it as the calm p99 */
	if (!rate->calm_us) {
		rate->calm_us = rate->p99_us;
		return;
	}
	slow = resync_rate_slow(rate);
	if (rate->p99_us < rate->calm_us) /* flushes without a resync are not slower than these */
		rate->calm_us -= (rate->calm_us - rate->p99_us) / 8;
	if (slow > PERMIL_LESS && now_us >= rate->rest_us)
		resync_rate_enter_rest(rate, slow);
	else if (now_us >= rate->rest_us + REST_AGAIN_US)
		resync_rate_enter_rest(rate, 0);
	else if (slow < PERMIL_MORE)
		resync_rate_grow(rate);
}

/* Update the calm p99 from the flushes of a rest. at_once: adopt a higher value immediately. */
static void resync_rate_learn_calm(struct resync_rate *rate, bool at_once)
{
	uint64_t p99 = resync_latencies_p99(&rate->latencies), count = rate->latencies.count;

	if (at_once && p99 > rate->calm_us)
		rate->calm_us = p99;
	else
		rate->calm_us =
			(rate->calm_us * REST_COUNT / 2 + p99 * count) / (REST_COUNT / 2 + count);
}

/* Flushes were slow before the rest: decide whether the resync was the cause. */
static void resync_rate_judge(struct resync_rate *rate)
{
	bool is_known = rate->latencies.count >= COUNT_MIN;
	bool is_other = is_known && resync_rate_slow(rate) * 2 >= rate->suspect;

	if (is_known)
		resync_rate_learn_calm(rate, rate->suspect && is_other);
	if (is_other)
		return;
	rate->is_probing = false;
	resync_rate_set_window(rate, rate->suspect > PERMIL_HALF ? rate->window / 2
								 : rate->window / 4 * 3);
}

static void resync_rate_begin_interval(struct resync_rate *rate, uint64_t now_us)
{
	memset(&rate->latencies, 0, sizeof(rate->latencies));
	rate->was_full = false;
	rate->interval_sent = 0;
	rate->interval_us = now_us;
}

static void resync_rate_tick_rest(struct resync_rate *rate, uint64_t now_us)
{
	uint64_t took = now_us - rate->interval_us;

	if (rate->rest != RESYNC_REST || (took < REST_US && rate->latencies.count < REST_COUNT))
		return;
	resync_rate_judge(rate);
	rate->rest = RESYNC_REST_NONE;
	/* so that the next piece, which has the link for itself, sets this time again */
	rate->least_us = 0;
	rate->rest_us = now_us + (REST_SHARE - 1) * took;
	resync_rate_begin_interval(rate, now_us);
}

static void resync_rate_tick(struct resync_rate *rate, uint64_t now_us)
{
	uint64_t interval = now_us - rate->interval_us, second = now_us - rate->second_us;

	if (rate->rest) {
		resync_rate_tick_rest(rate, now_us);
	} else if (interval >= SECOND_US ||
		   (interval >= INTERVAL_US && rate->latencies.count >= INTERVAL_COUNT)) {
		resync_rate_decide(rate, now_us);
		resync_rate_begin_interval(rate, now_us);
	}
	if (second >= SECOND_US) {
		rate->throughput = rate->sent * SECOND_US / second;
		rate->sent = 0;
		rate->second_us = now_us;
	}
}

/* Returns true during a rest, in which nothing is sent before *wake_us. */
static bool resync_rate_rests(struct resync_rate *rate, uint64_t in_flight, uint64_t now_us,
			      uint64_t *wake_us)
{
	if (rate->rest == RESYNC_REST_ENTERED && !in_flight) {
		rate->rest = RESYNC_REST;
		resync_rate_begin_interval(rate, now_us);
	}
	if (rate->rest)
		*wake_us = now_us + REST_LOOK_US;
	return rate->rest;
}

static uint64_t resync_rate_allowance(uint64_t bytes_per_s, uint64_t elapsed_us)
{
	return bytes_per_s / SECOND_US * elapsed_us +
	       bytes_per_s % SECOND_US * elapsed_us / SECOND_US;
}

/* Returns true if the resync is below min_rate in this second: it then has to send even if flushes
 * get slower. */
static bool resync_rate_below_floor(const struct resync_rate *rate, uint64_t in_flight,
				    uint64_t elapsed_us)
{
	return rate->sent < resync_rate_allowance(rate->limits.min_rate, elapsed_us) &&
	       in_flight < rate->limits.min_rate / FLOOR_PART;
}

/* Returns the time from which on the limit permits that many bytes since the second began. */
static uint64_t resync_rate_time_of(const struct resync_rate *rate, uint64_t bytes_per_s,
				    uint64_t bytes)
{
	return rate->second_us + bytes * SECOND_US / bytes_per_s + 1;
}

bool resync_rate_permits(struct resync_rate *rate, uint64_t in_flight, uint64_t len,
			 uint64_t now_us, uint64_t *wake_us)
{
	const struct resync_limits *limits = &rate->limits;
	uint64_t elapsed;
	bool is_paused;

	resync_rate_tick(rate, now_us);
	if (resync_rate_rests(rate, in_flight, now_us, wake_us))
		return false;
	elapsed = now_us - rate->second_us;
	*wake_us = rate->second_us + SECOND_US;
	if (limits->max_rate &&
	    rate->sent + len > resync_rate_allowance(limits->max_rate, elapsed) + rate->piece) {
		uint64_t when =
			resync_rate_time_of(rate, limits->max_rate, rate->sent + len - rate->piece);

		*wake_us = when < *wake_us ? when : *wake_us;
		return false;
	}
	is_paused = rate->window < rate->piece && now_us < rate->next_us;
	if (!is_paused && (!in_flight || in_flight + len <= rate->window))
		return true;
	rate->was_full = true;
	if (resync_rate_below_floor(rate, in_flight, elapsed))
		return true;
	if (limits->min_rate) {
		uint64_t when = resync_rate_time_of(rate, limits->min_rate, rate->sent);

		*wake_us = when > now_us && when < *wake_us ? when : *wake_us;
	}
	if (is_paused && rate->next_us < *wake_us)
		*wake_us = rate->next_us;
	return false;
}

void resync_rate_on_sent(struct resync_rate *rate, uint64_t len, uint64_t now_us)
{
	rate->sent += len;
	rate->interval_sent += len;
	if (rate->window < rate->piece)
		rate->next_us = now_us + rate->piece_us * rate->piece / rate->window;
}

void resync_rate_on_done(struct resync_rate *rate, uint64_t took_us)
{
	rate->piece_us = rate->piece_us ? (rate->piece_us * 7 + took_us) / 8 : took_us;
	if (!rate->least_us || took_us < rate->least_us)
		rate->least_us = took_us;
}

void resync_rate_on_flush(struct resync_rate *rate, uint64_t took_us, uint64_t now_us)
{
	/* During a rest, count only flushes that began in the rest. */
	if (rate->rest != RESYNC_REST || now_us - took_us >= rate->interval_us)
		resync_latencies_add(&rate->latencies, took_us);
	resync_rate_tick(rate, now_us);
}
