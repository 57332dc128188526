/* SPDX-License-Identifier: BSD-3-Clause */
/* Applies the effect of flushes to a resync, and decides whether a flush waits for a piece. */
#include "mirror/core/resync_bits.h"

static uint64_t resync_flush_touches(const struct mirror_range *ranges, unsigned count,
				     uint64_t word)
{
	uint64_t bits = 0;

	for (unsigned i = 0; i < count; i++)
		bits |= resync_bits_touched(word, ranges[i].offset,
					    ranges[i].offset + ranges[i].len);
	return bits;
}

uint64_t resync_bits_held(const struct resync *rs, uint64_t word)
{
	uint64_t bits = 0;

	for (const struct resync_hold *h = rs->holds; h; h = h->next)
		bits |= resync_flush_touches(h->ranges, h->count, word);
	return bits;
}

static bool resync_flush_is_blocked(const struct resync *rs, const struct resync_hold *hold)
{
	/* Before the member gets flushes, a piece that a flush touches has to be sent again. After
	 * the member gets flushes, equal digests stay equal, because both sides get the flush. */
	if (rs->mode != RESYNC_JOINING || !rs->in_flight)
		return false;
	for (unsigned i = 0; i < RESYNC_FLIGHT_MAX; i++) {
		const struct resync_flight *f = &rs->flight[i];

		if (f->is_used && f->piece.op == RESYNC_OP_COPY &&
		    resync_flush_touches(hold->ranges, hold->count,
					 resync_bits_word_of(&f->piece)) &
			    resync_bits_of(&f->piece))
			return true;
	}
	return false;
}

bool resync_flush_enter(struct resync *rs, struct resync_hold *hold)
{
	struct resync_hold *h = rs->holds;

	while (h && h != hold)
		h = h->next;
	if (!h) {
		hold->next = rs->holds;
		rs->holds = hold;
	}
	return !resync_flush_is_blocked(rs, hold);
}

void resync_flush_leave(struct resync *rs, struct resync_hold *hold)
{
	for (struct resync_hold **p = &rs->holds; *p; p = &(*p)->next) {
		if (*p == hold) {
			*p = hold->next;
			return;
		}
	}
}

static void resync_flush_touch(struct resync *rs, const struct mirror_range *range)
{
	uint64_t end = range->offset + range->len;

	for (uint64_t w = range->offset / RESYNC_WORD; w * RESYNC_WORD < end; w++)
		resync_bits_touch(rs, w, resync_bits_touched(w, range->offset, end));
}

void resync_on_flush(struct resync *rs, const struct mirror_range *ranges, unsigned count)
{
	switch (rs->mode) {
	case RESYNC_CATCH_UP:
	case RESYNC_EQUALISE:
		resync_mark(rs, ranges, count, false);
		break;
	case RESYNC_VERIFY:
		for (unsigned i = 0; i < count; i++)
			resync_flush_touch(rs, &ranges[i]);
		break;
	case RESYNC_JOINING:
		break;
	}
}

void resync_on_latency(struct resync *rs, uint64_t took_us, uint64_t now_us)
{
	resync_rate_on_flush(&rs->rate, took_us, now_us);
}
