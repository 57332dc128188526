/* SPDX-License-Identifier: BSD-3-Clause */
/* words.h -- the words for a record's enumerations in its text form. NULL ends each list. */
#ifndef MIRROR_CORE_WORDS_H
#define MIRROR_CORE_WORDS_H

#include "mirror/core/types.h"

extern const char *const words_lonely[]; /* indexed by enum mirror_lonely */
extern const char *const words_phase[];  /* indexed by enum mirror_phase */

/* Returns the index of the word in the list, or -1 if the list lacks the word. */
int words_find(const char *const words[], const char *word);

#endif
