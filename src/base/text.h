/* SPDX-License-Identifier: BSD-3-Clause */
/* text.h -- pieces of lines that people read: sizes, and names that came from elsewhere. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text_size {
	char text[32];
};

/* "64 MiB" if that is exact, else bytes. */
struct text_size text_size(uint64_t bytes);

/* "67108864 bytes", for lines in which not all sizes are whole units. */
struct text_size text_bytes(uint64_t bytes);

/*
 * Terminals execute control characters, and names may come from a peer: each byte of a control
 * character, and each byte that is not valid UTF-8, becomes a '?'.
 */
void text_make_printable(char *text);

/* Removes white space at both ends, in place. Returns the start of the rest. */
char *text_trim(char *text);

/* Copies into size bytes. A text that is too long is
 * cut after a whole word, and ends with " ...". */
void text_cut(char *out, size_t size, const char *text);

#endif
