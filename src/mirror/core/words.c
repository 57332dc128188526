/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/words.h"

#include <stddef.h>
#include <string.h>

const char *const words_lonely[] = {
	[MIRROR_LONELY_NONE] = "none",
	[MIRROR_LONELY_BLOCK] = "block",
	[MIRROR_LONELY_MANUAL] = "manual",
	NULL,
};

const char *const words_phase[] = {
	[MIRROR_PHASE_NONE] = "none",
	[MIRROR_PHASE_RECOVERING] = "recovering",
	[MIRROR_PHASE_SERVING] = "serving",
	NULL,
};

int words_find(const char *const words[], const char *word)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(words[i], word))
			return i;
	return -1;
}
