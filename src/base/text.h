/* SPDX-License-Identifier: BSD-3-Clause */
/* text.h -- makes texts for people: sizes, and printable names from other sources. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text_size {
	char text[32];
};

/* "64 MiB" if this is exact, else bytes. */
struct text_size text_size(uint64_t bytes);

/* "67108864 bytes", for lines in which some sizes are not whole units. */
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
