/* SPDX-License-Identifier: BSD-3-Clause */
/* text.h -- makes texts for people: sizes with units, and names of foreign origin without control
 * characters. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text_size {
	char text[32];
};

/* Returns the size in the largest unit of which it is a whole multiple: "64 MiB" for 67108864, and
 * "1000 bytes" for 1000. */
struct text_size text_size(uint64_t bytes);

/* Returns the size in bytes: "67108864 bytes". Used where the same line also shows a size that is
 * not a whole multiple of a larger unit, so that a reader can compare both. */
struct text_size text_bytes(uint64_t bytes);

/*
 * Replace each byte of a control character, and each byte that is not valid UTF-8, by '?'. Names
 * may come from a peer, and terminals execute control characters.
 */
void text_make_printable(char *text);

/* Remove white space at both ends, in place. Returns the start of the remaining text. */
char *text_trim(char *text);

/* Copy text to a buffer of `size` bytes. A text that is too long is cut after a whole word, and
 * ends with " ...". */
void text_cut(char *out, size_t size, const char *text);

#endif
