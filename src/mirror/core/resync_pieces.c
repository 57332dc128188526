/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the next piece, and applies the end of a piece to the bitmap. */

#include "mirror/core/resync_bits.h"

#define RESYNC_HELD_WAIT_US 1000 /* pause before blocks that a flush holds are tried again */
#define RESYNC_SHRINKS(rs)  ((rs)->remaining * 10 <= (rs)->pass_found * 7)

/* Returns the blocks of a word with which a piece may begin. */
static uint64_t resync_pieces_free(const struct resync *rs, uint64_t word)
{
	uint64_t bits = rs->config.bits[word];

	if (word == rs->cursor)
		bits &= ~rs->begun; /* leave blocks that were set again to the next pass */
	for (unsigned i = 0, left = bits ? rs->busy[word % RESYNC_BUSY] : 0; left; i++) {
		const struct resync_flight *f = &rs->flight[i];

		if (!f->is_used || (resync_bits_word_of(&f->piece) - word) % RESYNC_BUSY)
			continue;
		left--;
		if (resync_bits_word_of(&f->piece) == word)
			bits &= ~resync_bits_of(&f->piece);
	}
	return bits && rs->holds ? bits & ~resync_bits_held(rs, word) : bits;
}

static void resync_pieces_move(struct resync *rs, uint64_t word)
{
	rs->cursor = word;
	rs->begun = 0;
}

/* Move the cursor to the next word with a free block. Returns false at the end of the pass. */
static bool resync_pieces_seek(struct resync *rs)
{
	while (rs->cursor < rs->words && !resync_pieces_free(rs, rs->cursor))
		resync_pieces_move(rs, rs->cursor + 1);
	return rs->cursor < rs->words;
}

/* Make the piece that begins at the first of the free blocks. */
static void resync_pieces_form(const struct resync *rs, uint64_t word, uint64_t bits,
			       struct resync_piece *piece)
{
	uint64_t unsure = rs->config.unsure ? rs->config.unsure[word] : 0, mask, end;
	unsigned first = (unsigned)__builtin_ctzll(bits), count;

	if (rs->mode == RESYNC_VERIFY)
		unsure = ~0ull;
	piece->op = unsure >> first & 1 ? RESYNC_OP_COMPARE : RESYNC_OP_COPY;
	count = (piece->op == RESYNC_OP_COMPARE ? RESYNC_COMPARE : rs->rate.piece) / MIRROR_BLOCK;
	mask = resync_bits_between(first / count * count, first / count * count + count - 1);
	mask &= piece->op == RESYNC_OP_COMPARE ? bits & unsure : bits & ~unsure;
	if (piece->op == RESYNC_OP_COPY) {
		count = 64 - (unsigned)__builtin_clzll(mask) - first;
	} else {
		first = first / count * count;
	}
	piece->offset = word * RESYNC_WORD + (uint64_t)first * MIRROR_BLOCK;
	piece->blocks = mask >> first;
	end = piece->offset + (uint64_t)count * MIRROR_BLOCK;
	piece->len = (uint32_t)((end < rs->config.size ? end : rs->config.size) - piece->offset);
}

static void resync_pieces_begin(struct resync *rs, struct resync_piece *piece, uint64_t now_us)
{
	uint32_t slot = 0;

	while (rs->flight[slot].is_used)
		slot++;
	piece->slot = slot;
	piece->number = ++rs->number;
	rs->flight[slot] =
		(struct resync_flight){.is_used = true, .piece = *piece, .begun_us = now_us};
	rs->busy[resync_bits_word_of(piece) % RESYNC_BUSY]++;
	if (resync_bits_word_of(piece) == rs->cursor)
		rs->begun |= resync_bits_of(piece);
	rs->in_flight++;
	rs->flight_bytes += piece->len;
	resync_rate_on_sent(&rs->rate, piece->len, now_us);
}

