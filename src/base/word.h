/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * word.h -- aligned words of 8 bytes. In memory that can be made persistent such a word has its old
 * value or its new value at every moment, so it is written by one store, and is never divided
 * between two writes.
 */
#ifndef BASE_WORD_H
#define BASE_WORD_H

#include <stdint.h>

#define WORD_LEN 8u

/*
 * Bytes are written in pieces of at most `max` bytes (WORD_LEN or more). Returns the length of the
 * next piece if `left` bytes remain, the first of them at address or offset `at`. Only the last
 * piece may end within a word.
 */
static inline uint64_t word_piece(uint64_t at, uint64_t left, uint64_t max)
{
	return left <= max ? left : max - (at + max) % WORD_LEN;
}

#endif
