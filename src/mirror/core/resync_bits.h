/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resync_bits.h -- words of a resync's bitmap, for resync*.c only. A word stands for 64 blocks, and
 * a piece lies within one word.
 */
#ifndef MIRROR_CORE_RESYNC_BITS_H
#define MIRROR_CORE_RESYNC_BITS_H

#include "mirror/core/resync.h"

#define RESYNC_WORD ((uint64_t)RESYNC_PIECE_MAX) /* bytes of the file that a word stands for */

/* The bits `from` to `last`, both included. */
static inline uint64_t resync_bits_between(unsigned from, unsigned last)
{
	return ~0ull >> (63 - last) & ~0ull << from;
}

/* The blocks of a word that the range [offset, end) touches. */
static inline uint64_t resync_bits_touched(uint64_t word, uint64_t offset, uint64_t end)
{
	uint64_t base = word * RESYNC_WORD, first = offset > base ? offset - base : 0;

	if (offset >= end || end <= base || first >= RESYNC_WORD)
		return 0;
	end = end - base > RESYNC_WORD ? RESYNC_WORD : end - base;
	return resync_bits_between((unsigned)(first / MIRROR_BLOCK),
				   (unsigned)((end - 1) / MIRROR_BLOCK));
}

/* A piece's word, and its blocks as bits of that word. */
static inline uint64_t resync_bits_word_of(const struct resync_piece *piece)
{
	return piece->offset / RESYNC_WORD;
}

static inline uint64_t resync_bits_of(const struct resync_piece *piece)
{
	return piece->blocks << (piece->offset % RESYNC_WORD / MIRROR_BLOCK);
}

/* Set and clear bits, and keep rs->remaining correct. */
void resync_bits_set(struct resync *rs, uint64_t word, uint64_t bits);
void resync_bits_clear(struct resync *rs, uint64_t word, uint64_t bits);
/* A flush changed these blocks, so pieces in flight must not clear the bits. */
void resync_bits_touch(struct resync *rs, uint64_t word, uint64_t bits);
/* The blocks of the word that flushes wait for. */
uint64_t resync_bits_held(const struct resync *rs, uint64_t word);

#endif
