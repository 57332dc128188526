/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resync_bits.h -- operations on words of a resync's bitmap, only for resync*.c. A word stands for
 * 64 blocks, and a piece lies within one word.
 */
#ifndef MIRROR_CORE_RESYNC_BITS_H
#define MIRROR_CORE_RESYNC_BITS_H

#include "mirror/core/resync.h"

#define RESYNC_WORD ((uint64_t)RESYNC_PIECE_MAX) /* bytes of the file for which a word stands */

/* Returns the bits `from` to `last`, both included. */
static inline uint64_t resync_bits_between(unsigned from, unsigned last)
{
	return ~0ull >> (63 - last) & ~0ull << from;
}

/* Returns the blocks of a word that the range [offset, end) touches. */
static inline uint64_t resync_bits_touched(uint64_t word, uint64_t offset, uint64_t end)
{
	uint64_t base = word * RESYNC_WORD, first = offset > base ? offset - base : 0;

	if (offset >= end || end <= base || first >= RESYNC_WORD)
		return 0;
	end = end - base > RESYNC_WORD ? RESYNC_WORD : end - base;
	return resync_bits_between((unsigned)(first / MIRROR_BLOCK),
				   (unsigned)((end - 1) / MIRROR_BLOCK));
}

/* Return a piece's word, and the piece's blocks as bits of that word. */
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
/* Call this when a flush has changed these blocks: pieces in flight must not clear the bits. */
void resync_bits_touch(struct resync *rs, uint64_t word, uint64_t bits);
/* Returns the blocks of the word for which flushes wait. */
uint64_t resync_bits_held(const struct resync *rs, uint64_t word);

#endif
