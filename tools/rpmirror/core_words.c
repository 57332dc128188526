/* SPDX-License-Identifier: BSD-3-Clause */
#include "core_words.h"

#include <string.h>

#include "mirror/register/words.h"

static int words_find(const char *const words[], const char *word)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(words[i], word))
			return i;
	return -1;
}

bool words_is_lonely(const char *word)
{
	return words_find(words_lonely, word) >= 0;
}

enum mirror_lonely words_lonely_of(const char *word)
{
	int found = words_find(words_lonely, word);

	return found < 0 ? MIRROR_LONELY_NONE : (enum mirror_lonely)found;
}
