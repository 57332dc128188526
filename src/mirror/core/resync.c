/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/resync.h"

#include <assert.h>
#include <string.h>

#include "mirror/core/resync_bits.h"

size_t resync_words(uint64_t size)
{
	return (size_t)((size + RESYNC_WORD - 1) / RESYNC_WORD);
}

void resync_bits_set(struct resync *rs, uint64_t word, uint64_t bits)
{
	rs->remaining += (uint64_t)__builtin_popcountll(bits & ~rs->config.bits[word]);
	rs->config.bits[word] |= bits;
}

void resync_bits_clear(struct resync *rs, uint64_t word, uint64_t bits)
{
	rs->remaining -= (uint64_t)__builtin_popcountll(bits & rs->config.bits[word]);
	rs->config.bits[word] &= ~bits;
	if (rs->config.unsure)
		rs->config.unsure[word] &= ~bits;
}

void resync_bits_touch(struct resync *rs, uint64_t word, uint64_t bits)
{
	if (!rs->busy[word % RESYNC_BUSY])
		return;
	for (unsigned i = 0; i < RESYNC_FLIGHT_MAX; i++) {
		struct resync_flight *f = &rs->flight[i];

		if (f->is_used && resync_bits_word_of(&f->piece) == word)
			f->touched |= bits;
	}
}

void resync_init(struct resync *rs, enum resync_mode mode, const struct resync_config *config,
		 uint64_t now_us)
{
	assert(config->piece >= RESYNC_PIECE_MIN && config->piece <= RESYNC_PIECE_MAX);
	assert((config->piece & (config->piece - 1)) == 0);
	memset(rs, 0, sizeof(*rs));
	rs->config = *config;
	rs->mode = mode;
	rs->words = resync_words(config->size);
	for (uint64_t w = 0; w < rs->words; w++)
		rs->remaining += (uint64_t)__builtin_popcountll(config->bits[w]);
	rs->pass_found = rs->remaining;
	resync_rate_init(&rs->rate, &config->limits, config->piece, config->calm_us, now_us);
}

static void resync_mark_word(struct resync *rs, uint64_t word, uint64_t bits, bool is_unsure)
{
	uint64_t *unsure = rs->config.unsure ? &rs->config.unsure[word] : NULL;

	if (unsure && is_unsure)
		*unsure |= bits & ~rs->config.bits[word];
	else if (unsure)
		*unsure &= ~bits;
	resync_bits_set(rs, word, bits);
	resync_bits_touch(rs, word, bits);
}

void resync_mark(struct resync *rs, const struct mirror_range *ranges, unsigned count,
		 bool is_unsure)
{
	for (unsigned i = 0; i < count; i++) {
		uint64_t end = ranges[i].offset + ranges[i].len;

		assert(end <= rs->config.size);
		for (uint64_t w = ranges[i].offset / RESYNC_WORD; w * RESYNC_WORD < end; w++)
			resync_mark_word(rs, w, resync_bits_touched(w, ranges[i].offset, end),
					 is_unsure);
	}
	if (!rs->number)
		rs->pass_found = rs->remaining;
}

void resync_join(struct resync *rs, uint64_t now_us)
{
	assert(rs->mode == RESYNC_CATCH_UP);
	rs->mode = RESYNC_JOINING;
	resync_rate_init(&rs->rate, &rs->config.limits, rs->config.piece, 0, now_us);
}

void resync_break(struct resync *rs, uint64_t now_us)
{
	for (unsigned i = 0; i < RESYNC_FLIGHT_MAX; i++) {
		struct resync_flight *f = &rs->flight[i];
		struct resync_piece piece = f->piece;

		if (f->is_used)
			resync_done(rs, &piece, false, now_us);
	}
	if (rs->mode == RESYNC_JOINING)
		rs->mode = RESYNC_CATCH_UP;
	rs->pass = 0;
	rs->cursor = rs->begun = 0;
	rs->pass_found = rs->remaining;
}

void resync_get_progress(const struct resync *rs, struct resync_progress *p)
{
	*p = (struct resync_progress){
		.mode = rs->mode,
		.pass = rs->pass,
		.remaining = rs->remaining * MIRROR_BLOCK,
		.in_flight = rs->flight_bytes,
		.copied = rs->copied * MIRROR_BLOCK,
		.equal = rs->equal * MIRROR_BLOCK,
		.differing = rs->differing * MIRROR_BLOCK,
		.rate = rs->rate.throughput,
		.p99_us = rs->rate.p99_us,
		.calm_us = rs->rate.calm_us,
	};
}
