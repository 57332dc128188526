/* SPDX-License-Identifier: BSD-3-Clause */
/* words.h -- the words of a record's enumerations, as its text has them; NULL ends each list. */
#ifndef MIRROR_CORE_WORDS_H
#define MIRROR_CORE_WORDS_H

#include "mirror/core/types.h"

extern const char *const words_lonely[]; /* by enum mirror_lonely */
extern const char *const words_phase[];  /* by enum mirror_phase */

/* The value that the word stands for; -1: it is not in the list. */
int words_find(const char *const words[], const char *word);

#endif