/* Begin a piece in this word, if a block is free and the rate permits the piece. */
static bool resync_pieces_take(struct resync *rs, uint64_t word, uint64_t now_us,
			       struct resync_piece *piece, uint64_t *wake_us)
{
	uint64_t bits = word < rs->words ? resync_pieces_free(rs, word) : 0, wake;

	if (!bits || rs->in_flight == RESYNC_FLIGHT_MAX)
		return false;
	resync_pieces_form(rs, word, bits, piece);
	if (!resync_rate_permits(&rs->rate, rs->flight_bytes, piece->len, now_us, &wake)) {
		*wake_us = wake < *wake_us ? wake : *wake_us;
		return false;
	}
	resync_pieces_begin(rs, piece, now_us);
	return true;
}

static bool resync_pieces_may_begin_pass(const struct resync *rs)
{
	if (!rs->remaining)
		return false;
	if (rs->mode == RESYNC_CATCH_UP)
		return RESYNC_SHRINKS(rs);
	return rs->mode != RESYNC_VERIFY || rs->pass + 1 < RESYNC_VERIFY_TRIES;
}

/* Handle the end of a pass: the cursor is at the end of the bitmap. */
static enum resync_step resync_pieces_end_pass(struct resync *rs, uint64_t now_us,
					       uint64_t *wake_us)
{
	if (rs->in_flight)
		return RESYNC_WAITS;
	if (rs->holds && rs->remaining) {
		resync_pieces_move(rs, 0);
		if (resync_pieces_seek(rs))
			return RESYNC_HAS_PIECE;
		*wake_us = now_us + RESYNC_HELD_WAIT_US;
		return RESYNC_WAITS;
	}
	if (!resync_pieces_may_begin_pass(rs))
		return rs->mode == RESYNC_CATCH_UP ? RESYNC_MAY_JOIN : RESYNC_ENDED;
	rs->pass++;
	rs->pass_found = rs->remaining;
	resync_pieces_move(rs, 0);
	return RESYNC_HAS_PIECE;
}

/* Move the cursor to a word with a free block. Returns RESYNC_HAS_PIECE if there is one. */
static enum resync_step resync_pieces_position(struct resync *rs, uint64_t now_us,
					       uint64_t *wake_us)
{
	enum resync_step step;

	if (resync_pieces_seek(rs))
		return RESYNC_HAS_PIECE;
	step = resync_pieces_end_pass(rs, now_us, wake_us);
	if (step == RESYNC_HAS_PIECE && !resync_pieces_seek(rs)) {
		*wake_us = now_us + RESYNC_HELD_WAIT_US;
		return RESYNC_WAITS;
	}
	return step;
}

enum resync_step resync_next(struct resync *rs, uint64_t now_us, struct resync_piece *piece,
			     uint64_t *wake_us)
{
	enum resync_step step;

	resync_next_of(&rs, 1, now_us, piece, &step, wake_us);
	return step;
}

static bool resync_pieces_take_all(struct resync *const *members, unsigned count, uint64_t word,
				   uint64_t now_us, struct resync_piece *pieces,
				   enum resync_step *steps, uint64_t *wake_us)
{
	bool any = false;

	for (unsigned i = 0; i < count; i++) {
		if (resync_pieces_take(members[i], word, now_us, &pieces[i], wake_us)) {
			steps[i] = RESYNC_HAS_PIECE;
			any = true;
		}
	}
	return any;
}

bool resync_next_of(struct resync *const *members, unsigned count, uint64_t now_us,
		    struct resync_piece *pieces, enum resync_step *steps, uint64_t *wake_us)
{
	unsigned ready = 0;

