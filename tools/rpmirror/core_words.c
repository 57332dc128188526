/* SPDX-License-Identifier: BSD-3-Clause */
#include "core_words.h"

#include "mirror/register/words.h"

bool words_is_lonely(const char *word)
{
	return words_find(words_lonely, word) >= 0;
}

enum mirror_lonely words_lonely_of(const char *word)
{
	int found = words_find(words_lonely, word);

	return found < 0 ? MIRROR_LONELY_NONE : (enum mirror_lonely)found;
}
