/* SPDX-License-Identifier: BSD-3-Clause */
/* core_words.h -- words of enumerations, back to their values. */
#ifndef RPMIRROR_CORE_WORDS_H
#define RPMIRROR_CORE_WORDS_H

#include <stdbool.h>

#include "mirror/core/types.h"

/* MIRROR_LONELY_NONE for what is no such word; words_is_lonely() says whether it is. */
enum mirror_lonely words_lonely_of(const char *word);
bool words_is_lonely(const char *word);

#endif