	*wake_us = UINT64_MAX;
	for (unsigned i = 0; i < count; i++) {
		steps[i] = resync_pieces_position(members[i], now_us, wake_us);
		if (steps[i] == RESYNC_HAS_PIECE) {
			ready |= 1u << i;
			steps[i] = RESYNC_WAITS; /* the rate permits no piece now */
		}
	}
	/* The member with the lowest cursor decides the next word, so that the passes of several
	 * members become one pass. */
	while (ready) {
		unsigned lead = (unsigned)__builtin_ctz(ready);

		for (unsigned i = lead + 1; i < count; i++) {
			if (ready >> i & 1 && members[i]->cursor < members[lead]->cursor)
				lead = i;
		}
		if (resync_pieces_take_all(members, count, members[lead]->cursor, now_us, pieces,
					   steps, wake_us))
			return true;
		ready &= ~(1u << lead);
	}
	return false;
}

static struct resync_flight *resync_pieces_find(struct resync *rs, const struct resync_piece *piece)
{
	struct resync_flight *f = &rs->flight[piece->slot];

	return f->is_used && f->piece.number == piece->number ? f : NULL;
}

static void resync_pieces_end(struct resync *rs, struct resync_flight *f, uint64_t now_us)
{
	rs->busy[resync_bits_word_of(&f->piece) % RESYNC_BUSY]--;
	rs->in_flight--;
	rs->flight_bytes -= f->piece.len;
	resync_rate_on_done(&rs->rate, now_us - f->begun_us);
	f->is_used = false;
}

void resync_done(struct resync *rs, const struct resync_piece *piece, bool ok, uint64_t now_us)
{
	struct resync_flight *f = resync_pieces_find(rs, piece);
	uint64_t word = resync_bits_word_of(piece), bits = resync_bits_of(piece);

	if (!f)
		return;
	if (ok) {
		rs->copied += (uint64_t)__builtin_popcountll(bits);
		resync_bits_clear(rs, word, bits & ~f->touched);
	} else {
		rs->failed++;
		resync_bits_set(rs, word, bits);
	}
	resync_pieces_end(rs, f, now_us);
}

/* Continue the piece with other blocks. They are read again, with all flushes made so far. */
static bool resync_pieces_turn(struct resync_flight *f, struct resync_piece *piece,
			       enum resync_op op, uint64_t blocks)
{
	piece->op = op;
	piece->blocks = blocks;
	f->piece = *piece;
	f->touched = 0;
	return true;
}

bool resync_compared(struct resync *rs, struct resync_piece *piece, uint64_t differing,
		     uint64_t now_us)
{
	struct resync_flight *f = resync_pieces_find(rs, piece);
	unsigned shift = (unsigned)(piece->offset % RESYNC_WORD / MIRROR_BLOCK);
	uint64_t equal = piece->blocks, clear;

	if (!f)
		return false;
	if (piece->op == RESYNC_OP_COMPARE && differing)
		return resync_pieces_turn(f, piece, RESYNC_OP_COMPARE_BLOCKS, piece->blocks);
	equal &= piece->op == RESYNC_OP_COMPARE ? ~0ull : ~differing;
	/* A flush to both copies keeps equal bytes equal, whichever copy gets it first. */
	clear = equal << shift;
	if (rs->mode == RESYNC_CATCH_UP || rs->mode == RESYNC_EQUALISE)
		clear &= ~f->touched;
	rs->equal +=
		(uint64_t)__builtin_popcountll(clear & rs->config.bits[resync_bits_word_of(piece)]);
	resync_bits_clear(rs, resync_bits_word_of(piece), clear);
	differing = piece->blocks & ~equal;
	if (rs->mode == RESYNC_VERIFY && rs->pass + 1 == RESYNC_VERIFY_TRIES) {
		/* Blocks that were flushed between the digests count as equal: their difference
		 * is not proved. */
		resync_bits_clear(rs, resync_bits_word_of(piece), f->touched & differing << shift);
		differing &= ~(f->touched >> shift);
	}
	rs->differing += (uint64_t)__builtin_popcountll(differing);
	if (differing && rs->mode != RESYNC_VERIFY)
		return resync_pieces_turn(f, piece, RESYNC_OP_COPY, differing);
	resync_pieces_end(rs, f, now_us);
	return false;
}
