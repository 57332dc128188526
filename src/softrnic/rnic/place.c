/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/rnic/place.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/safecopy.h"
#include "base/word.h"

/* Copy whole words to an aligned address. */
static int place_words(void *dst, const void *src, size_t len)
{
	uint64_t word;

	if (len != sizeof(word))
		return safecopy(dst, src, len);
	memcpy(&word, src, sizeof(word));
	return safecopy_store64(dst, word);
}

/* safecopy() stores pieces of 16 bytes that begin at dst, and pieces that end at the end of dst. So
 * parts of words are copied separately: otherwise two pieces could divide a word. */
static int place_parts(uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t head = -(uintptr_t)dst % WORD_LEN, words;
	int err;

	head = head < len ? head : len;
	words = (len - head) / WORD_LEN * WORD_LEN;
	err = safecopy(dst, src, head);
	if (!err)
		err = place_words(dst + head, src + head, words);
	if (!err)
		err = safecopy(dst + head + words, src + head + words, len - head - words);
	return err;
}

int place(void *dst, const void *src, size_t len)
{
	return ((uintptr_t)dst | len) % WORD_LEN ? place_parts(dst, src, len)
						 : place_words(dst, src, len);
}

int place_prepare(const void *dst, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = (uintptr_t)dst, end = at + len;
	int err = 0;

	for (; !err && at < end; at = (at + page) & ~(page - 1))
		err = safecopy_probe((const void *)at);
	return err;
}

int place_atomic(uint64_t *dst, place_modify_fn *modify, const void *arg, uint64_t *old)
{
	uint64_t seen, now, new_value;
	int err = safecopy_load64(&seen, dst);

	/* The loop repeats only if another thread has changed the word meanwhile. */
	while (!err && modify(arg, seen, &new_value)) {
		now = seen;
		err = safecopy_cmpxchg64(dst, &now, new_value);
		if (now == seen)
			break;
		seen = now;
	}
	*old = seen;
	return err;
}
